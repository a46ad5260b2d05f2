package extension_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pilothouse/lanes"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// drawing is a panel as the probe draws it.
type drawing struct {
	Lines  []string
	Widths []int
	Title  string
	Closed int
	Asked  []string
}

// draw has the probe draw the panel of a round with these lanes, each with the
// transcript, after the keys were pressed.
func (p *session) draw(role string, laneIDs []string, more []api.Event, transcript []lanes.TranscriptEntry, keys ...string) drawing {
	p.t.Helper()
	started := &api.Started{RunID: "run", RoundID: "round", Role: "reviewer", Model: "sim/plain"}
	if role != "" {
		started.Role, started.Model = "criticizer", ""
	}
	events := []api.Event{{Type: api.EventStarted, Started: started}}
	for i, id := range laneIDs {
		started.Lanes = append(started.Lanes, api.PlannedLane{LaneID: id, Name: id, Batch: 1 + i/3})
		if i < 3 {
			events = append(events, progress(id, lanes.Running, "responding"))
		}
	}
	answer := p.probe("panel", map[string]any{
		"rows": 40, "width": 90, "events": append(events, more...), "transcript": transcript, "keys": keys,
	})
	var d drawing
	if err := json.Unmarshal([]byte(answer), &d); err != nil {
		p.t.Fatalf("%v: %s", err, answer)
	}
	return d
}

func progress(id string, status lanes.Status, phase string) api.Event {
	return api.Event{Type: api.EventProgress, Progress: &api.Progress{LaneID: id, Status: status, Phase: phase, Turns: 2}}
}

func ended(id string, status lanes.Status) api.Event {
	return api.Event{Type: api.EventLane, Lane: &supervisor.LaneResult{LaneID: id, Name: id, Status: status}}
}

// rowsWith are the numbers of the lines that have words in them.
func (d drawing) rowsWith(words string) []int {
	var rows []int
	for i, line := range d.Lines {
		if strings.Contains(line, words) {
			rows = append(rows, i)
		}
	}
	return rows
}

var threeLanes = []string{"correctness", "ordering", "verification"}

func said(text string, done bool) lanes.TranscriptEntry {
	return lanes.TranscriptEntry{Attempt: 1, Turn: 1, Key: "content:0", Type: "assistant-text", Text: text, Done: done}
}

func TestThePanelOfARound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open("--no-session", "-e", probe(t))
	for _, one := range []struct {
		name string
		test func(*testing.T, *session)
	}{
		{"shows three panes of one height", threePanes},
		{"previews what is being written", preview},
		{"scrolls the lane in focus", scrolling},
		{"cancels a lane only after a yes", cancelling},
		{"keeps a lane as it ended", endedLanes},
		{"shows the batch at work", batches},
		{"has a widget of two lines", widget},
	} {
		t.Run(one.name, func(t *testing.T) {
			p.t = t
			one.test(t, p)
		})
	}
	p.t = t
	p.Close()
}

func threePanes(t *testing.T, p *session) {
	hostile := "wide 中文日本語 text that has to be wrapped because it is far too long for one line of the pane 🎉\tand a tab\x1b[31m and colours\x07"
	d := p.draw("", threeLanes, nil, []lanes.TranscriptEntry{said(hostile, true)})
	if len(d.Lines) != 31 {
		t.Errorf("%d rows on a screen of 40, want 78%%:\n%s", len(d.Lines), strings.Join(d.Lines, "\n"))
	}
	for i, width := range d.Widths {
		if width != 90 {
			t.Errorf("row %d is %d wide, want 90: %q", i, width, d.Lines[i])
		}
	}
	contains(t, d.Lines[0], "Reviewer (sim/plain)", "0/3 done · 3 running")
	var heads []int
	for _, lane := range threeLanes {
		heads = append(heads, d.rowsWith("├─ ● "+lane)...)
	}
	if heads = append(heads, d.rowsWith("▸ correctness")...); len(heads) != 3 {
		t.Fatalf("the lanes begin in rows %v:\n%s", heads, strings.Join(d.Lines, "\n"))
	}
	if a, b, c := heads[2], heads[0], heads[1]; b-a != c-b {
		t.Errorf("the panes are %d and %d rows high", b-a, c-b)
	}
	if len(d.rowsWith("中文")) != 3 || len(d.rowsWith("\x1b")) != 0 {
		t.Errorf("the text of the lanes:\n%s", strings.Join(d.Lines, "\n"))
	}
}

