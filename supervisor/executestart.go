package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// approved tells whether exactly this plan has an approval to be executed here already. It
// stands until the plan changes or the run moves.
func (h *handoff) approved() (bool, error) {
	cp, err := h.run.LoadCheckpoint()
	if errors.Is(err, store.ErrNoCheckpoint) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !samePlace(cp.WorktreeRoot, h.run.Root.Worktree) {
		return false, inputErrorf("run %s belongs to the work tree %s; /resume-plans moves it here", h.run.ID, cp.WorktreeRoot)
	}
	at := cp.Execution
	return cp.Phase == store.PhaseExecuting && at != nil && at.Approval != nil && at.Approval.Plan.SHA256 == h.plan.identity.SHA256, nil
}

// resume takes the execution up again. One that the user has stopped goes on by the
// user's word only.
func (h *handoff) resume(ctx context.Context, ui UI, byAgent bool) error {
	record, err := h.run.Load()
	if err != nil {
		return err
	}
	if byAgent && record.Status == store.StatusStopped {
		if !ui.Has() {
			return inputErrorf("the user has stopped the execution of run %s, and nobody sits before this session to let it go on", h.run.ID)
		}
		yes, err := ui.Confirm(ctx, "Go on with the execution that was stopped?", h.plan.path)
		if err != nil {
			return err
		}
		if !yes {
			h.declined = true
			return nil
		}
		if err := h.unchanged(); err != nil {
			return err
		}
	}
	h.resumed = true
	return h.begin(context.WithoutCancel(ctx))
}

// unchanged refuses an answer that came when the question was not the same any more.
func (h *handoff) unchanged() error {
	approved, err := h.approved()
	if err != nil {
		return err
	}
	sum, err := store.SHA256File(h.plan.path)
	if err != nil {
		return inputErrorf("the plan cannot be read: %v", err)
	}
	if !approved || sum != h.plan.identity.SHA256 {
		return inputErrorf("the execution of %s has changed while this was asked; ask again", h.plan.path)
	}
	return nil
}

// rehearse refuses what the approval would refuse, before anybody is asked for it.
func (h *handoff) rehearse() error {
	cp, err := loadOrCreateCheckpoint(h.run, h.s.services)
	if err != nil {
		return err
	}
	if cp.Plan != nil && cp.Phase != store.PhaseExecuting && cp.Plan.SHA256 != h.plan.identity.SHA256 {
		return inputErrorf("%s is not the plan on record, %s as it was when it was recorded; record this version with plans record-checkpoint, transition plan-written, and have it reviewed",
			h.plan.path, cp.Plan.Path)
	}
	trial := cp.Clone()
	return h.approve(store.Approval{Plan: h.plan.identity, Worktree: h.run.Root.Worktree, ApprovedAt: store.Stamp(h.s.now())})(&trial)
}

// question is what the user is asked to approve.
func (h *handoff) question() string {
	return fmt.Sprintf("%s\nversion %d, SHA-256 %s\nin %s\n\nWrite access is given until all of these hold:\n%s",
		h.plan.path, h.plan.identity.Version, h.plan.identity.SHA256, h.run.Root.Worktree,
		execution.NewState(h.parsed, h.ticked(), nil, "").Items())
}

// ticked are the checks that the plan itself has as done.
func (h *handoff) ticked() []string {
	var ids []string
	for _, check := range h.parsed.Checks {
		if check.Done {
			ids = append(ids, check.ID)
		}
	}
	return ids
}

