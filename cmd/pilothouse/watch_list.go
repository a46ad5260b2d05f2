package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"pilothouse/lanes"
	"pilothouse/supervisor/api"
)

// watchRow is a row of the list: a run, a round of it, or a lane of that.
type watchRow struct {
	run   *runView
	round *roundView // nil for a run
	lane  *laneView  // nil for a run and a round
}

// key names what a row stands for, whatever moves around it.
func (r watchRow) key() string {
	key := r.run.Workdir + "\x00" + r.run.RunID
	if r.round != nil {
		key += "\x00" + r.round.Call
	}
	if r.lane != nil {
		key += "\x00" + r.lane.LaneID
	}
	return key
}

// watchList is the tree of runs, rounds and lanes with one selected row.
type watchList struct {
	rows     []watchRow
	folded   map[string]bool // by key: what is below is not shown
	filter   string
	selected string // key
	chosen   bool   // by the user
	at       int    // of the selected row
	top      int    // first row in sight
}

// show takes over what there is to see. The selection stays with what it was on; when
// that is gone, with its place.
func (l *watchList) show(v watchView) {
	l.rows = nil
	for i := range v.Runs {
		run := &v.Runs[i]
		head := watchRow{run: run}
		below := l.below(run)
		if len(below) == 0 && !l.matches(head) {
			continue
		}
		l.rows = append(l.rows, head)
		if !l.folded[head.key()] {
			l.rows = append(l.rows, below...)
		}
	}
	if at := slices.IndexFunc(l.rows, func(r watchRow) bool { return r.key() == l.selected }); at >= 0 {
		l.at = at
	}
	if row := l.row(); !l.chosen && (row == nil || row.lane == nil || row.key() != l.selected) { // a lane says the most
		l.at = max(0, slices.IndexFunc(l.rows, func(r watchRow) bool { return r.lane != nil }))
	}
	l.place()
}

// below are the rows of a run that pass the filter. What is above a match is shown, and
// what is below one.
func (l *watchList) below(run *runView) []watchRow {
	var rows []watchRow
	whole := l.matches(watchRow{run: run})
	for i := range run.Rounds {
		head := watchRow{run: run, round: &run.Rounds[i]}
		all := whole || l.matches(head)
		var below []watchRow
		for j := range head.round.Lanes {
			row := watchRow{run: run, round: head.round, lane: &head.round.Lanes[j]}
			if all || l.matches(row) {
				below = append(below, row)
			}
		}
		if !all && len(below) == 0 {
			continue
		}
		rows = append(rows, head)
		if !l.folded[head.key()] {
			rows = append(rows, below...)
		}
	}
	return rows
}

func (l *watchList) matches(r watchRow) bool {
	var words []string
	switch {
	case r.lane != nil:
		words = []string{watchedName(r.lane), r.lane.Lens, string(r.lane.Status), r.lane.Phase}
	case r.round != nil:
		words = []string{string(r.round.Role), r.round.RoundID, r.round.Session}
	default:
		words = []string{r.run.RunID, r.run.Workdir}
	}
	return strings.Contains(strings.ToLower(strings.Join(words, "\n")), strings.ToLower(l.filter))
}

// move moves the selection by rows, as far as there are any.
func (l *watchList) move(by int) {
	l.chosen = true
	l.at += by
	l.place()
}

// place keeps the selection on a row.
func (l *watchList) place() {
	l.at = min(max(0, l.at), max(0, len(l.rows)-1))
	if row := l.row(); row != nil {
		l.selected = row.key()
	}
}

// row is the selected row, nil in an empty list.
func (l *watchList) row() *watchRow {
	if l.at >= len(l.rows) {
		return nil
	}
	return &l.rows[l.at]
}

// fold hides what is below the selected row, or shows it again.
func (l *watchList) fold() {
	if row := l.row(); row != nil && row.lane == nil {
		l.chosen = true
		l.folded[row.key()] = !l.folded[row.key()]
	}
}

// draw returns height lines of the list.
func (l *watchList) draw(width, height, frame int, focused bool) []string {
	l.top = min(l.top, max(0, len(l.rows)-height))
	l.top = max(min(l.top, l.at), l.at-height+1)
	titles := 0
	for _, row := range l.rows {
		if row.lane != nil {
			titles = max(titles, lipgloss.Width(watchedName(row.lane)))
		}
	}
	var lines []string
	for i := l.top; i < len(l.rows) && len(lines) < height; i++ {
		marker := " "
		if i == l.at {
			marker = "›"
		}
		line := marker + l.drawRow(l.rows[i], width-1, min(titles, width/3), frame)
		if i == l.at && focused {
			// Styles within the line would end the selection in its middle.
			line = lipgloss.NewStyle().Reverse(true).Render(ansi.Strip(line))
		}
		lines = append(lines, line)
	}
	if len(l.rows) == 0 {
		lines = append(lines, faint.Render(fit(l.emptiness(), width)))
	}
	for len(lines) < height {
		lines = append(lines, strings.Repeat(" ", width))
	}
	return lines
}

func (l *watchList) emptiness() string {
	if l.filter != "" {
		return " nothing matches the filter; esc clears it"
	}
	return " nothing is at work; rounds appear here when they start"
}

