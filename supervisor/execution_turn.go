package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// statusKey is the part of a session's status line that is ours (spec: execution 5.3).
const statusKey = "pi-plans"

// executionTurn takes a message of the agent into account: markers and tokens become
// durable, and the last check that passes completes the execution. What cannot be
// written is kept for the next turn, unless the run is another's now.
func (s *System) executionTurn(ctx context.Context, session Session, e TurnEndEvent) (Reply, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if r == nil {
		return Reply{}, nil
	}
	defer release()
	r.last = e
	r.unsaved.markers = append(r.unsaved.markers, r.scanner.Scan(e.Text)...)
	if e.Usage != nil {
		r.unsaved.usage.InToks += max(0, e.Usage.Input)
		r.unsaved.usage.OutToks += max(0, e.Usage.Output)
	}
	reached := r.reached(cp)
	if reached == nil {
		r.unsaved.markers = nil // of nothing that is known, or known already
		return Reply{Actions: []Action{r.status(s.now(), cp)}}, nil
	}
	written, err := s.recordTurn(ctx, session, r, reached)
	switch {
	case notOurs(err):
		r.lost = true
		return Reply{Actions: []Action{notice(LevelError, fmt.Sprintf("The execution goes on elsewhere: %v", err))}}, nil
	case err != nil:
		s.logger.Error("progress of an execution not written", "run", r.run.ID, "error", err)
		return Reply{Actions: []Action{notice(LevelError, fmt.Sprintf("Progress could not be written and is tried again after the next turn: %v", err))}}, nil
	}
	r.unsaved, r.stale, r.flush = unsavedTurn{}, reached.stale, true
	if reached.state.Complete() {
		return Reply{Actions: r.completed(s.now(), written, e.HasUI)}, nil
	}
	return Reply{Actions: []Action{r.status(s.now(), written)}}, nil
}

// reachedTurn is what one or several messages have reached together.
type reachedTurn struct {
	state    *execution.State
	progress store.Progress
	stale    []string // left after it
	passed   []string
	reverify bool // whether the flag has to be cleared
}

// reached applies what is unsaved; nil when that changes nothing.
func (r *running) reached(cp store.Checkpoint) *reachedTurn {
	t := &reachedTurn{state: r.state(cp), stale: slices.Clone(r.stale)}
	changed := false
	for _, marker := range r.unsaved.markers {
		if !t.state.Apply(marker) {
			continue
		}
		changed = true
		if marker.Kind == execution.MarkerDone {
			t.passed = append(t.passed, marker.ID)
			t.stale = slices.DeleteFunc(t.stale, func(id string) bool { return id == marker.ID })
		}
	}
	t.progress.Usage = r.unsaved.usage
	if !changed && t.progress.Usage.InToks == 0 && t.progress.Usage.OutToks == 0 {
		return nil
	}
	current := t.state.Current()
	t.progress.DoneVCIDs, t.progress.ImplStatus, t.progress.CurrentI = t.state.Done(), t.state.Implementation(), &current
	t.reverify = cp.Execution.MustReverify() && len(t.stale) == 0
	return t
}

// recordTurn makes a turn durable in one write.
func (s *System) recordTurn(ctx context.Context, session Session, r *running, t *reachedTurn) (store.Checkpoint, error) {
	return s.changeRun(ctx, session, "record-turn", r.run.ID, func(ctx context.Context, run store.RunDir) (*planChange, error) {
		passed, err := passedAt(ctx, run, t.passed)
		if err != nil {
			return nil, err
		}
		steps := []store.Change{store.ExecutionProgressed(t.progress)}
		if t.reverify {
			steps = append(steps, store.Reverified())
		}
		if t.state.Complete() {
			steps = append(steps, store.ExecutionCompleted())
		}
		step := approved("record progress", allOf(steps))
		return &planChange{
			files: func(f *files) (any, error) {
				if err := f.rehearse(step); err != nil {
					return nil, err
				}
				if len(passed) > 0 {
					if err := f.noteExecution(session.ID, r, passed); err != nil {
						return nil, err
					}
				}
				if t.state.Complete() {
					return f.run.SetStatus(store.StatusDone, f.now())
				}
				return nil, nil
			},
			step: func(time.Time) store.Change { return step },
		}, nil
	})
}

// passedAt is the commit that is checked out now, for each of the checks. Without a commit
// there is nothing that they could hold for.
func passedAt(ctx context.Context, run store.RunDir, ids []string) (map[string]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	head, err := store.Head(ctx, run.Root.Worktree)
	if err != nil || head == nil {
		return nil, err
	}
	passed := map[string]string{}
	for _, id := range ids {
		passed[id] = *head
	}
	return passed, nil
}

// rehearse tells whether the checkpoint takes a step, before anything beside it is written.
func (f *files) rehearse(step store.Change) error {
	cp, err := f.run.LoadCheckpoint()
	if err != nil {
		return err
	}
	trial := cp.Clone()
	if err := step(&trial); err != nil && !errors.Is(err, store.ErrNoChange) {
		return err
	}
	return nil
}

// completed is what a session does when the last check has passed: the last snapshot, a
// summary, and, with somebody to ask, the beginning of the review of the implementation.
func (r *running) completed(now time.Time, cp store.Checkpoint, hasUI bool) []Action {
	r.flush = false
	actions := []Action{
		r.snapshot(cp),
		entry("pi-plans-exec-cleared", map[string]string{"reason": "complete"}),
	}
	summary := Message{CustomType: "pi-plans-complete", Content: r.state(cp).Completed(r.planPath), Display: true}
	if !hasUI {
		return append(actions, sendMessage(summary), r.idleStatus(store.StatusDone))
	}
	summary.Content += "\n\nThe plan is carried out; now its implementation is reviewed. " + execution.TerminationInstructions()
	send := sendMessage(summary)
	send.TriggerTurn, send.DeliverAs = true, deliverFollowUp
	return append(actions,
		entry("pi-plans-ameliorate", map[string]any{"planPath": r.planPath, "phase": "goal-started", "rounds": nil, "currentRound": 0}),
		send, r.idleStatus(store.StatusDone))
}

func sendMessage(m Message) Action { return Action{Kind: ActionSend, Message: &m} }

// status is the line of an execution in the session's status line.
func (r *running) status(now time.Time, cp store.Checkpoint) Action {
	spent := time.Duration(0)
	if began, err := time.Parse(time.RFC3339, r.approval.ApprovedAt); err == nil { // the shape is checked, the calendar is not
		spent = now.Sub(began)
	}
	usage := execution.Usage{In: cp.Execution.Usage.InToks, Out: cp.Execution.Usage.OutToks}
	return Action{Kind: ActionStatus, Key: statusKey, Text: r.state(cp).StatusLine(spent, usage, r.wait)}
}

func (r *running) idleStatus(status store.RunStatus) Action {
	return Action{Kind: ActionStatus, Key: statusKey, Text: execution.IdleLine(r.run.ID, string(status), true)}
}
