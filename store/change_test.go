package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func planning() store.Checkpoint {
	return store.Checkpoint{
		Schema: 1, RunID: "20260825T130000Z-t", Revision: 1, Generation: 1, UpdatedAt: store.Stamp(pinned),
		Phase: store.PhasePlanning, NextAction: store.ActionContinuePlanning,
		OriginWorkdir: "/w", Workdir: "/w", WorktreeRoot: "/w", CommonDir: "/w/.git",
	}
}

var (
	plan      = store.PlanIdentity{Path: "/w/PLAN_v1.md", Version: 1, SHA256: sha}
	otherPlan = store.PlanIdentity{Path: "/w/PLAN_v2.md", Version: 2, SHA256: strings.Repeat("0", 64)}
	head      = strings.Repeat("a", 40)
	approval  = store.Approval{Plan: plan, Worktree: "/w", HeadAtApproval: &head, ApprovedAt: store.Stamp(pinned)}
)

func apply(t *testing.T, cp *store.Checkpoint, changes ...store.Change) {
	t.Helper()
	for i, change := range changes {
		if err := change(cp); err != nil {
			t.Fatalf("change %d: %v", i, err)
		}
		if err := cp.Validate(); err != nil {
			t.Fatalf("after change %d: %v", i, err)
		}
	}
}

// refused checks that a change fails with a StateError and changes nothing.
func refused(t *testing.T, cp *store.Checkpoint, fragment string, change store.Change) {
	t.Helper()
	before := cp.Clone()
	err := change(cp)
	var state *store.StateError
	if !errors.As(err, &state) || !strings.Contains(err.Error(), fragment) {
		t.Errorf("got %v, want %q", err, fragment)
	}
	if diff := cmp.Diff(before, *cp); diff != "" {
		t.Errorf("a refused change changed: %s", diff)
	}
}

func lanes(ids ...string) (specs []store.LaneSpec) {
	for _, id := range ids {
		specs = append(specs, store.LaneSpec{LaneID: id, Lens: "general"})
	}
	return specs
}

func ask(id string) store.Change {
	return store.QuestionAsked(store.PendingQuestion{QuestionID: id, Question: id + "?", Options: []string{"a"}}, pinned)
}

func answer(id string) store.Change {
	return store.QuestionAnswered(id, "a", store.AnswerUser, pinned)
}

func TestAQuestionIsAskedAnsweredAndNotAskedAgain(t *testing.T) {
	t.Parallel()
	cp := planning()
	refused(t, &cp, "not pending", answer("q1"))
	apply(t, &cp, ask("q1"), ask("q1"))
	if cp.NextAction != store.ActionAskQuestion || cp.PendingQuestion.AskedAt != store.Stamp(pinned) {
		t.Errorf("got %+v", cp)
	}
	refused(t, &cp, "q1 is still pending", ask("q2"))
	refused(t, &cp, "not pending", answer("q2"))
	apply(t, &cp, answer("q1"))
	want := []store.AnsweredQuestion{{QuestionID: "q1", Answer: "a", Source: "user", AnsweredAt: store.Stamp(pinned)}}
	if diff := cmp.Diff(want, cp.AnsweredQuestions); diff != "" || cp.PendingQuestion != nil || cp.NextAction != store.ActionAskQuestion {
		t.Errorf("got %+v %s", cp, diff)
	}
	refused(t, &cp, "already answered", ask("q1"))
	apply(t, &cp, ask("q2"), store.QuestionDropped("q2"))
	if cp.PendingQuestion != nil || len(cp.AnsweredQuestions) != 1 {
		t.Errorf("got %+v", cp)
	}
	if err := store.QuestionDropped("q2")(&cp); !errors.Is(err, store.ErrNoChange) {
		t.Errorf("got %v", err)
	}
}

