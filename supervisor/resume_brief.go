package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"pilothouse/actors"
	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// briefAnswers is how many of the last answers a brief repeats.
const briefAnswers = 12

// resumeBrief is what an agent is told that takes up a run (spec: checkpoint 2.6). It
// says what is on record, so that nothing is asked, paid for or approved twice.
type resumeBrief struct {
	run    store.Run
	cp     store.Checkpoint
	rounds []store.RoundRecord
	terms  *terms // of an execution, nil without one
}

func (b resumeBrief) text() string {
	w := &briefWriter{}
	w.line("PI-PLANS RESUME: run %s goes on in this session.", b.run.RunID)
	w.line("Phase: %s. Next action on record: %s.", b.cp.Phase, b.cp.NextAction)
	w.line("The run exists: do not re-run `plans start-run`, and do not repeat what is on record below.")
	w.request(b.run)
	w.line("Artifact directory: %s", b.run.ArtifactDir)
	if plan := b.cp.Plan; plan != nil {
		w.line("Plan: %s (version %d, sha256 %s)", plan.Path, plan.Version, plan.SHA256)
	} else {
		w.line("Plan: none is on record yet.")
	}
	switch b.cp.Phase {
	case store.PhaseExecuting:
		b.execution(w)
	case store.PhaseImplementationReview:
		b.implementationReview(w)
	default:
		b.planning(w)
	}
	return w.String()
}

// planning goes on with questions, the plan and its reviews.
func (b resumeBrief) planning(w *briefWriter) {
	w.skill(b.run.Skill)
	b.answers(w)
	b.pending(w)
	b.unfinished(w, func(store.RoundRecord) bool { return true })
	w.line("Go on with the next action. Nothing outside the planning artifacts is changed before the plan is approved.")
}

func (b resumeBrief) answers(w *briefWriter) {
	answered := b.cp.AnsweredQuestions
	if len(answered) == 0 {
		return
	}
	w.section("Answered questions (decided, not to be asked again)")
	if left := len(answered) - briefAnswers; left > 0 {
		w.line("- %d earlier ones are in the run's decisions.jsonl", left)
		answered = answered[left:]
	}
	for _, a := range answered {
		w.line("- %s: %s (%s)", a.QuestionID, a.Answer, a.Source)
	}
}

func (b resumeBrief) pending(w *briefWriter) {
	pending := b.cp.PendingQuestion
	if pending == nil {
		return
	}
	w.section("PENDING question " + pending.QuestionID)
	w.line("It was asked and never answered. Ask it again with ask_choice and questionId %q before you go on:", pending.QuestionID)
	w.line("%s", pending.Question)
	for _, option := range pending.Options {
		w.line("- %s", option)
	}
}

// unfinished tells of rounds that are wanted and have lanes without an answer.
func (b resumeBrief) unfinished(w *briefWriter, wanted func(store.RoundRecord) bool) {
	var lines []string
	for _, record := range b.rounds {
		var complete, open []string
		for _, lane := range record.Lanes {
			if lane.Status == store.LaneStatusComplete {
				complete = append(complete, laneTitle(lane))
			} else {
				open = append(open, laneTitle(lane))
			}
		}
		round := b.cp.Round(record.RoundID)
		if open == nil || !wanted(record) || round != nil && round.Consolidated {
			continue
		}
		tool := "refine"
		if record.Role == string(actors.RefAnalyst) {
			tool = "analyze_refs"
		}
		lines = append(lines, fmt.Sprintf("- %s (%s): complete: %s; without an answer: %s. Continue with %s and resumeRoundId %q: complete lanes are not run again.",
			record.RoundID, record.Role, listed(complete), listed(open), tool, record.RoundID))
	}
	if lines == nil {
		return
	}
	w.section("Unfinished rounds")
	for _, line := range lines {
		w.line("%s", line)
	}
}