func preview(t *testing.T, p *session) {
	text := "line 1\nline 2\nline 3\nline 4\nline 5"
	d := p.draw("", threeLanes[:1], nil, []lanes.TranscriptEntry{said(text, false)})
	if len(d.rowsWith("line 2")) != 0 || len(d.rowsWith("line 3")) != 1 || len(d.rowsWith("│ …")) != 1 {
		t.Errorf("a text at work:\n%s", strings.Join(d.Lines, "\n"))
	}
	d = p.draw("", threeLanes[:1], nil, []lanes.TranscriptEntry{said(text, false), said("", true)})
	if len(d.rowsWith("line 1")) != 1 || len(d.rowsWith("│ …")) != 0 {
		t.Errorf("a text that is written:\n%s", strings.Join(d.Lines, "\n"))
	}
	call := lanes.TranscriptEntry{Attempt: 1, Turn: 1, Key: "tool:0", Type: "tool-call", Tool: "grep", Text: `{"pattern":"oven","path":"src","limit":3}`}
	d = p.draw("", threeLanes[:1], nil, []lanes.TranscriptEntry{call})
	if len(d.rowsWith("→ grep oven src limit=3")) != 1 {
		t.Errorf("a call of a tool:\n%s", strings.Join(d.Lines, "\n"))
	}
	output := lanes.TranscriptEntry{Attempt: 1, Turn: 1, Key: "tool:1", Type: "tool-result", Tool: "read", Text: text}
	d = p.draw("", threeLanes[:1], nil, []lanes.TranscriptEntry{output})
	if len(d.rowsWith("line 1")) != 1 || len(d.rowsWith("line 5")) != 1 {
		t.Errorf("the output of a tool is clipped:\n%s", strings.Join(d.Lines, "\n"))
	}
}

func widget(t *testing.T, p *session) {
	started := &api.Started{RunID: "run", RoundID: "round", Role: "reviewer", Model: "sim/plain"}
	for _, id := range threeLanes {
		started.Lanes = append(started.Lanes, api.PlannedLane{LaneID: id, Name: id, Batch: 1})
	}
	events := []api.Event{{Type: api.EventStarted, Started: started}, progress("ordering", lanes.Running, "tool: read"), ended("correctness", lanes.Complete)}
	draw := func(width, silence int) drawing {
		var d drawing
		answer := p.probe("widget", map[string]any{"width": width, "events": events, "silence": silence})
		if err := json.Unmarshal([]byte(answer), &d); err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		if len(d.Lines) != 2 || slices.Max(d.Widths) > width {
			t.Errorf("in %d columns it has lines of %v: %q", width, d.Widths, d.Lines)
		}
		return d
	}
	d := draw(100, 0)
	contains(t, d.Lines[0], " Reviewer (sim/plain) · 1/3 done · 1 running · 1 queued · 0:00  ", "  alt+l shows the lanes")
	if want := " ✓ correctness complete  ● ordering tool: read  ○ verification queued"; d.Lines[1] != want {
		t.Errorf("the lanes are %q, want %q", d.Lines[1], want)
	}
	if d = draw(64, 0); strings.Contains(d.Lines[0], "alt+l") || !strings.HasSuffix(d.Lines[1], "…") {
		t.Errorf("on a narrow screen: %q", d.Lines)
	}
	contains(t, draw(100, 1).Lines[1], "the pilothouse daemon does not answer")
}

