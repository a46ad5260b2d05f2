package supervisor

import (
	"slices"

	"pilothouse/store"
)

// terms tell on what terms an execution may go on after its session has gone
// (spec: checkpoint 2.5).
type terms struct {
	// handoff says why the plan has to be approved again before anything is changed, ""
	// when the approval stands.
	handoff string
	// verified are the checks that have passed.
	verified []string
	// stale are those of them that passed on another commit than the one checked out now:
	// they have to be verified again, before anything else.
	stale []string
	// moved tells that another commit is checked out than at the approval, or that an
	// earlier session found it so.
	moved bool
}

// termsOf judges the execution on record by the plan file and the commit that is
// checked out now. Nil when nothing is being executed. The same plan on another
// commit keeps its approval: what was verified is verified again first (seed:
// Workflow Checkpoints). At which commit a check passed is noted; where it is not, the
// commit of the approval counts.
func termsOf(cp store.Checkpoint, head *string, notes store.WorkflowNotes) *terms {
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
		s.moved = execution.MustReverify() || at == nil || head == nil || *at != *head
	}
	if !s.moved {
		return s
	}
	var passedAt map[string]string
	if notes.Execution.Of(*execution.Approval) {
		passedAt = notes.Execution.Verified
	}
	for _, id := range s.verified {
		if head == nil || passedAt[id] != *head {
			s.stale = append(s.stale, id)
		}
	}
	return s
}

// valid are the checks that have passed and need not be verified again.
func (t *terms) valid() []string {
	return slices.DeleteFunc(slices.Clone(t.verified), func(id string) bool { return slices.Contains(t.stale, id) })
}
