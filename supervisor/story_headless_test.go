package supervisor

import (
	"context"
	"errors"
	"path/filepath"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// execute carries the plan out without a session, as often as it takes. Its user has
// approved it once; where that is not on record the command is given again as it was.
func (w *teller) execute() {
	plan := filepath.Join(w.Workdir, "PLAN.md")
	digest, err := store.SHA256File(plan)
	w.must("read the plan", err)
	req := ExecuteRequest{
		Session: w.session, PlanPath: plan, Approve: digest,
		Review: ReviewRequest{Condition: execution.TerminationOptions[1], Model: ModelAnswer{Answered: true}},
	}
	dir, _, cp := w.look()
	if dir != nil && cp.Phase == store.PhaseCompleted {
		w.write(noteCompleted, dir.ID, nil)
		return
	}
	w.write(noteBegun, "", nil)
	if cp.Execution != nil { // it stands
		req.Approve = ""
	}
	for range 10 {
		w.places.cross("ask execute")
		result, err := w.system.Execute(context.Background(), req, func(event any) {
			if _, begun := event.(ExecutionStarted); begun {
				_, _, cp := w.look()
				w.write(noteApproved, cp.Execution.Approval.ApprovedAt, nil)
			}
		})
		w.places.cross("hear execute")
		var unapproved *ApprovalError
		switch {
		case errors.As(err, &unapproved):
			w.fatalf("the approval is lost: %v", err)
		case err != nil:
			w.fatalf("execute: %v", err)
		case result.Outcome == ExecutionCompleted:
			w.write(noteCompleted, result.RunID, nil)
			return
		case result.Outcome != ExecutionStopped:
			w.fatalf("ended with %+v", result)
		}
		req.Approve = ""
	}
	w.fatalf("the story does not come to its end")
}
