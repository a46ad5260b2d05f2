package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// runToRefine is [findRun], which finds only open runs, and besides them the run at work
// when the implementation of this plan is being reviewed: its status is done by then
// (spec: execution 5.3).
func (s *services) runToRefine(root store.Root, req RefineRequest, plan string) (*store.RunDir, error) {
	if req.RunID == "" && req.ResumeRoundID == "" {
		run, found, err := s.bindings.current(req.ID, root)
		if err != nil {
			return nil, err
		}
		if found {
			cp, err := run.LoadCheckpoint()
			if err == nil && cp.Phase == store.PhaseImplementationReview && cp.Plan != nil && samePlace(cp.Plan.Path, plan) {
				return &run, nil
			}
		}
	}
	return findRun(root, req, plan)
}

// refuseRound refuses a round of the implementation review that its condition has no room
// for: there were as many as there may be, or the last one is not finished. Whole rounds
// count, each in its work tree; one without any result does not (spec: execution 5.5).
func refuseRound(cp *store.Checkpoint, spec store.RoundSpec) error {
	review := cp.ImplementationReview
	if spec.Target != store.TargetImplementation || cp.Phase != store.PhaseImplementationReview || review == nil || cp.Round(spec.RoundID) != nil {
		return nil // no such round, one to be resumed, or one that is refused anyway
	}
	const step = "start another round of the implementation review"
	if end := execution.ParseTermination(review.TerminationCondition); review.CompletedRounds >= end.Rounds {
		return &store.StateError{Step: step, Reason: fmt.Sprintf("%d of at most %d rounds are done (%s); record completed with the evidence",
			review.CompletedRounds, end.Rounds, review.TerminationCondition)}
	}
	if current := cp.Round(review.CurrentRoundID); current != nil && slices.ContainsFunc(current.Lanes, store.ReviewLane.Reusable) {
		return &store.StateError{Step: step, Reason: "round " + current.RoundID + " has results; record review-consolidated and implementation-round-finished for it first"}
	}
	return nil
}

// completed is [store.Completed] that holds the review to its condition: as many rounds as
// the user wanted, or a last one without a finding of high severity.
func completed(run store.RunDir, evidence string) store.Change {
	return func(cp *store.Checkpoint) error {
		trial := cp.Clone()
		if err := store.Completed(evidence)(&trial); err != nil {
			return err
		}
		const step = "complete"
		review := cp.ImplementationReview
		end := execution.ParseTermination(review.TerminationCondition)
		switch {
		case review.CompletedRounds >= end.Rounds:
		case end.All:
			return &store.StateError{Step: step, Reason: fmt.Sprintf("%d of %d rounds of the implementation review are done", review.CompletedRounds, end.Rounds)}
		case end.UntilClean:
			if why := notClean(run, cp); why != "" {
				return &store.StateError{Step: step, Reason: why}
			}
		}
		*cp = trial
		return nil
	}
}

// notClean says why the last whole round of reviewers in this work tree is no reason to end
// the review, "" when it is one.
func notClean(run store.RunDir, cp *store.Checkpoint) string {
	for _, round := range slices.Backward(cp.ReviewRounds) {
		if round.Target != store.TargetImplementation || round.Role != store.RoleReviewer || !round.Consolidated || round.OriginWorktree != cp.WorktreeRoot {
			continue
		}
		var high []string
		readable := false
		for _, review := range reviewsOf(run, round) {
			for _, f := range review.Findings {
				if f.Severity == "high" {
					high = append(high, review.laneID+"/"+f.ID)
				}
			}
			readable = readable || review.Holds || len(review.Findings) > 0
		}
		switch {
		case high != nil:
			return fmt.Sprintf("the last round, %s, has findings of high severity (%s); mend them and run another round", round.RoundID, strings.Join(high, ", "))
		case !readable: // an answer that cannot be read is no "nothing was found" (faults I109)
			return fmt.Sprintf("no answer of the last round, %s, can be read as a review; run another round", round.RoundID)
		}
		return ""
	}
	return "no round of the implementation review is done"
}