func laneTitle(lane store.LaneRecord) string {
	if lane.RefID != "" {
		return lane.LaneID + " (" + lane.RefID + ")"
	}
	return lane.LaneID
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// execution goes on with the checklist, or with a handoff first.
func (b resumeBrief) execution(w *briefWriter) {
	w.section("Execution")
	now := b.terms
	if now == nil {
		w.line("No execution is on record. Hand the plan off with execute_plan before anything is changed.")
		return
	}
	if now.handoff != "" {
		w.line("The plan has to be approved again: %s. Hand it off with execute_plan; until the user approves, change nothing.", now.handoff)
		w.line("Nothing counts as verified.")
		return
	}
	w.line("The user approved exactly this plan for this work tree at %s. The approval stands: do not ask for it again.", b.cp.Execution.Approval.ApprovedAt)
	if len(now.stale) > 0 {
		w.line("Another commit is checked out than when they passed. Verify these again first, each with its marker: %s.", strings.Join(now.stale, ", "))
	}
	switch valid := now.valid(); {
	case len(now.verified) == 0:
		w.line("Verified so far: none.")
	case len(valid) > 0:
		w.line("Verified so far, and still valid: %s.", strings.Join(valid, ", "))
	}
	if left := remaining(b.cp.Plan.Path, now); len(left) > 0 {
		w.section("Remaining checks")
		for _, check := range left {
			w.line("- %s: %s", check.ID, check.Text)
		}
	}
	if current := b.cp.Execution.CurrentI; current != "" {
		w.line("Item at work when it stopped: %s.", current)
	}
	if reason := b.cp.Execution.PausedReason; reason != "" {
		w.line("It was paused: %s.", reason)
	}
	w.line("Go on with the remaining checks in the order of their dependencies.")
}

// remaining are the checks of the plan that still have to pass.
func remaining(path string, now *terms) []execution.Check {
	text, err := os.ReadFile(path)
	if err != nil { // its digest has just been read
		return nil
	}
	return execution.NewState(execution.Parse(string(text)), now.valid(), nil, "").Remaining()
}

// implementationReview goes on with the rounds that look at what was built.
func (b resumeBrief) implementationReview(w *briefWriter) {
	w.section("Implementation review")
	w.line("The execution is complete. What is left is the review of the implementation.")
	review := b.cp.ImplementationReview
	if review == nil || review.TerminationCondition == "" {
		w.line("When it ends is not decided. Ask with ask_choice and questionId %q (autoComplete false), and record the answer with "+
			"`plans record-checkpoint`, transition implementation-review-configured.", execution.TerminationQuestionID)
		b.pending(w)
		return
	}
	w.line("It ends: %s. Rounds completed: %d, at most 5.", review.TerminationCondition, review.CompletedRounds)
	b.unfinished(w, func(record store.RoundRecord) bool { return record.RoundID == review.CurrentRoundID })
	if round := b.cp.Round(review.CurrentRoundID); round != nil {
		w.line("Round %s is at work: fix what was accepted of its findings, test again, record review-consolidated and then implementation-round-finished.", round.RoundID)
	}
	b.pending(w)
}

// legacyBrief is the brief of a run without a checkpoint: the request, and what the
// ledger has of its decisions.
func legacyBrief(run store.Run, decisions []store.Decision) string {
	w := &briefWriter{}
	w.line("PI-PLANS RESUME: run %s goes on in this session.", run.RunID)
	w.line("It has no checkpoint: its status is %s, and no more is on record of how far it was.", run.Status)
	w.line("The run exists: do not re-run `plans start-run`.")
	w.request(run)
	w.line("Artifact directory: %s", run.ArtifactDir)
	plan, version, err := store.LatestPlan(run.ArtifactDir)
	switch {
	case err == nil:
		w.line("Latest plan: %s (version %d)", plan, version)
	case errors.Is(err, store.ErrNoPlan):
		w.line("Plan: none is written yet.")
	default:
		w.line("Plan: it cannot be looked for (%v).", err)
	}
	w.skill(run.Skill)
	if len(decisions) > 0 {
		w.section("Last decisions of the ledger")
	}
	for _, d := range decisions[max(0, len(decisions)-briefAnswers):] {
		w.line("- %s: %s (%s)", d.Question, d.Answer, d.AnswerSource)
	}
	switch run.Status {
	case store.StatusExecuting, store.StatusStopped:
		w.line("Every check counts as unverified. Run the handoff again with execute_plan before anything is changed.")
	case store.StatusDone:
		w.line("Every check counts as unverified. Go on with the review of the implementation.")
	}
	return w.String()
}

// briefWriter writes the lines of a brief.
type briefWriter struct{ strings.Builder }

func (w *briefWriter) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *briefWriter) section(title string) { fmt.Fprintf(w, "\n## %s\n", title) }

func (w *briefWriter) request(run store.Run) {
	w.section("Request")
	w.line("%s\n", strings.TrimSpace(run.RequestText))
}

// planningSkills are those that a run may be started by.
var planningSkills = []string{"planning", "debug-and-plan", "plan-small", "plan-normal", "plan-big", "plan-with-refs"}

func (w *briefWriter) skill(name string) {
	if !slices.Contains(planningSkills, name) {
		name = "planning"
	}
	w.line("Follow the skill %s (skills/%s/SKILL.md) from where the run stopped.", name, name)
}
