package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/supervisor/api"
)

// stage is a screen without a terminal, and what it asked the daemon for.
type stage struct {
	*watchScreen
	orders []string
}

func newStage(width, height int, v watchView) *stage {
	s := &stage{watchScreen: newWatchScreen()}
	s.read = func(_, call, lane string, from int64) {
		s.orders = append(s.orders, fmt.Sprintf("read %s/%s from %d", call, lane, from))
	}
	s.cancel = func(call, lane, name string) {
		s.orders = append(s.orders, fmt.Sprintf("cancel %s/%s %s", call, lane, name))
	}
	s.Update(tea.WindowSizeMsg{Width: width, Height: height})
	s.Update(v)
	return s
}

// press presses keys by their names: runes, and esc, enter, tab, up, down, backspace.
func (s *stage) press(keys ...string) (quit bool) {
	codes := map[string]rune{"esc": tea.KeyEscape, "enter": tea.KeyEnter, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace, "pgdown": tea.KeyPgDown}
	for _, name := range keys {
		msg := tea.KeyPressMsg{Code: codes[name]}
		if msg.Code == 0 {
			msg = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		if _, cmd := s.Update(msg); cmd != nil {
			_, quit = cmd().(tea.QuitMsg)
		}
	}
	return quit
}

// rows are the lines of the screen without colours.
func (s *stage) rows() []string { return strings.Split(ansi.Strip(s.View().Content), "\n") }

func (s *stage) shows(t *testing.T, words ...string) {
	t.Helper()
	text := strings.Join(s.rows(), "\n")
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not on the screen:\n%s", word, text)
		}
	}
}

func (s *stage) hides(t *testing.T, words ...string) {
	t.Helper()
	text := strings.Join(s.rows(), "\n")
	for _, word := range words {
		if strings.Contains(text, word) {
			t.Errorf("%q is on the screen:\n%s", word, text)
		}
	}
}

// breadView has a round at work and one that has ended.
func breadView() watchView {
	usage := pijson.Usage{Input: 1200, Cost: 0.25}
	return watchView{
		Daemon: daemonView{Connected: true, Version: "1.2.3", PID: 77},
		Totals: totals{Running: 1, Queued: 1, Done: 1, Failed: 1, Usage: usage},
		Runs: []runView{
			{RunID: "2026-bake-bread", Workdir: "/src/bakery", Rounds: []roundView{{
				Call: "c1", Tool: api.ToolRefine, RoundID: "round-1", Role: actors.Reviewer, State: api.StateRunning,
				Lanes: []laneView{
					{LaneID: "correctness", Status: lanes.Running, Phase: "tool: read", Attempt: 2, Turns: 3, Usage: usage, Model: "m-1", ElapsedMs: 61000},
					{LaneID: "ordering", Status: lanes.Queued},
				},
			}}},
			{RunID: "2025-炉-oven", Workdir: "/src/oven", Rounds: []roundView{{
				Call: "c2", Tool: api.ToolAnalyzeRefs, RoundID: "refs-1", Role: actors.RefAnalyst, State: api.StateDelivered,
				Lanes: []laneView{
					{LaneID: "ref-1", RefID: "日本語", Status: lanes.Complete, Attempt: 1, ElapsedMs: 4200},
					{LaneID: "ref-2", RefID: "b", Status: lanes.Failed, Attempt: 1, Error: &lanes.Failure{Class: "auth", Message: "401: bad \x1b[31mkey"}},
				},
			}}},
		},
	}
}

func TestTheScreenShowsRunsRoundsAndLanes(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {200, 60}, {wideScreen, 20}} {
		s := newStage(size[0], size[1], breadView())
		s.shows(t, "1 running · 1 queued · 1 done · 1 failed", "2026-bake-bread", "reviewer round-1", "0/2 ended",
			"correctness", "tool: read (attempt", "1m1s", "1.2k", "$0.25", "ordering", "queued",
			"ref-analyst refs-1", "ref-1 日本語", "complete", "4.2s", "failed: auth", "/src/bakery", "q quit")
	}
}

