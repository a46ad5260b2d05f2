package supervisor

import (
	"context"
	"time"

	"pilothouse/store"
)

// ApproveExecution records that the user let a plan be executed: its exact bytes,
// the work tree and HEAD at this moment (spec: checkpoint 2.5). PlanPath is relative
// to the session's directory; "" is the plan on record. An execution that is approved
// already is not started over. Errors: *InputError, *store.OwnedError, and
// *store.StateError when the plan is not the one on record or the phase has none to
// execute.
func (s *System) ApproveExecution(ctx context.Context, session Session, runID, planPath string) (store.Checkpoint, error) {
	return s.changeRun(ctx, session, "approve-execution", runID, func(ctx context.Context, run store.RunDir) (*planChange, error) {
		path, err := planToExecute(session, run, planPath)
		if err != nil {
			return nil, err
		}
		plan, err := store.IdentifyPlan(path)
		if err != nil {
			return nil, inputErrorf("the plan cannot be read: %v", err)
		}
		head, err := store.Head(ctx, run.Root.Worktree)
		if err != nil {
			return nil, err
		}
		return &planChange{step: func(now time.Time) store.Change {
			return approve(store.Approval{Plan: plan, Worktree: run.Root.Worktree, HeadAtApproval: head, ApprovedAt: store.Stamp(now)})
		}}, nil
	})
}

// planToExecute is the path that a call names, else the plan on record.
func planToExecute(session Session, run store.RunDir, planPath string) (string, error) {
	if planPath != "" {
		path, err := session.within(planPath)
		if err != nil {
			return "", inputErrorf("plan %s: %v", planPath, err)
		}
		return path, nil
	}
	cp, err := run.LoadCheckpoint()
	if err != nil {
		return "", err
	}
	if cp.Plan == nil {
		return "", inputErrorf("run %s has no plan on record; name the plan file", run.ID)
	}
	return cp.Plan.Path, nil
}

// approve is [store.ExecutionApproved] for a user who has just been asked. During an
// execution only a move to another work tree makes the approval due again.
func approve(approval store.Approval) store.Change {
	return func(cp *store.Checkpoint) error {
		trial := cp.Clone()
		if trial.Phase != store.PhaseExecuting {
			if err := store.HandoffOffered()(&trial); err != nil {
				return err
			}
		}
		if err := store.ExecutionApproved(approval)(&trial); err != nil {
			return err
		}
		*cp = trial
		return nil
	}
}

// RecordProgress records what an execution has reached since its last report: the
// verification items that are done, the state of its implementation items, a pause,
// and the tokens used meanwhile, which are added up. It returns the checkpoint as
// written. Errors: *store.OwnedError, *store.StateError when nothing is executed or
// its approval is to be given again, as after a move to another work tree.
func (s *System) RecordProgress(ctx context.Context, session Session, runID string, progress store.Progress) (store.Checkpoint, error) {
	return s.stepExecution(ctx, session, "record-progress", runID, approved("record progress", store.ExecutionProgressed(progress)))
}

// CompleteExecution moves a run whose items are all verified on to the review of the
// implementation. Errors as of [System.RecordProgress].
func (s *System) CompleteExecution(ctx context.Context, session Session, runID string) (store.Checkpoint, error) {
	return s.stepExecution(ctx, session, "complete-execution", runID, approved("complete execution", store.ExecutionCompleted()))
}

// approved is a step that only an approved execution takes.
func approved(what string, step store.Change) store.Change {
	return func(cp *store.Checkpoint) error {
		if cp.Execution != nil && cp.Execution.Approval == nil {
			return &store.StateError{Step: what, Reason: "the execution is not approved in this work tree; ask for approval first"}
		}
		return step(cp)
	}
}

// ReturnToPlanning takes an execution back because its plan is to be revised. The
// approval goes with it; what the execution has used stays on record. Errors as of
// [System.RecordProgress].
func (s *System) ReturnToPlanning(ctx context.Context, session Session, runID string) (store.Checkpoint, error) {
	return s.stepExecution(ctx, session, "return-to-planning", runID, store.ReturnedToPlanning())
}

func (s *System) stepExecution(ctx context.Context, session Session, what, runID string, step store.Change) (store.Checkpoint, error) {
	return s.changeRun(ctx, session, what, runID, func(context.Context, store.RunDir) (*planChange, error) {
		return &planChange{step: func(time.Time) store.Change { return step }}, nil
	})
}