func TestAReviewOfThePlan(t *testing.T) {
	t.Parallel()
	cp := planning()
	spec := store.RoundSpec{RoundID: "r1", Role: "reviewer", Target: "plan", Lanes: lanes("a", "b")}
	refused(t, &cp, "no plan", store.RoundStarted(spec, pinned))
	apply(t, &cp, store.PlanWritten(plan), store.RoundStarted(spec, pinned))
	refused(t, &cp, "this id", store.RoundStarted(spec, pinned))
	want := &store.ReviewRound{
		RoundID: "r1", Role: "reviewer", Target: "plan", PlanSHA256: sha, Reviewers: 2, StartedAt: store.Stamp(pinned), OriginWorktree: "/w",
		Lanes: []store.ReviewLane{
			{LaneID: "a", Lens: "general", Status: "pending", StartedAt: store.Stamp(pinned)},
			{LaneID: "b", Lens: "general", Status: "pending", StartedAt: store.Stamp(pinned)},
		},
	}
	if diff := cmp.Diff(want, cp.Round("r1")); diff != "" {
		t.Error(diff)
	}
	refused(t, &cp, "no result file", store.LaneCompleted("r1", "a", "", pinned))
	refused(t, &cp, "leaves the run", store.LaneCompleted("r1", "a", "../x", pinned))
	refused(t, &cp, "no such lane", store.LaneCompleted("r1", "c", "x", pinned))
	refused(t, &cp, "no such round", store.LaneCompleted("r2", "a", "x", pinned))
	apply(t, &cp, store.LaneCompleted("r1", "a", "reviews/r1__a.md", pinned))
	before := cp.Clone()
	apply(t, &cp, store.LaneCompleted("r1", "a", "reviews/r1__a.md", pinned.Add(time.Hour)))
	if diff := cmp.Diff(before, cp); diff != "" {
		t.Errorf("the same result again changed: %s", diff)
	}
	refused(t, &cp, "another result", store.LaneCompleted("r1", "a", "reviews/other.md", pinned))
	refused(t, &cp, "complete already", store.LaneEndedWithoutResult("r1", "a", pinned))
	refused(t, &cp, "lane b is still pending", store.ReviewConsolidated("r1", "", pinned))
	apply(t, &cp, store.LaneEndedWithoutResult("r1", "b", pinned))
	refused(t, &cp, "leaves the run", store.ReviewConsolidated("r1", "../d", pinned))
	apply(t, &cp, store.ReviewConsolidated("r1", "d.md", pinned))
	if err := store.ReviewConsolidated("r1", "", pinned)(&cp); !errors.Is(err, store.ErrNoChange) {
		t.Errorf("got %v", err)
	}
	apply(t, &cp, store.LaneCompleted("r1", "b", "reviews/r1__b.md", pinned))
	if round := cp.Round("r1"); !round.Consolidated || round.DispositionArtifact != "d.md" || !round.Lane("b").Reusable() {
		t.Errorf("got %+v", round)
	}
}

func TestOnlyCriticizersMayAllFail(t *testing.T) {
	t.Parallel()
	for role, ok := range map[string]bool{"reviewer": false, "criticizer": true} {
		cp := planning()
		apply(t, &cp, store.PlanWritten(plan),
			store.RoundStarted(store.RoundSpec{RoundID: "r", Role: role, Target: "plan", Lanes: lanes("a")}, pinned),
			store.LaneEndedWithoutResult("r", "a", pinned))
		if err := store.ReviewConsolidated("r", "", pinned)(&cp); (err == nil) != ok {
			t.Errorf("%s: %v", role, err)
		}
	}
}

func TestARoundIsResumedOnlyForTheSameLanesAndPlan(t *testing.T) {
	t.Parallel()
	cp := planning()
	spec := store.RoundSpec{RoundID: "r1", Role: "reviewer", Target: "plan", Lanes: lanes("a", "b"), Plan: &plan}
	apply(t, &cp, store.RoundStartedOrResumed(spec, pinned))
	if cp.Plan == nil || cp.Plan.SHA256 != sha {
		t.Errorf("the plan was not recorded: %+v", cp.Plan)
	}
	reordered := spec
	reordered.Lanes = lanes("b", "a")
	before := cp.Clone()
	if err := store.RoundStartedOrResumed(reordered, pinned)(&cp); !errors.Is(err, store.ErrNoChange) || !cmp.Equal(before, cp) {
		t.Errorf("got %v", err)
	}
	for fragment, change := range map[string]func(*store.RoundSpec){
		"different lanes":            func(s *store.RoundSpec) { s.Lanes = lanes("a") },
		"different plan version":     func(s *store.RoundSpec) { s.Plan = &otherPlan },
		"reviewer round of the plan": func(s *store.RoundSpec) { s.Role = "criticizer" },
	} {
		other := spec
		change(&other)
		refused(t, &cp, fragment, store.RoundStartedOrResumed(other, pinned))
	}
	executing := planning()
	executing.Phase = store.PhaseExecuting
	refused(t, &executing, "from phase executing", store.RoundStartedOrResumed(spec, pinned))
}