func TestEveryLineFitsTheScreen(t *testing.T) {
	t.Parallel()
	v := breadView()
	v.Runs[0].RunID = strings.Repeat("long-", 40) + "日本"
	v.Runs[1].Rounds[0].Lanes[0].RefID = strings.Repeat("参", 90)
	v.Runs[0].Rounds[0].Lanes[0].Warning = strings.Repeat("near its budget ", 20)
	keys := []string{"down", "up", "tab", "enter", "?", "c", "n", "/", "x", "esc", "g", "G", "pgdown"}
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(rapid.IntRange(smallestWidth, 220).Draw(t, "width"), rapid.IntRange(smallestHeight, 70).Draw(t, "height"), v)
		if rapid.Bool().Draw(t, "alone") {
			v := v
			v.Daemon = daemonView{Note: strings.Repeat("the daemon has gone ", 20)}
			s.Update(v)
		}
		s.press(rapid.SliceOfN(rapid.SampledFrom(keys), 0, 12).Draw(t, "keys")...)
		s.Update(transcriptRead{key: s.pane.key, entries: []lanes.TranscriptEntry{{Attempt: 1, Turn: 1, Key: "content:0", Type: "assistant-text", Text: wild().Draw(t, "text")}}})
		rows := strings.Split(s.View().Content, "\n")
		if len(rows) != s.height {
			t.Fatalf("%d lines on a screen of %d", len(rows), s.height)
		}
		for _, row := range rows {
			if lipgloss.Width(row) > s.width {
				t.Fatalf("%q is %d wide on a screen of %d", row, lipgloss.Width(row), s.width)
			}
		}
	})
}

func TestAScreenThatIsTooSmallSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	newStage(smallestWidth-1, 24, breadView()).shows(t, "40×10 is needed")
	newStage(80, smallestHeight-1, breadView()).shows(t, "40×10 is needed")
}

func TestTheTranscriptOfTheSelectedLaneIsReadOnFromWhereItWas(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	page := func(text string, next int64, more bool) transcriptRead {
		return transcriptRead{key: s.pane.key, next: next, more: more, entries: []lanes.TranscriptEntry{{Attempt: 1, Turn: 1, Key: "content:0", Type: "assistant-text", Text: text}}}
	}
	s.Update(watchTick{}) // one is on its way already
	s.Update(page("forty ", 30, true))
	s.Update(page("loaves", 60, false))
	s.shows(t, "forty loaves", "correctness · m-1 · 3 turns · following")
	s.Update(breadView()) // nothing has moved
	v := breadView()
	v.Runs[0].Rounds[0].Lanes[0].ElapsedMs++
	s.Update(v)
	late := page("of another", 99, false)
	s.press("down")
	s.Update(late)
	s.hides(t, "loaves", "of another")
	s.Update(transcriptRead{key: s.pane.key, err: errors.New("it cannot be read")})
	s.shows(t, "it cannot be read")
	want := []string{"read c1/correctness from 0", "read c1/correctness from 30", "read c1/correctness from 60", "read c1/ordering from 0"}
	if diff := cmp.Diff(want, s.orders); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
}

func TestThePaneFollowsUntilItIsScrolledBack(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	say := func(from, to int) {
		text := ""
		for i := from; i < to; i++ {
			text += fmt.Sprintf("line %d.\n", i)
		}
		s.Update(transcriptRead{key: s.pane.key, entries: []lanes.TranscriptEntry{{Attempt: 1, Turn: 1, Key: "content:0", Type: "assistant-text", Text: text}}})
		s.View()
	}
	say(0, 50)
	s.shows(t, "line 49.", "following")
	s.press("enter", "g")
	s.shows(t, "line 0.", "· 0%")
	say(50, 100)
	s.shows(t, "line 0.")
	s.press("j")
	s.hides(t, "line 0.")
	s.press("G")
	say(100, 120)
	s.shows(t, "line 119.", "following")
}

func TestWhatIsSelectedStaysSelectedWhateverMovesAroundIt(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	s.press("j")
	s.shows(t, "›    · ordering")
	v := breadView()
	fresh := v.Runs[0]
	fresh.RunID = "2027-newer"
	v.Runs = append([]runView{fresh}, v.Runs...)
	s.Update(v)
	if row := s.list.row(); row.lane.LaneID != "ordering" || row.run.RunID != "2026-bake-bread" {
		t.Errorf("%s of %s is selected", row.lane.LaneID, row.run.RunID)
	}
	s.Update(watchView{Daemon: v.Daemon})
	s.shows(t, "nothing is at work")
}

func TestTheFirstLaneIsSelectedUntilTheUserChooses(t *testing.T) {
	t.Parallel()
	v := breadView()
	s := newStage(80, 24, watchView{Daemon: v.Daemon})
	preparing := breadView()
	preparing.Runs = preparing.Runs[:1]
	preparing.Runs[0].Rounds[0].Lanes = nil
	s.Update(preparing)
	s.shows(t, "preparing")
	s.Update(v)
	s.shows(t, "›    ⠋ correctness")
	s.press("up")
	s.Update(v)
	s.shows(t, "›  ▾ ⠋ reviewer")
}