func (l *watchList) drawRow(row watchRow, width, titles, frame int) string {
	switch {
	case row.lane != nil:
		return drawLane(row.lane, width, titles, frame)
	case row.round != nil:
		return l.drawRound(row, width, frame)
	}
	name := runName(row.run)
	place := shortPath(row.run.Workdir)
	room := width - 2 - lipgloss.Width(name) - 2
	if room < 8 {
		place, room = "", max(0, room)
	}
	line := fit(l.foldMark(row)+" "+name, width-room-2) + "  "
	return bold.Render(line) + faint.Render(fitRight(place, room))
}

func (l *watchList) drawRound(row watchRow, width, frame int) string {
	mark := roundMark(row.round, frame)
	line := fmt.Sprintf("  %s %s %s", l.foldMark(row), mark, roundName(row.round))
	done := 0
	for _, lane := range row.round.Lanes {
		if lane.Status != lanes.Running && lane.Status != lanes.Queued {
			done++
		}
	}
	right := ""
	switch {
	case len(row.round.Lanes) > 0:
		right = fmt.Sprintf("%d/%d ended", done, len(row.round.Lanes))
	case row.round.State == api.StateRunning:
		right = "preparing"
	}
	if row.round.Problem != "" {
		right = "did not succeed"
	}
	room := lipgloss.Width(right)
	return fit(line, width-room-1) + " " + faint.Render(right)
}

func (l *watchList) foldMark(row watchRow) string {
	if l.folded[row.key()] {
		return "▸"
	}
	return "▾"
}

// drawLane draws mark, title, what it does, time, tokens and cost; the last ones only
// where there is room for them.
func drawLane(lane *laneView, width, titles, frame int) string {
	columns := []struct {
		text  string
		width int
	}{
		{elapsedOf(lane), 8},
		{tokensOf(lane), 7},
		{costOf(lane.Usage.Cost), 8},
	}
	for len(columns) > 1 && width-titles-8-8*len(columns) < 14 {
		columns = columns[:len(columns)-1]
	}
	right := ""
	for _, column := range columns {
		right += fitRight(column.text, column.width)
	}
	left := "    " + laneMark(lane.Status, frame) + " " + fit(watchedName(lane), titles) + "  "
	doing, style := laneDoing(lane)
	room := width - lipgloss.Width(left) - lipgloss.Width(right)
	return fit(left+style.Render(fit(doing, room)), width-lipgloss.Width(right)) + faint.Render(right)
}

// laneDoing says in few words what a lane does, or what became of it.
func laneDoing(lane *laneView) (string, lipgloss.Style) {
	text, style := plainLine(lane.Phase), lipgloss.NewStyle()
	switch {
	case lane.Status == lanes.Running:
		if lane.Warning != "" {
			text, style = plainLine(lane.Warning), bad
		}
	case lane.Status == lanes.Failed && lane.Error != nil:
		text, style = "failed: "+plainLine(string(lane.Error.Class)), bad
	case lane.Status == lanes.Complete:
		text, style = strings.TrimSpace("complete "+text), good
	default:
		text, style = string(lane.Status), faint
	}
	if lane.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", lane.Attempt)
	}
	return text, style
}

func laneMark(status lanes.Status, frame int) string {
	switch status {
	case lanes.Running:
		return busy.Render(spinner[frame%len(spinner)])
	case laneLost:
		return faint.Render("?")
	}
	return laneMarks[status]
}

func roundMark(round *roundView, frame int) string {
	if round.State == api.StateRunning {
		return laneMark(lanes.Running, frame)
	}
	if round.State == api.StateLost {
		return laneMark(laneLost, frame)
	}
	worst := lanes.Complete
	for _, lane := range round.Lanes {
		if lane.Status != lanes.Complete {
			worst = lane.Status
		}
	}
	if round.Problem != "" {
		worst = lanes.Failed
	}
	return laneMark(worst, frame)
}

func runName(run *runView) string {
	if run.RunID == "" {
		return "no run"
	}
	return plainLine(run.RunID)
}

func roundName(round *roundView) string {
	role := string(round.Role)
	if role == "" {
		role = round.Tool
	}
	return plainLine(strings.TrimSpace(role + " " + round.RoundID))
}

func watchedName(lane *laneView) string {
	return plainLine(strings.TrimSpace(lane.LaneID + " " + lane.RefID))
}

func elapsedOf(lane *laneView) string {
	if lane.ElapsedMs == 0 {
		return ""
	}
	return elapsed(time.Duration(lane.ElapsedMs) * time.Millisecond)
}

func tokensOf(lane *laneView) string {
	if lane.Usage.Tokens() == 0 {
		return ""
	}
	return strings.TrimSuffix(tokens(lane.Usage), " tok")
}

func costOf(cost float64) string {
	switch {
	case cost == 0:
		return ""
	case cost < 0.01:
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", cost)
}

// shortPath writes the home directory as a shell would.
func shortPath(path string) string {
	if home, err := os.UserHomeDir(); err == nil {
		if rest, err := filepath.Rel(home, path); err == nil && filepath.IsLocal(rest) {
			return plainLine(filepath.Join("~", rest))
		}
	}
	return plainLine(path)
}