func executing(t *testing.T) store.Checkpoint {
	cp := planning()
	apply(t, &cp, store.PlanWritten(plan), store.HandoffOffered(), store.ExecutionApproved(approval))
	return cp
}

func TestAnExecutionIsApprovedOnceForExactlyItsPlan(t *testing.T) {
	t.Parallel()
	cp := planning()
	refused(t, &cp, "next action", store.ExecutionApproved(approval))
	apply(t, &cp, store.PlanWritten(otherPlan), store.HandoffOffered())
	refused(t, &cp, "does not match", store.ExecutionApproved(approval))
	apply(t, &cp, store.PlanWritten(plan), store.ExecutionApproved(approval))
	if cp.Phase != store.PhaseExecuting || cp.NextAction != store.ActionExecuteItems || cp.Execution.DoneVCIDs == nil || len(cp.Execution.DoneVCIDs) != 0 {
		t.Errorf("got %+v", cp)
	}
	refused(t, &cp, "from phase executing", store.PlanWritten(otherPlan))
	refused(t, &cp, "from phase executing", ask("q"))
}

func TestProgressAddsUpAndSurvivesAStop(t *testing.T) {
	t.Parallel()
	idle := planning()
	refused(t, &idle, "from phase planning", store.ExecutionProgressed(store.Progress{}))
	cp := executing(t)
	current, none := "I-1", ""
	progress := store.Progress{DoneVCIDs: []string{"VC-1"}, ImplStatus: map[string]string{"I-1": "implemented"}, CurrentI: &current, Usage: store.TokenUsage{InToks: 3, OutToks: 1}}
	apply(t, &cp, store.ExecutionProgressed(progress), store.ExecutionProgressed(store.Progress{Usage: store.TokenUsage{InToks: 3, OutToks: 1}}))
	want := &store.Execution{Approval: &approval, DoneVCIDs: []string{"VC-1"}, ImplStatus: map[string]string{"I-1": "implemented"}, CurrentI: "I-1", Usage: store.TokenUsage{InToks: 6, OutToks: 2}}
	if diff := cmp.Diff(want, cp.Execution); diff != "" {
		t.Error(diff)
	}
	apply(t, &cp, store.HeadChanged())
	if !cp.Execution.MustReverify() || *cp.Execution.Approval.HeadAtApproval != head {
		t.Errorf("got %+v", cp.Execution)
	}
	if err := store.HeadChanged()(&cp); !errors.Is(err, store.ErrNoChange) {
		t.Errorf("got %v", err)
	}
	apply(t, &cp, store.Reverified(), store.ExecutionStopped("lunch"))
	if cp.Execution.PausedReason != "lunch" || cp.Phase != store.PhaseExecuting || cp.Execution.MustReverify() {
		t.Errorf("got %+v", cp)
	}
	apply(t, &cp, store.ExecutionProgressed(store.Progress{PausedReason: &none}))
	if diff := cmp.Diff(want, cp.Execution); diff != "" {
		t.Error(diff)
	}
	progress.DoneVCIDs[0] = "changed by the caller"
	if cp.Execution.DoneVCIDs[0] != "VC-1" {
		t.Error("the checkpoint shares a list with its caller")
	}
}

func TestTheImplementationIsReviewedUntilDone(t *testing.T) {
	t.Parallel()
	spec := store.RoundSpec{RoundID: "r1", Role: "reviewer", Target: "implementation", Lanes: lanes("a")}
	early := planning()
	refused(t, &early, "not implementation-review", store.RoundStarted(spec, pinned))
	refused(t, &early, "cannot complete from phase planning", store.Completed("x"))
	cp := executing(t)
	apply(t, &cp, store.ExecutionStopped("x"), store.ExecutionCompleted())
	if cp.Phase != store.PhaseImplementationReview || cp.NextAction != store.ActionAskQuestion || cp.Execution.PausedReason != "" {
		t.Errorf("got %+v", cp)
	}
	cp.NextAction = store.ActionAcceptExecute
	refused(t, &cp, "cannot approve execution from phase implementation-review", store.ExecutionApproved(approval))
	refused(t, &cp, "no termination condition", store.RoundStarted(spec, pinned))
	refused(t, &cp, "no termination condition", store.Completed("x"))
	refused(t, &cp, "is empty", store.ReviewConfigured("  "))
	apply(t, &cp, store.ReviewConfigured("2 rounds"))
	refused(t, &cp, "configured already", store.ReviewConfigured("3"))
	refused(t, &cp, "none is running", store.ReviewRoundFinished())
	apply(t, &cp, store.RoundStarted(spec, pinned))
	refused(t, &cp, "not consolidated", store.ReviewRoundFinished())
	apply(t, &cp, store.LaneCompleted("r1", "a", "reviews/x.md", pinned), store.ReviewConsolidated("r1", "", pinned), store.ReviewRoundFinished())
	if diff := cmp.Diff(&store.ImplementationReview{TerminationCondition: "2 rounds", CompletedRounds: 1}, cp.ImplementationReview); diff != "" {
		t.Error(diff)
	}
	refused(t, &cp, "evidence", store.Completed(" "))
	apply(t, &cp, store.Completed("all green"))
	if cp.Phase != store.PhaseCompleted || cp.NextAction != store.ActionNone {
		t.Errorf("got %+v", cp)
	}
}

