package supervisor

import (
	"errors"
	"fmt"

	"pilothouse/store"
)

// setStatus is the change behind the action set-status.
func setStatus(session Session, run store.RunDir, p PlansAction) (*planChange, error) {
	status := store.RunStatus(p.Status)
	if !status.Valid() {
		return nil, inputErrorf("status %q is none of planning, accepted, executing, stopped, abandoned, done", p.Status)
	}
	return &planChange{files: func(f *files) (any, error) {
		if err := mayBecome(f, session, status); err != nil {
			return nil, err
		}
		return run.SetStatus(status, f.now())
	}}, nil
}

// mayBecome refuses a status by which an agent would give itself write access. Where a plan
// is carried out, its user has approved it as it is on disk; and what keeps the workspace
// read-only while a plan is made is ended by its user, who is asked by the commands for it.
// A command line is the user's own word.
func mayBecome(f *files, session Session, status store.RunStatus) error {
	step := fmt.Sprintf("set run %s to %s", f.run.ID, status)
	if status == store.StatusExecuting {
		cp, err := f.run.LoadCheckpoint()
		if err != nil && !errors.Is(err, store.ErrNoCheckpoint) {
			return err
		}
		if terms := termsOf(cp, nil, store.WorkflowNotes{}); terms == nil || terms.handoff != "" {
			return &store.StateError{Step: step, Reason: "its plan, as it is on disk, has no approval of the user; hand it off with execute_plan"}
		}
		return nil
	}
	if session.ID == "" || status == store.StatusPlanning || status == store.StatusAccepted {
		return nil
	}
	record, err := f.run.Load()
	if err != nil {
		return err
	}
	if record.Status == store.StatusPlanning || record.Status == store.StatusAccepted {
		return &store.StateError{Step: step, Reason: "only the user ends planning: ask for /plans-stop, which pauses the run, or /plans-abandon, which gives it up"}
	}
	return nil
}
