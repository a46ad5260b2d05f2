package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// executionRested judges an agent at rest: it is woken up while its plan has checks that
// have not passed, and left alone after some rounds without progress.
func (s *System) executionRested(ctx context.Context, session Session, e AgentSettledEvent) (Reply, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if r == nil {
		return Reply{Actions: s.idleStatus(ctx, session)}, nil
	}
	defer release()
	written, reply := s.settle(ctx, session, r, cp, e.HasUI)
	if written == nil || written.Phase != store.PhaseExecuting {
		return reply, nil
	}
	cp = *written
	if e.WakeFailed != "" {
		return s.pauseExecution(ctx, session, r, "the agent could not be woken up: "+oneLine(e.WakeFailed))
	}
	state := r.state(cp)
	before := r.wait
	switch r.wait.Rested(execution.Rest{
		Text: r.last.Text, StopReason: r.last.StopReason, Aborted: e.Aborted, Interactive: e.HasUI,
		Busy: !e.Idle || e.PendingMessages || r.compacting, Complete: state.Complete(), Snapshot: state.Snapshot(),
	}, rand.Text()) {
	case execution.VerdictPause:
		reason := r.wait.Paused
		r.wait.Paused = ""
		return s.pauseExecution(ctx, session, r, reason)
	case execution.VerdictWake:
		if err := s.keepWait(ctx, session, r); err != nil { // without a record it would be woken up for ever
			r.wait = before
			return Reply{}, err
		}
		r.flush = true
		return Reply{Actions: append(r.drain(cp), r.wake(s, cp), r.status(s.now(), cp))}, nil
	}
	return Reply{Actions: append(r.drain(cp), r.status(s.now(), cp))}, nil
}

// wake is the hidden message that lets the agent go on. Only the last one counts.
func (r *running) wake(s *System, cp store.Checkpoint) Action {
	details, _ := json.Marshal(map[string]string{"wakeId": r.wait.WakeID}) // a string: cannot fail
	send := sendMessage(Message{CustomType: "pi-plans-goal-wait", Content: r.context(s, cp), Details: details})
	send.TriggerTurn = true
	return send
}

// keepWait makes the counters durable.
func (s *System) keepWait(ctx context.Context, session Session, r *running) error {
	return s.changeFiles(ctx, session, "wake-agent", r.run.ID, func(f *files) error { return f.noteExecution(session.ID, r, passedChecks{}) })
}

// pauseExecution stops waking the agent up and tells its user, once.
func (s *System) pauseExecution(ctx context.Context, session Session, r *running, reason string) (Reply, error) {
	if r.wait.Paused != "" {
		return Reply{}, nil
	}
	before := r.wait
	r.wait.Pause(reason)
	cp, err := s.setPause(ctx, session, r)
	if err != nil {
		r.wait = before
		return Reply{}, err
	}
	r.flush = true
	return Reply{Actions: append(r.drain(cp), r.status(s.now(), cp),
		notice(LevelWarning, fmt.Sprintf("The execution is paused: %s. Write a message, or /plans-execute, to go on.", reason)))}, nil
}

// setPause makes the pause, or its end, durable.
func (s *System) setPause(ctx context.Context, session Session, r *running) (store.Checkpoint, error) {
	reason := r.wait.Paused
	return s.changeRun(ctx, session, "pause-execution", r.run.ID, func(context.Context, store.RunDir) (*planChange, error) {
		return &planChange{
			files: func(f *files) (any, error) { return nil, f.noteExecution(session.ID, r, passedChecks{}) },
			step: func(time.Time) store.Change {
				return approved("pause the execution", store.ExecutionProgressed(store.Progress{PausedReason: &reason}))
			},
		}, nil
	})
}

// executionInput ends a pause because the user has written something. What an extension
// sends is no word of the user.
func (s *System) executionInput(ctx context.Context, session Session, e InputEvent) (Reply, error) {
	if !e.external() {
		return Reply{}, nil
	}
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil || r == nil {
		return Reply{}, err
	}
	defer release()
	cp, resumed, err := s.resumeExecution(ctx, session, r, cp)
	if err != nil || !resumed {
		return Reply{}, err
	}
	return Reply{Actions: []Action{r.status(s.now(), cp)}}, nil
}

// resumeExecution ends a pause, if there is one.
func (s *System) resumeExecution(ctx context.Context, session Session, r *running, cp store.Checkpoint) (_ store.Checkpoint, resumed bool, _ error) {
	before := r.wait
	if !r.wait.Resume() {
		return cp, false, nil
	}
	cp, err := s.setPause(ctx, session, r)
	if err != nil {
		r.wait = before
		return cp, false, err
	}
	r.flush = true
	return cp, true, nil
}

// idleStatus is the status line of a session whose run is not being executed by it.
func (s *System) idleStatus(ctx context.Context, session Session) []Action {
	run, err := s.runAtWork(ctx, session)
	if err != nil || run == nil {
		return nil
	}
	record, err := run.Load()
	if err != nil {
		return nil
	}
	_, _, err = store.LatestPlan(record.ArtifactDir)
	return []Action{{Kind: ActionStatus, Key: statusKey, Text: execution.IdleLine(run.ID, string(record.Status), err == nil)}}
}