func TestAPlanUnderExecutionCanBeRevised(t *testing.T) {
	t.Parallel()
	cp := executing(t)
	apply(t, &cp, store.ExecutionProgressed(store.Progress{DoneVCIDs: []string{"VC-1"}, Usage: store.TokenUsage{InToks: 5}}), store.ReturnedToPlanning())
	if cp.Phase != store.PhasePlanning || cp.NextAction != store.ActionRevisePlan || cp.Execution.Approval != nil || len(cp.Execution.DoneVCIDs) != 0 || cp.Execution.Usage.InToks != 5 {
		t.Errorf("got %+v", cp)
	}
	second := approval
	second.Plan = otherPlan
	apply(t, &cp, store.PlanWritten(otherPlan), store.HandoffOffered(), store.ExecutionApproved(second))
	if cp.Plan.SHA256 != otherPlan.SHA256 || cp.Phase != store.PhaseExecuting {
		t.Errorf("got %+v", cp)
	}
	idle := planning()
	refused(t, &idle, "from phase planning", store.ReturnedToPlanning())
}

func TestAMoveToAnotherWorkTreeTakesTheApprovalAway(t *testing.T) {
	t.Parallel()
	target := store.Root{Workdir: "/n/sub", Worktree: "/n", CommonDir: "/w/.git"}
	cp := executing(t)
	apply(t, &cp, store.ExecutionProgressed(store.Progress{DoneVCIDs: []string{"VC-1"}, Usage: store.TokenUsage{InToks: 5}}),
		store.HeadChanged(), store.ExecutionStopped("x"), store.Migrated(target, pinned))
	want := &store.Execution{DoneVCIDs: []string{}, ImplStatus: map[string]string{}, Usage: store.TokenUsage{InToks: 5}, OriginWorktree: "/w"}
	if diff := cmp.Diff(want, cp.Execution); diff != "" || cp.Phase != store.PhaseExecuting || cp.NextAction != store.ActionAcceptExecute {
		t.Errorf("got %+v %s", cp, diff)
	}
	if cp.Workdir != "/n/sub" || cp.WorktreeRoot != "/n" || cp.OriginWorkdir != "/w" || cp.Migration.FromWorktree != "/w" || cp.Migration.MigratedAt != store.Stamp(pinned) {
		t.Errorf("got %+v", cp)
	}
	moved := plan
	moved.Path = "/n/PLAN_v1.md"
	apply(t, &cp, store.PlanMoved(moved), store.ExecutionApproved(approval))
	refused(t, &cp, "not the recorded plan", store.PlanMoved(otherPlan))

	cp = executing(t)
	apply(t, &cp, store.ExecutionCompleted(), store.ReviewConfigured("1"),
		store.RoundStarted(store.RoundSpec{RoundID: "r", Role: "reviewer", Target: "implementation", Lanes: lanes("a")}, pinned), store.Migrated(target, pinned))
	if diff := cmp.Diff(&store.ImplementationReview{TerminationCondition: "1"}, cp.ImplementationReview); diff != "" || cp.NextAction != store.ActionRunReview {
		t.Errorf("got %+v %s", cp, diff)
	}
	refused(t, &cp, "cannot approve execution from phase implementation-review", store.ExecutionApproved(approval))
}

func TestTheDefaultRoundIDIsAnID(t *testing.T) {
	t.Parallel()
	if got := store.DefaultRoundID("plan", "reviewer", time.UnixMilli(36*36+1)); got != "plan-reviewer-r101" || !store.ValidID(got) {
		t.Errorf("got %s", got)
	}
}