func scrolling(t *testing.T, p *session) {
	const tab, up, home, escape = "\t", "\x1b[A", "\x1b[H", "\x1b"
	long := []lanes.TranscriptEntry{said(strings.Repeat("a line\n", 100)+"the end", true)}

	d := p.draw("", threeLanes, nil, long)
	if len(d.rowsWith("the end")) != 3 {
		t.Errorf("the panes do not follow:\n%s", strings.Join(d.Lines, "\n"))
	}
	d = p.draw("", threeLanes, nil, long, tab, up)
	if rows := d.rowsWith("the end"); len(rows) != 2 || len(d.rowsWith("▸ ordering")) != 1 || len(d.rowsWith("of 101")) != 1 {
		t.Errorf("the second pane is not scrolled alone:\n%s", strings.Join(d.Lines, "\n"))
	}
	d = p.draw("", threeLanes, nil, long, home)
	contains(t, strings.Join(d.Lines, "\n"), "line 1 of 101")
	d = p.draw("", threeLanes, nil, long, escape)
	if d.Closed != 1 || len(d.Asked) != 0 {
		t.Errorf("escape closed it %d times and asked for %v", d.Closed, d.Asked)
	}
}

func cancelling(t *testing.T, p *session) {
	d := p.draw("", threeLanes, nil, nil, "\t", "x")
	contains(t, strings.Join(d.Lines, "\n"), "Cancel ordering?")
	if d = p.draw("", threeLanes, nil, nil, "\t", "x", "n", "y"); len(d.Asked) != 0 {
		t.Errorf("without a yes it asked for %v", d.Asked)
	}
	d = p.draw("", threeLanes, nil, nil, "\t", "x", "y")
	if len(d.Asked) != 1 || !strings.HasPrefix(d.Asked[0], "DELETE /v1/calls/call/lanes/ordering?") {
		t.Errorf("it asked for %v", d.Asked)
	}
	d = p.draw("", threeLanes, []api.Event{ended("ordering", lanes.Complete)}, nil, "\t", "x", "y")
	if len(d.Asked) != 0 {
		t.Errorf("a lane that has ended is cancelled: %v", d.Asked)
	}
}

func endedLanes(t *testing.T, p *session) {
	d := p.draw("", threeLanes, []api.Event{ended("correctness", lanes.Cancelled), progress("correctness", lanes.Running, "thinking")}, nil)
	contains(t, strings.Join(d.Lines, "\n"), "⊘ ▸ correctness", "cancelled · ", "1/3 done · 2 running")
	if d.Title != "Reviewer (sim/plain)" {
		t.Errorf("title %q", d.Title)
	}
	if d = p.draw("criticizer", []string{"criticizer"}, nil, nil); d.Title != "Criticizer (inherit)" {
		t.Errorf("title %q", d.Title)
	}
}

func batches(t *testing.T, p *session) {
	five := []string{"ref-1", "ref-2", "ref-3", "ref-4", "ref-5"}
	d := p.draw("", five, nil, nil)
	if len(d.rowsWith("ref-3")) != 1 || len(d.rowsWith("ref-4")) != 0 {
		t.Errorf("the first batch:\n%s", strings.Join(d.Lines, "\n"))
	}
	d = p.draw("", five, []api.Event{
		ended("ref-1", lanes.Complete), ended("ref-2", lanes.Complete), ended("ref-3", lanes.Failed), progress("ref-4", lanes.Running, "starting"),
	}, nil)
	if len(d.rowsWith("ref-3")) != 0 || len(d.rowsWith("ref-4")) != 1 || len(d.rowsWith("ref-5")) != 1 {
		t.Errorf("the second batch:\n%s", strings.Join(d.Lines, "\n"))
	}
	contains(t, d.Lines[0], "3/5 done · 1 running · 1 queued")
}
