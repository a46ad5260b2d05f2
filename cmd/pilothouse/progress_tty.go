package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// liveProgress draws the lanes in place, below the prompt, and redraws them
// while they work. It reads no keys: Ctrl-C stays a signal.
type liveProgress struct {
	program *tea.Program
	done    chan struct{}
}

func newLiveProgress(out io.Writer) *liveProgress {
	p := &liveProgress{
		program: tea.NewProgram(&lanesModel{}, tea.WithOutput(out), tea.WithInput(nil), tea.WithoutSignalHandler()),
		done:    make(chan struct{}),
	}
	go func() {
		defer close(p.done)
		_, _ = p.program.Run() // a terminal that cannot be drawn on costs the view, not the round
	}()
	return p
}

func (p *liveProgress) Watch(event any) { p.program.Send(event) }

func (p *liveProgress) Close() {
	p.program.Quit()
	<-p.done
}

// lanesModel is what the live view shows.
type lanesModel struct {
	round   supervisor.RoundStarted
	started time.Time
	rows    []laneRow
	width   int
	frame   int
}

type laneRow struct {
	id, title string
	status    lanes.Status
	progress  lanes.Progress
	seen      time.Time // when progress came
	summary   string
}

type tick struct{}

func nextTick() tea.Cmd {
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tick{} })
}

func (m *lanesModel) Init() tea.Cmd { return nextTick() }

func (m *lanesModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width = msg.Width
	case tick:
		m.frame++
		return m, nextTick()
	case supervisor.RoundStarted:
		m.round, m.started = msg, time.Now()
		for _, lane := range msg.Lanes {
			m.rows = append(m.rows, laneRow{id: lane.Spec.ID, title: laneTitle(lane), status: lanes.Queued})
		}
	case lanes.Progress:
		if row := m.row(msg.LaneID); row != nil && !row.status.Terminal() {
			row.status, row.progress, row.seen = msg.Status, msg, time.Now()
		}
	case supervisor.LaneEnded:
		if row := m.row(msg.Lane.LaneID); row != nil {
			row.status, row.summary = msg.Lane.Status, laneSummary(msg.Lane)
		}
	}
	return m, nil
}

func (m *lanesModel) row(laneID string) *laneRow {
	for i := range m.rows {
		if m.rows[i].id == laneID {
			return &m.rows[i]
		}
	}
	return nil
}

var (
	bold      = lipgloss.NewStyle().Bold(true)
	faint     = lipgloss.NewStyle().Faint(true)
	good      = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad       = lipgloss.NewStyle().Foreground(lipgloss.Red)
	busy      = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	spinner   = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	laneMarks = map[lanes.Status]string{
		lanes.Queued: faint.Render("·"), lanes.Complete: good.Render("✓"),
		lanes.Failed: bad.Render("✗"), lanes.Cancelled: faint.Render("⊘"),
	}
)

func (m *lanesModel) View() tea.View {
	if m.started.IsZero() {
		return tea.NewView("")
	}
	head := headline(m.round)
	if m.width > 0 && lipgloss.Width(head) > m.width { // an id that is cut off is of no use
		head = strings.ReplaceAll(head, " · ", "\n  ")
	}
	lines := []string{bold.Render(head), m.counts()}
	for _, notice := range m.round.Notices {
		lines = append(lines, faint.Render("note: "+notice))
	}
	titles := 0
	for _, row := range m.rows {
		titles = max(titles, lipgloss.Width(row.title))
	}
	for _, row := range m.rows {
		lines = append(lines, m.laneLine(row, titles))
	}
	if m.width > 0 {
		for i, line := range lines {
			lines[i] = lipgloss.NewStyle().MaxWidth(m.width).Render(line)
		}
	}
	return tea.NewView(strings.Join(lines, "\n") + "\n")
}

func (m *lanesModel) counts() string {
	var done, running, queued int
	for _, row := range m.rows {
		switch {
		case row.status.Terminal():
			done++
		case row.status == lanes.Running:
			running++
		default:
			queued++
		}
	}
	text := fmt.Sprintf("%d/%d done", done, len(m.rows))
	if running > 0 {
		text += fmt.Sprintf(" · %d running", running)
	}
	if queued > 0 {
		text += fmt.Sprintf(" · %d queued", queued)
	}
	return faint.Render(text + " · " + elapsed(time.Since(m.started)))
}

func (m *lanesModel) laneLine(row laneRow, titles int) string {
	mark := laneMarks[row.status]
	if row.status == lanes.Running {
		mark = busy.Render(spinner[m.frame%len(spinner)])
	}
	line := fmt.Sprintf("  %s %-*s  ", mark, titles, row.title)
	switch {
	case row.status.Terminal():
		return line + row.summary
	case row.status == lanes.Running:
		line += fmt.Sprintf("%-18s %s · %s", row.progress.Phase, tokens(row.progress.Usage),
			elapsed(row.progress.Elapsed+time.Since(row.seen)))
		if row.progress.Attempt > 1 {
			line += fmt.Sprintf(" · attempt %d", row.progress.Attempt)
		}
		if row.progress.Warning != "" {
			line += " · " + bad.Render(row.progress.Warning)
		}
		return line
	default:
		return line + faint.Render("queued")
	}
}
