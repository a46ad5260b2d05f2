package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"pilothouse/store"
)

// entryAutoComplete is the entry of a session that tells whether its questions answer
// themselves (spec: execution 5.6).
const entryAutoComplete = "pi-plans-autocomplete"

// autoCompletes tells whether the questions of a session are answered with the
// recommended option: it was switched on for this run, by this session, and the run is
// still being planned.
func (s *System) autoCompletes(session Session, run *store.RunDir) bool {
	if run == nil {
		return false
	}
	notes, err := run.LoadNotes()
	if err != nil || notes.AutoComplete != session.ID {
		return false // asking is always right
	}
	record, err := run.Load()
	return err == nil && record.Status == store.StatusPlanning
}

// autoComplete switches on that the questions of a session answer themselves. It does
// nothing without a run that is being planned. The actions tell the session.
func (s *System) autoComplete(ctx context.Context, session Session, run *store.RunDir) ([]Action, error) {
	if run == nil || s.autoCompletes(session, run) {
		return nil, nil
	}
	if record, err := run.Load(); err != nil || record.Status != store.StatusPlanning {
		return nil, err
	}
	if err := s.noteAutoComplete(ctx, session, *run, session.ID); err != nil {
		return nil, err
	}
	return []Action{autoCompleteEntry(*run, true, "")}, nil
}

// stopAutoComplete switches it off, if it is on for this session.
func (s *System) stopAutoComplete(ctx context.Context, session Session, run *store.RunDir, reason string) ([]Action, error) {
	if run == nil {
		return nil, nil
	}
	if notes, err := run.LoadNotes(); err != nil || notes.AutoComplete != session.ID {
		return nil, nil // what cannot be read switches nothing on
	}
	if err := s.noteAutoComplete(ctx, session, *run, ""); err != nil {
		return nil, err
	}
	return []Action{autoCompleteEntry(*run, false, reason)}, nil
}

func (s *System) noteAutoComplete(ctx context.Context, session Session, run store.RunDir, id string) error {
	return s.changeFiles(ctx, session, "auto-complete", run.ID, func(f *files) error {
		return f.run.UpdateNotes(f.now(), func(notes *store.WorkflowNotes) { notes.AutoComplete = id })
	})
}

func autoCompleteEntry(run store.RunDir, enabled bool, reason string) Action {
	entry := struct {
		RunID   string `json:"runId"`
		Enabled bool   `json:"enabled"`
		Reason  string `json:"reason,omitempty"`
	}{run.ID, enabled, reason}
	data, _ := json.Marshal(entry) // strings and a bool: cannot fail
	return Action{Kind: ActionEntry, CustomType: entryAutoComplete, Data: data}
}

// stopAutoCompleteCommand is /plans-autocomplete-stop.
func stopAutoCompleteCommand(ctx context.Context, s *System, session Session, _ UI, _ json.RawMessage) (Reply, error) {
	run, err := s.runAtWork(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	actions, err := s.stopAutoComplete(ctx, session, run, "stopped by the user")
	if err != nil {
		return Reply{}, err
	}
	if len(actions) == 0 {
		return notify(LevelInfo, "Auto-complete is not on."), nil
	}
	return Reply{Actions: append(actions, notice(LevelInfo, fmt.Sprintf("Auto-complete is off for run %s; you are asked again.", run.ID)))}, nil
}

// choices count, turn by turn, how the questions of each session were answered.
type choices struct {
	mu sync.Mutex
	of map[string]*turnChoices // by session id
}

type turnChoices struct {
	open              bool // a question of the session is being asked
	automatic, chosen int  // of this turn
	written           bool // a plan was written in this turn
	queued            bool // the agent has been told to go on and has not come to it
}

func (c *choices) change(session string, change func(*turnChoices)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]*turnChoices{}
	}
	turn := c.of[session]
	if turn == nil {
		turn = &turnChoices{}
		c.of[session] = turn
	}
	change(turn)
}

// begin reserves the session for one question; free is false while another is open.
func (c *choices) begin(session string) (done func(), free bool) {
	c.change(session, func(t *turnChoices) { t.open, free = true, !t.open })
	return func() { c.change(session, func(t *turnChoices) { t.open = false }) }, free
}

// made counts an answer.
func (c *choices) made(session string, automatic bool) {
	c.change(session, func(t *turnChoices) {
		if automatic {
			t.automatic++
		} else {
			t.chosen++
		}
	})
}

// wrote notes that a plan was written.
func (c *choices) wrote(session string) { c.change(session, func(t *turnChoices) { t.written = true }) }

// turnEnded ends a turn and tells whether the agent has to be told to go on: all
// questions of the turn answered themselves, no plan came of it, and it was not told yet.
// A turn that calls no tool is the last one before a message that waits is delivered.
func (c *choices) turnEnded(session string, last bool) (tell bool) {
	c.change(session, func(t *turnChoices) {
		if last {
			t.queued = false
		}
		tell = t.automatic > 0 && t.chosen == 0 && !t.written && !t.queued
		*t = turnChoices{open: t.open, queued: t.queued || tell}
	})
	return tell
}

// rested forgets what was told to an agent that has come to rest.
func (c *choices) rested(session string) {
	c.change(session, func(t *turnChoices) { t.queued = false })
}

// end forgets a session.
func (c *choices) end(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, session)
}

// autoCompleteFollowUp tells the agent to go on after a turn whose questions answered
// themselves.
func (s *System) autoCompleteFollowUp(session Session, last bool) []Action {
	if !s.choices.turnEnded(session.ID, last) {
		return nil
	}
	return []Action{{
		Kind: ActionUser, DeliverAs: deliverFollowUp,
		Text: "Auto-complete answered the questions of this turn with the recommended options. Go on planning with them: " +
			"ask what is still open with ask_choice, and write the next version of the plan when nothing is.",
	}}
}

// deliverFollowUp hands a message to an agent once it has nothing more to do.
const deliverFollowUp = "followUp"
