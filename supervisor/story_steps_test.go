package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pilothouse/actors"
	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

const storyPlan = "# Say how long a batch takes\n\n## Implementation Items\n- `I-001`: write batch.txt\n- `I-002`: bake faster\n\n" +
	"## Verifier Checklist\n- [ ] `VC-001` covers I-001; batch.txt says 45\n- [ ] `VC-002` covers I-002; oven.txt says 40\n"

// step does what comes next in a run: planned, reviewed, revised, criticized, approved,
// carried out with a pause, reviewed again, mended, done.
func (w *teller) step(dir store.RunDir, record store.Run, cp store.Checkpoint) {
	switch cp.Phase {
	case store.PhasePlanning, store.PhaseReviewing:
		w.plan(dir, record, cp)
	case store.PhaseExecuting:
		w.carryOut(cp)
	case store.PhaseImplementationReview:
		w.review(dir, cp)
	default:
		w.fatalf("the run is in phase %s", cp.Phase)
	}
}

func (w *teller) plan(dir store.RunDir, record store.Run, cp store.Checkpoint) {
	first, second := filepath.Join(record.ArtifactDir, "PLAN_v1.md"), filepath.Join(record.ArtifactDir, "PLAN_v2.md")
	reviewed, criticized := roundOf(cp, store.RoleReviewer), roundOf(cp, store.RoleCriticizer)
	switch {
	case !w.decided(dir, cp, "oven"):
		w.turn("", w.askOven)
	case cp.Plan == nil && (cp.Revision > 0 || !exists(first)): // a run without a checkpoint gets one with its first round
		w.turn("", w.unapproved, func() { w.writePlan(first, storyPlan) })
	case reviewed == nil || !reviewed.Consolidated:
		w.turn("", func() { w.roundOn(first, reviewed, actors.Reviewer, 3) })
	case cp.Plan.Version == 1:
		w.turn("", func() { w.writePlan(second, storyPlan+"\n## Risks\nnone\n") })
	case criticized == nil || !criticized.Consolidated:
		w.turn("", func() { w.roundOn(second, criticized, actors.Criticizer, 1) })
	default:
		w.turn("", w.unapproved, w.handOff)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (w *teller) writePlan(path, text string) {
	if !w.writes(path, text) {
		w.fatalf("the plan %s may not be written", path)
	}
}

// roundOf is the last round of a role on the plan, nil for none.
func roundOf(cp store.Checkpoint, role string) *store.ReviewRound {
	for i := range slices.Backward(cp.ReviewRounds) {
		if round := &cp.ReviewRounds[i]; round.Role == role && round.Target == store.TargetPlan {
			return round
		}
	}
	return nil
}

// roundOn starts a round, goes on with it, or consolidates it.
func (w *teller) roundOn(plan string, round *store.ReviewRound, role actors.Role, reviewers int) {
	switch {
	case round == nil:
		w.refine(plan, role, store.TargetPlan, reviewers, "")
	case unanswered(*round):
		w.refine(plan, role, store.TargetPlan, 0, round.RoundID)
	default:
		w.consolidate(round.RoundID)
	}
}

// unanswered tells whether a round has lanes without an answer.
func unanswered(round store.ReviewRound) bool {
	return slices.ContainsFunc(round.Lanes, func(lane store.ReviewLane) bool { return !lane.Reusable() })
}

func (w *teller) consolidate(roundID string) {
	w.record(CheckpointParams{Transition: "review-consolidated", RoundID: roundID})
}

// handOff has the plan approved.
func (w *teller) handOff() {
	reply := w.converse(KindTool, "execute_plan", map[string]any{})
	_, _, cp := w.look()
	if cp.Execution == nil || cp.Execution.Approval == nil || !strings.Contains(string(reply.Result.Details), `"executing"`) {
		w.fatalf("the approval is %s, on record %+v", reply.Result.Details, cp.Execution)
	}
	w.write(noteApproved, cp.Execution.Approval.ApprovedAt, nil)
}

// carryOut works on the checks. The agent gets nowhere with the second until its user
// has written after a pause.
func (w *teller) carryOut(cp store.Checkpoint) {
	if cp.Execution.Approval == nil { // the run has moved
		w.turn("", w.unapproved, w.handOff)
		return
	}
	told := w.hook("before_agent_start", BeforeAgentStartEvent{}).Messages
	switch {
	case !slices.ContainsFunc(told, func(m Message) bool { return m.CustomType == "pi-plans-exec-context" }): // the handoff was broken off
		w.turn("", w.handOff)
	case !slices.Contains(cp.Execution.DoneVCIDs, "VC-001"):
		w.turn("`cat` prints it. [DONE:VC-001] [I-002:current]", w.working("batch.txt", "45 minutes\n"))
	case cp.Execution.PausedReason != "":
		w.hook("input", InputEvent{Text: "lower the constant", Source: "interactive"})
		w.Paused = true
		w.write(notePaused, "", nil)
	case !w.Paused:
		w.turn("Let me think about the oven.")
	default:
		w.turn("It says 40. [DONE:VC-002]", w.working("oven.txt", "40\n"))
	}
}

// review is that of the implementation, until nothing of high severity is found.
func (w *teller) review(dir store.RunDir, cp store.Checkpoint) {
	review := cp.ImplementationReview
	if review == nil || review.TerminationCondition == "" {
		if !w.decided(dir, cp, execution.TerminationQuestionID) {
			w.turn("", w.askEnd)
			return
		}
		w.turn("", func() {
			w.record(CheckpointParams{Transition: "implementation-review-configured", TerminationCondition: execution.TerminationOptions[1]})
		})
		return
	}
	round := cp.Round(review.CurrentRoundID)
	switch {
	case round != nil && round.Consolidated:
		w.turn("", func() { w.record(CheckpointParams{Transition: "implementation-round-finished"}) })
	case round != nil && unanswered(*round):
		w.turn("", func() { w.refine(cp.Plan.Path, actors.Reviewer, store.TargetImplementation, 0, round.RoundID) })
	case round != nil:
		w.turn("", w.working("batch.txt", "45 minutes a batch\n"), func() { w.consolidate(round.RoundID) })
	case review.CompletedRounds == 0:
		w.turn("", func() { w.refine(cp.Plan.Path, actors.Reviewer, store.TargetImplementation, 1, "") })
	case review.CompletedRounds == 1: // it had a finding of high severity
		w.turn("", func() {
			if _, err := w.plans(completion); err == nil || !strings.Contains(err.Error(), "high severity") {
				w.fatalf("the review ends with a finding of high severity: %v", err)
			}
		}, func() { w.refine(cp.Plan.Path, actors.Reviewer, store.TargetImplementation, 1, "") })
	default:
		w.turn("", func() { w.record(*completion.Checkpoint) })
	}
}

var completion = PlansAction{Action: "record-checkpoint", Checkpoint: &CheckpointParams{Transition: "completed", Evidence: "both checks pass"}}
