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

// tokensPatience is how long tokens may wait for a turn that reports something, or for the
// agent's rest: a checkpoint grows with its run, and most turns only cost tokens. A crash
// in between loses the count of no more than that.
const tokensPatience = 30 * time.Second

// executionTurn takes a message of the agent into account: markers become durable, with
// the tokens spent so far, and the last check that passes completes the execution.
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
	r.hear(e.Text)
	if e.Usage != nil {
		r.unsaved.usage.InToks += max(0, e.Usage.Input)
		r.unsaved.usage.OutToks += max(0, e.Usage.Output)
		r.flush = true
	}
	reached := r.reached(cp)
	if !reached.changed && (reached.costless() || s.now().Sub(r.saved) < tokensPatience) {
		return Reply{Actions: []Action{r.status(s.now(), cp)}}, nil
	}
	written, reply := s.record(ctx, session, r, reached, e.HasUI)
	if written != nil && !reached.state.Complete() {
		reply.Actions = append(reply.Actions, r.status(s.now(), *written))
	}
	return reply, nil
}

// hear takes the markers of the agent's next message, each with what was said with it.
func (r *running) hear(text string) {
	for _, marker := range r.scanner.Scan(text) {
		r.unsaved.markers = append(r.unsaved.markers, marker)
		if marker.Kind != execution.MarkerDone {
			continue
		}
		if r.unsaved.evidence == nil {
			r.unsaved.evidence = map[string]string{}
		}
		r.unsaved.evidence[marker.ID] = excerpt(text)
	}
}

// settle makes durable what was reported and is not yet, and returns the checkpoint as it
// is then; nil when it could not be written. The reply tells of that, or of the end of
// the execution.
func (s *System) settle(ctx context.Context, session Session, r *running, cp store.Checkpoint, hasUI bool) (*store.Checkpoint, Reply) {
	reached := r.reached(cp)
	if !reached.changed && reached.costless() {
		return &cp, Reply{}
	}
	return s.record(ctx, session, r, reached, hasUI)
}

// record makes durable what was reached. The checkpoint is nil when that could not be
// written: it is kept for the next attempt, unless the run is another's now. The reply
// tells of that, or of the end of the execution.
func (s *System) record(ctx context.Context, session Session, r *running, t *reachedTurn, hasUI bool) (*store.Checkpoint, Reply) {
	written, err := s.recordTurn(ctx, session, r, t)
	switch {
	case notOurs(err):
		r.lost = true
		return nil, notify(LevelError, fmt.Sprintf("The execution goes on elsewhere: %v", err))
	case err != nil:
		s.logger.Error("progress of an execution not written", "run", r.run.ID, "error", err)
		return nil, notify(LevelError, fmt.Sprintf("Progress could not be written and is tried again after the next turn: %v", err))
	}
	r.unsaved, r.stale, r.flush, r.saved = unsavedTurn{}, t.stale, true, s.now()
	if t.state.Complete() {
		return &written, Reply{Actions: r.completed(written, hasUI)}
	}
	return &written, Reply{}
}

// settleSeat makes durable what a session has reported, before it is left.
func (s *System) settleSeat(ctx context.Context, sessionID string) {
	seat := s.executions.seat(sessionID)
	defer seat.mu.Unlock()
	r := seat.at
	if r == nil || r.lost {
		return
	}
	cp, err := r.run.LoadCheckpoint()
	if err != nil || cp.Phase != store.PhaseExecuting || cp.Execution == nil {
		return // there is nothing that it could be added to
	}
	s.settle(ctx, Session{ID: sessionID, Workdir: r.run.Root.Workdir}, r, cp, false)
}

// reachedTurn is what one or several messages have reached together.
type reachedTurn struct {
	state    *execution.State
	changed  bool // something was reached that is not on record
	progress store.Progress
	stale    []string // left after it
	passed   []string
	reverify bool // whether the flag has to be cleared
}

// costless tells that no tokens were spent.
func (t *reachedTurn) costless() bool {
	return t.progress.Usage.InToks == 0 && t.progress.Usage.OutToks == 0
}

// reached applies what is unsaved. Markers that change nothing, because what they name is
// not known or known already, are dropped.
func (r *running) reached(cp store.Checkpoint) *reachedTurn {
	t := &reachedTurn{state: r.state(cp), stale: slices.Clone(r.stale)}
	for _, marker := range r.unsaved.markers {
		if !t.state.Apply(marker) {
			continue
		}
		t.changed = true
		if marker.Kind == execution.MarkerDone {
			t.passed = append(t.passed, marker.ID)
			t.stale = slices.DeleteFunc(t.stale, func(id string) bool { return id == marker.ID })
		}
	}
	t.changed = t.changed || t.state.Complete()
	t.progress.Usage = r.unsaved.usage
	t.reverify = cp.Execution.MustReverify() && len(t.stale) == 0
	if !t.changed {
		r.unsaved.markers, r.unsaved.evidence = nil, nil
		return t
	}
	current := t.state.Current()
	t.progress.DoneVCIDs, t.progress.ImplStatus, t.progress.CurrentI = t.state.Done(), t.state.Implementation(), &current
	return t
}

// recordTurn makes a turn durable in one write.
func (s *System) recordTurn(ctx context.Context, session Session, r *running, t *reachedTurn) (store.Checkpoint, error) {
	return s.changeRun(ctx, session, "record-turn", r.run.ID, func(ctx context.Context, run store.RunDir) (*planChange, error) {
		commits, err := passedAt(ctx, run, t.passed)
		if err != nil {
			return nil, err
		}
		passed := passedChecks{commits: commits, evidence: map[string]string{}}
		for _, id := range t.passed {
			passed.evidence[id] = r.unsaved.evidence[id]
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
				if len(t.passed) > 0 {
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
func (r *running) completed(cp store.Checkpoint, hasUI bool) []Action {
	r.flush = false
	actions := []Action{
		r.snapshot(cp),
		entry(executionClearedEntry, map[string]string{"reason": "complete"}),
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
	usage := r.usage(cp)
	return Action{Kind: ActionStatus, Key: statusKey, Text: r.state(cp).StatusLine(spent, execution.Usage{In: usage.InToks, Out: usage.OutToks}, r.wait)}
}

func (r *running) idleStatus(status store.RunStatus) Action {
	return Action{Kind: ActionStatus, Key: statusKey, Text: execution.IdleLine(r.run.ID, string(status), true)}
}
