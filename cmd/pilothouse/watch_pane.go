package main

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/viewport"
	"charm.land/lipgloss/v2"

	"pilothouse/lanes"
	"pilothouse/supervisor/api"
)

// watchPane shows what is selected: the transcript of a lane, or what is known of a
// run or a round.
type watchPane struct {
	view      viewport.Model
	key       string // of the row that is shown
	text      transcriptText
	offset    int64 // of the transcript, in bytes
	reading   bool  // a page of it is on its way
	again     bool  // there is more to read
	seen      lanePulse
	problem   string
	following bool // the end stays in sight
}

// lanePulse tells whether a lane has said anything since the last look.
type lanePulse struct {
	status    lanes.Status
	connected bool
	seen      int64 // milliseconds of its work
	turns     int
}

func newWatchPane() watchPane {
	p := watchPane{view: viewport.New(), following: true}
	p.view.KeyMap = viewport.KeyMap{} // keys are the screen's
	return p
}

// transcriptRead is a page of a transcript.
type transcriptRead struct {
	key     string
	entries []lanes.TranscriptEntry
	next    int64
	more    bool
	err     error
}

// point turns the pane to a row. It tells whether the row's transcript has to be read
// on.
func (p *watchPane) point(row *watchRow, connected bool) bool {
	if row == nil {
		p.key, p.text = "", transcriptText{}
		return false
	}
	if row.key() != p.key {
		*p = watchPane{view: p.view, key: row.key(), following: row.lane != nil}
		p.view.GotoTop()
	}
	if row.lane == nil {
		return false
	}
	pulse := lanePulse{row.lane.Status, connected, row.lane.ElapsedMs, row.lane.Turns}
	if p.reading || !p.again && pulse == p.seen {
		return false
	}
	p.seen, p.reading, p.again = pulse, true, false
	return true
}

// take takes over a page of the transcript that is shown; a page of another is too late.
func (p *watchPane) take(page transcriptRead) {
	if page.key != p.key {
		return
	}
	p.reading, p.again, p.offset, p.problem = false, page.more, page.next, ""
	if page.err != nil {
		p.problem = page.err.Error()
	}
	p.text.take(page.entries)
}

// layOut puts the contents into a place on the screen.
func (p *watchPane) layOut(row *watchRow, width, height int) {
	p.view.SetWidth(width)
	p.view.SetHeight(height)
	var lines []string
	switch {
	case row == nil:
	case row.lane != nil:
		lines = p.laneLines(row.lane, width)
	case row.round != nil:
		lines = roundLines(row, width)
	default:
		lines = runLines(row.run, width)
	}
	p.view.SetContentLines(lines)
	if p.following {
		p.view.GotoBottom()
	}
}

func (p *watchPane) laneLines(lane *laneView, width int) []string {
	lines := p.text.draw(width)
	add := func(style lipgloss.Style, text string) {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, hang(style, "", plainText(text), width, 0)...)
	}
	switch {
	case p.problem != "":
		add(faint, p.problem)
	case len(lines) > 0:
	case lane.Status == lanes.Queued:
		add(faint, "This lane waits for its turn.")
	case lane.Phase == "reused":
		add(faint, "The answer of an earlier call was reused; this call has no transcript of it.")
	case lane.Status == lanes.Running:
		add(faint, "Nothing was said yet.")
	}
	if lane.Error != nil {
		add(bad, fmt.Sprintf("%s: %s", lane.Error.Class, lane.Error.Message))
	}
	return lines
}

// field is a labelled line of what is known.
type watchField struct{ label, text string }

func drawFields(fields []watchField, width int) []string {
	var lines []string
	for _, f := range fields {
		if f.text == "" {
			continue
		}
		label := fit(f.label, 10)
		for i, line := range wrapLines(plainText(f.text), width-lipgloss.Width(label)) {
			if i > 0 {
				label = strings.Repeat(" ", lipgloss.Width(label))
			}
			lines = append(lines, faint.Render(label)+line)
		}
	}
	return lines
}

func runLines(run *runView, width int) []string {
	lines := drawFields([]watchField{{"run", runName(run)}, {"workspace", run.Workdir}}, width)
	for _, round := range run.Rounds {
		lines = append(lines, "")
		lines = append(lines, fit(roundMark(&round, 0)+" "+roundName(&round), width))
		for _, lane := range round.Lanes {
			doing, style := laneDoing(&lane)
			lines = append(lines, fit("  "+laneMark(lane.Status, 0)+" "+watchedName(&lane)+"  "+style.Render(doing), width))
		}
	}
	return lines
}

func roundLines(row *watchRow, width int) []string {
	round := row.round
	state := map[api.State]string{
		api.StateRunning:   "at work",
		api.StateFinished:  "ended",
		api.StateDelivered: "ended, its result was taken",
		api.StateLost:      "lost: the daemon ended in the middle of it",
	}[round.State]
	var used totals
	for _, lane := range round.Lanes {
		used.add(lane)
	}
	usage := ""
	if n := used.Usage.Tokens(); n > 0 {
		usage = strings.TrimSpace(fmt.Sprintf("%d tokens  %s", n, costOf(used.Usage.Cost)))
	}
	fields := []watchField{
		{"state", state},
		{"run", runName(row.run)},
		{"round", round.RoundID},
		{"role", string(round.Role)},
		{"model", round.Model},
		{"started", round.Created.Local().Format(time.DateTime)},
		{"session", round.Session},
		{"workspace", row.run.Workdir},
		{"call", round.Call},
		{"used", usage},
		{"problem", round.Problem},
	}
	lines := drawFields(fields, width)
	for _, lane := range round.Lanes {
		if lane.Error == nil {
			continue
		}
		lines = append(lines, "")
		lines = append(lines, hang(bad, "", plainText(watchedName(&lane)+" "+string(lane.Status)+": "+lane.Error.Message), width, 0)...)
	}
	return lines
}

// title names what the pane shows.
func (p *watchPane) title(row *watchRow) string {
	switch {
	case row == nil:
		return ""
	case row.lane != nil:
		title := watchedName(row.lane)
		if row.lane.Model != "" {
			title += " · " + plainLine(row.lane.Model)
		}
		if row.lane.Turns > 0 {
			title += " · " + count(row.lane.Turns, "turn")
		}
		if p.following && !row.lane.Status.Terminal() {
			title += " · following"
		}
		return title
	case row.round != nil:
		return roundName(row.round)
	}
	return runName(row.run)
}

// scroll moves the contents. At the end they follow again.
func (p *watchPane) scroll(move func(*viewport.Model)) {
	move(&p.view)
	p.following = p.view.AtBottom()
}