// approve starts the execution, in place of that of another plan.
func (h *handoff) approve(approval store.Approval) store.Change {
	return func(cp *store.Checkpoint) error {
		trial := cp.Clone()
		if trial.Phase == store.PhaseExecuting && trial.Plan != nil && trial.Plan.SHA256 != approval.Plan.SHA256 {
			if err := allOf([]store.Change{store.ReturnedToPlanning(), store.PlanWritten(approval.Plan)})(&trial); err != nil {
				return err
			}
		}
		steps := []store.Change{approve(approval)}
		if ticked := h.ticked(); ticked != nil {
			steps = append(steps, store.ExecutionProgressed(store.Progress{DoneVCIDs: ticked}))
		}
		if err := allOf(steps)(&trial); err != nil {
			return err
		}
		*cp = trial
		return nil
	}
}

// start records the approval and begins. What the user has seen is what is approved: a
// file that has changed meanwhile is not.
func (h *handoff) start(ctx context.Context) error {
	_, err := h.s.changeRun(ctx, h.session, "approve-execution", h.run.ID, func(ctx context.Context, run store.RunDir) (*planChange, error) {
		sum, err := store.SHA256File(h.plan.path)
		if err != nil {
			return nil, inputErrorf("the plan cannot be read: %v", err)
		}
		if sum != h.plan.identity.SHA256 {
			return nil, inputErrorf("%s has changed while its approval was asked for; it was not approved, ask again", h.plan.path)
		}
		head, err := store.Head(ctx, run.Root.Worktree)
		if err != nil {
			return nil, err
		}
		verified, err := passedAt(ctx, run, h.ticked())
		if err != nil {
			return nil, err
		}
		at := store.Stamp(h.s.now())
		step := h.approve(store.Approval{Plan: h.plan.identity, Worktree: run.Root.Worktree, HeadAtApproval: head, ApprovedAt: at})
		return &planChange{
			files: func(f *files) (any, error) {
				if err := f.rehearse(step); err != nil {
					return nil, err
				}
				return nil, f.run.UpdateNotes(f.now(), func(notes *store.WorkflowNotes) {
					notes.Execution = &store.ExecutionNotes{Session: h.session.ID, ApprovedAt: at, PlanSHA256: h.plan.identity.SHA256, Verified: verified}
				})
			},
			step: func(time.Time) store.Change { return step },
		}, nil
	})
	if err != nil {
		return err
	}
	return h.begin(ctx)
}

// lift sets the run to executing, which ends the guard before its tools. An approval that
// is not durable must not do that, so it comes behind.
func (h *handoff) lift(ctx context.Context) error {
	return h.s.changeFiles(ctx, h.session, "start-execution", h.run.ID, func(f *files) error {
		_, err := f.run.SetStatus(store.StatusExecuting, f.now())
		return err
	})
}

// begin makes the execution the session's. What is left to do is told at once.
func (h *handoff) begin(ctx context.Context) error {
	if err := h.lift(ctx); err != nil {
		return err
	}
	h.s.turnTo(h.session.ID, h.run)
	r, cp, release, err := h.s.executionOf(ctx, h.session)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("begin the execution of run %s: it was taken back at once; look at it with `pilothouse show %s`", h.run.ID, h.run.ID)
	}
	defer release()
	if cp, _, err = h.s.resumeExecution(ctx, h.session, r, cp); err != nil {
		return err
	}
	h.context = r.context(h.s, cp)
	h.actions = append(h.actions, entry(runStartEntry, runStart{h.run.ID}))
	h.actions = append(h.actions, r.drain(cp)...)
	if !h.resumed {
		h.actions = append(h.actions, sendMessage(Message{CustomType: "pi-plans-exec-start", Content: r.state(cp).Started(r.planPath), Display: true}))
	}
	h.actions = append(h.actions, r.status(h.s.now(), cp))
	return nil
}

// wakeOnce sends an agent at rest on its way.
func (s *System) wakeOnce(ctx context.Context, session Session) ([]Action, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil || r == nil {
		return nil, err
	}
	defer release()
	before := r.wait
	r.wait.WakeID = rand.Text()
	if err := s.keepWait(ctx, session, r); err != nil {
		r.wait = before
		return nil, err
	}
	return []Action{r.wake(s, cp)}, nil
}
