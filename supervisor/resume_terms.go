package supervisor

import (
	"pilothouse/store"
)

// terms tell on what terms an execution may go on after its session has gone
// (spec: checkpoint 2.5).
type terms struct {
	// handoff says why the plan has to be approved again before anything is changed, ""
	// when the approval stands.
	handoff string
	// verified are the items that were verified.
	verified []string
	// reverify tells that they have to be verified again, before anything else.
	reverify bool
}

// termsOf judges the execution on record by the plan file and the commit that is
// checked out now. Nil when nothing is being executed. The same plan on another
// commit keeps its approval: what was verified is verified again first (seed:
// Workflow Checkpoints).
func termsOf(cp store.Checkpoint, head *string) *terms {
	execution := cp.Execution
	if cp.Phase != store.PhaseExecuting || execution == nil || cp.Plan == nil {
		return nil
	}
	s := &terms{verified: execution.DoneVCIDs}
	sum, err := store.SHA256File(cp.Plan.Path)
	switch {
	case err != nil:
		s.handoff = "the plan " + cp.Plan.Path + " cannot be read"
	case sum != cp.Plan.SHA256:
		s.handoff = "the plan " + cp.Plan.Path + " has changed since the approval"
	case execution.Approval == nil:
		s.handoff = "the run has moved to another work tree, where it was not approved"
	default:
		at := execution.Approval.HeadAtApproval
		s.reverify = execution.MustReverify() || at == nil || head == nil || *at != *head
	}
	return s
}
