package main

import (
	"fmt"
	"time"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"pilothouse/lanes"
	"pilothouse/supervisor/api"
)

// drawPause is how often times and marks move.
const drawPause = 200 * time.Millisecond

// watchScreen is `pilothouse watch` at a terminal.
type watchScreen struct {
	view          watchView
	width, height int
	list          watchList
	pane          watchPane
	reading       bool // keys go to the pane
	typing        bool // keys go to the filter
	helping       bool
	question      *watchQuestion
	note          string // of what came of the last order, until the next key
	keys          watchKeys
	help          help.Model
	frame         int

	// read and cancel ask the daemon and answer with a message.
	read   func(key, call, lane string, from int64)
	cancel func(call, lane, name string)
}

// watchQuestion is asked before anything is cancelled. Lane is "" when only the round as
// a whole can be.
type watchQuestion struct{ call, round, lane string }

// Messages of the screen besides those of the terminal.
type (
	watchTick struct{}
	// cancelAnswered is what came of a cancellation.
	cancelAnswered struct {
		name string
		err  error
	}
)

func newWatchScreen() *watchScreen {
	s := &watchScreen{list: watchList{folded: map[string]bool{}}, pane: newWatchPane(), keys: newWatchKeys(), help: help.New()}
	s.help.Styles = help.Styles{ShortKey: bold, ShortDesc: faint, FullKey: bold}
	return s
}

func nextWatchTick() tea.Cmd {
	return tea.Tick(drawPause, func(time.Time) tea.Msg { return watchTick{} })
}

// Init starts the clock of the screen.
func (s *watchScreen) Init() tea.Cmd { return nextWatchTick() }

// Update takes a message.
func (s *watchScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case watchTick:
		s.frame++
		cmd = nextWatchTick()
	case watchView:
		s.view = msg
		s.list.show(msg)
	case transcriptRead:
		s.pane.take(msg)
	case cancelAnswered:
		s.note = "cancelling " + msg.name
		if msg.err != nil {
			s.note = msg.err.Error()
		}
	case tea.PasteMsg:
		if s.typing {
			s.setFilter(s.list.filter + plainLine(msg.Content))
		}
	case tea.KeyPressMsg:
		cmd = s.press(msg)
	}
	if row := s.list.row(); s.pane.point(row, s.view.Daemon.Connected) {
		s.read(row.key(), row.round.Call, row.lane.LaneID, s.pane.offset)
	}
	return s, cmd
}

func (s *watchScreen) press(msg tea.KeyPressMsg) tea.Cmd {
	s.note = ""
	if msg.String() == "ctrl+c" {
		return tea.Quit
	}
	switch {
	case s.question != nil:
		s.answer(msg)
		return nil
	case s.typing:
		s.typeFilter(msg)
		return nil
	case s.helping:
		s.helping = false
		return nil
	}
	k := s.keys
	switch {
	case key.Matches(msg, k.quit):
		return tea.Quit
	case msg.String() == "ctrl+z":
		return tea.Suspend
	case key.Matches(msg, k.help):
		s.helping = true
	case key.Matches(msg, k.filter):
		s.typing, s.reading = true, false
	case msg.String() == "esc":
		if !s.reading {
			s.setFilter("")
		}
		s.reading = false
	case key.Matches(msg, k.cancel):
		s.ask()
	case key.Matches(msg, k.other):
		s.reading = !s.reading
	case key.Matches(msg, k.open):
		s.open()
	case s.reading:
		s.pressPane(msg)
	default:
		s.pressList(msg)
	}
	return nil
}

func (s *watchScreen) open() {
	row := s.list.row()
	switch {
	case row == nil:
	case row.lane != nil:
		s.reading = !s.reading
	default:
		s.list.fold()
		s.list.show(s.view)
	}
}

func (s *watchScreen) pressList(msg tea.KeyPressMsg) {
	k, page := s.keys, max(1, s.place().listHeight-1)
	switch {
	case key.Matches(msg, k.up):
		s.list.move(-1)
	case key.Matches(msg, k.down):
		s.list.move(1)
	case key.Matches(msg, k.pageUp):
		s.list.move(-page)
	case key.Matches(msg, k.pageDown):
		s.list.move(page)
	case key.Matches(msg, k.top):
		s.list.move(-len(s.list.rows))
	case key.Matches(msg, k.bottom):
		s.list.move(len(s.list.rows))
	case key.Matches(msg, k.fold):
		s.list.fold()
		s.list.show(s.view)
	}
}

func (s *watchScreen) pressPane(msg tea.KeyPressMsg) {
	moves := []struct {
		keys key.Binding
		move func(*viewport.Model)
	}{
		{s.keys.up, func(v *viewport.Model) { v.ScrollUp(1) }},
		{s.keys.down, func(v *viewport.Model) { v.ScrollDown(1) }},
		{s.keys.pageUp, (*viewport.Model).PageUp},
		{s.keys.pageDown, (*viewport.Model).PageDown},
		{s.keys.top, func(v *viewport.Model) { v.GotoTop() }},
		{s.keys.bottom, func(v *viewport.Model) { v.GotoBottom() }},
	}
	for _, m := range moves {
		if key.Matches(msg, m.keys) {
			s.pane.scroll(m.move)
			return
		}
	}
}

// typeFilter takes a key while the filter is being typed.
func (s *watchScreen) typeFilter(msg tea.KeyPressMsg) {
	switch msg.String() {
	case "enter", "tab", "down", "up":
		s.typing = false
	case "esc":
		s.typing = false
		s.setFilter("")
	case "backspace":
		if runes := []rune(s.list.filter); len(runes) > 0 {
			s.setFilter(string(runes[:len(runes)-1]))
		}
	case "ctrl+u":
		s.setFilter("")
	default:
		s.setFilter(s.list.filter + plainLine(msg.Text))
	}
}

func (s *watchScreen) setFilter(text string) {
	s.list.filter = text
	s.list.show(s.view)
}

// ask asks whether the selected lane or its round is to be cancelled.
func (s *watchScreen) ask() {
	row := s.list.row()
	switch {
	case row == nil || row.round == nil:
		s.note = "select a round or a lane to cancel"
	case row.round.State != api.StateRunning:
		s.note = "this round has ended; there is nothing to cancel"
	case !s.view.Daemon.Connected:
		s.note = "the daemon has gone; there is nobody to cancel it"
	default:
		s.question = &watchQuestion{call: row.round.Call, round: roundName(row.round)}
		if lane := row.lane; lane != nil && (lane.Status == lanes.Running || lane.Status == lanes.Queued) {
			s.question.lane = lane.LaneID
		}
	}
}

func (q *watchQuestion) String() string {
	if q.lane != "" {
		return fmt.Sprintf("Cancel %s? y = this lane, a = all of the round, any other key = no", plainLine(q.lane))
	}
	return fmt.Sprintf("Cancel %s? y = all its lanes, any other key = no", q.round)
}

// answer takes the answer to the question; anything else is no.
func (s *watchScreen) answer(msg tea.KeyPressMsg) {
	q := *s.question
	s.question = nil
	switch answer := msg.String(); {
	case answer == "y" && q.lane != "":
		s.cancel(q.call, q.lane, plainLine(q.lane))
	case answer == "y", answer == "a" && q.lane != "":
		s.cancel(q.call, "", q.round)
	default:
		s.note = "nothing was cancelled"
	}
}