func TestTheFilterLeavesWhatMatchesAndWhatIsAboveIt(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	s.press("/", "C", "O", "R", "x", "backspace", "R")
	s.shows(t, "filter: CORR", "correctness", "2026-bake-bread", "reviewer round-1")
	s.hides(t, "ordering", "oven")
	s.press("enter")
	s.shows(t, "filter: CORR (esc clears)")
	s.press("esc", "/", "q", "q") // letters, not the end
	s.shows(t, "nothing matches the filter")
	s.press("esc")
	s.shows(t, "ordering", "ref-2 b")
	s.press("/")
	s.Update(tea.PasteMsg{Content: "ov\n"})
	s.press("backspace", "e", "n")
	s.shows(t, "oven", "ref-1")
	s.hides(t, "bread")
}

func TestRunsAndRoundsFold(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	s.press("up", "enter")
	s.shows(t, "▸ ", "reviewer round-1", "ref-2 b")
	s.hides(t, "correctness  ", "ordering")
	s.press("up", "h")
	s.hides(t, "▸ ⠋ reviewer round-1")
	s.press("l")
	s.shows(t, "▸ ⠋ reviewer round-1   ")
	s.hides(t, "ordering   ")
	s.press("down", "enter")
	s.shows(t, "▾ ⠋ reviewer round-1   ", "ordering   ")
}

func TestCancellingAsksFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys  []string
		order string
		says  string
	}{
		{[]string{"c", "y"}, "cancel c1/correctness correctness", ""},
		{[]string{"c", "a"}, "cancel c1/ reviewer round-1", ""},
		{[]string{"up", "c", "y"}, "cancel c1/ reviewer round-1", ""},
		{[]string{"up", "c", "a"}, "", "nothing was cancelled"},
		{[]string{"c", "q"}, "", "nothing was cancelled"},
		{[]string{"c", "esc"}, "", "nothing was cancelled"},
		{[]string{"c"}, "", "Cancel correctness? y = this lane, a = all of the round"},
		{[]string{"up", "c"}, "", "Cancel reviewer round-1? y = all its lanes"},
		{[]string{"g", "c", "y"}, "", ""},
		{[]string{"g", "c"}, "", "select a round or a lane"},
		{[]string{"G", "c"}, "", "this round has ended"},
	} {
		s := newStage(120, 24, breadView())
		if s.press(c.keys...) {
			t.Errorf("%v ends the screen", c.keys)
		}
		s.shows(t, c.says)
		got := ""
		for _, order := range s.orders {
			if strings.HasPrefix(order, "cancel") {
				got += order
			}
		}
		if got != c.order {
			t.Errorf("%v ordered %q, want %q", c.keys, got, c.order)
		}
	}
}

func TestWhatCameOfACancellationIsTold(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	s.Update(cancelAnswered{"ordering", nil})
	s.shows(t, "cancelling ordering")
	s.Update(cancelAnswered{"ordering", errors.New("it has\nended")})
	s.shows(t, "it has ended")
	s.press("j")
	s.hides(t, "it has ended")
}

func TestAScreenWithoutItsDaemonSaysSo(t *testing.T) {
	t.Parallel()
	v := breadView()
	v.Daemon.Connected, v.Daemon.Note = false, "the daemon has gone"
	s := newStage(80, 24, v)
	s.shows(t, "the daemon has gone", "correctness")
	s.press("c")
	s.shows(t, "there is nobody to cancel it")
	s.press("g")
	s.Update(breadView())
	s.shows(t, "1 running")
	s.hides(t, "has gone")
}

func TestThePaneTellsOfRunsAndRounds(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	s.press("up")
	s.shows(t, "state     at work", "workspace /src/bakery", "call      c1", "1200 tokens")
	s.press("up")
	s.shows(t, "run       2026-bake-bread", "⠋ correctness  tool: read")
	s.press("G")
	s.shows(t, "auth: 401: bad ␛[31mkey")
	s.press("k", "k")
	s.shows(t, "state     ended, its result was taken", "ref-2 b failed: 401: bad ␛[31mkey")
}

func TestHelpNamesEveryKey(t *testing.T) {
	t.Parallel()
	s := newStage(80, 24, breadView())
	s.press("?")
	for _, group := range s.keys.FullHelp() {
		for _, binding := range group {
			s.shows(t, binding.Help().Key+" ", binding.Help().Desc)
		}
	}
	if s.press("q") {
		t.Error("a key on the page of keys ends the screen")
	}
	s.shows(t, "correctness")
	if !s.press("q") {
		t.Error("q does not end the screen")
	}
}
