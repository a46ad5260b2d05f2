package supervisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// planned starts a run with a plan on record.
func (b *bundle) planned(text string) store.RunDir {
	b.t.Helper()
	run := b.startRun()
	b.plan("PLAN_v2.md", text)
	_, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{
		Action: "record-checkpoint", RunID: run.ID, Checkpoint: &supervisor.CheckpointParams{Transition: "plan-written", PlanPath: "PLAN_v2.md"},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

func TestAnApprovalPinsThePlanTheWorkTreeAndHEAD(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.planned("# A plan\n")
	for _, path := range []string{"", "@PLAN_v2.md"} {
		cp, err := b.system.ApproveExecution(context.Background(), b.session, run.ID, path)
		if path != "" { // the second call finds an execution that must not start over
			refusedBy(t, err, "next action is execute-items")
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b.checkpoint(run), cp); diff != "" {
			t.Errorf("what is on disk differs: %s", diff)
		}
		identity, err := store.IdentifyPlan(filepath.Join(b.session.Workdir, "PLAN_v2.md"))
		if err != nil {
			t.Fatal(err)
		}
		want := store.Approval{Plan: identity, Worktree: run.Root.Worktree, ApprovedAt: cp.Execution.Approval.ApprovedAt}
		if diff := cmp.Diff(&want, cp.Execution.Approval); diff != "" || cp.Phase != store.PhaseExecuting || cp.NextAction != store.ActionExecuteItems {
			t.Errorf("phase %s, next %s, %s", cp.Phase, cp.NextAction, diff)
		}
	}
}

func TestAnApprovalOfAnotherPlanThanTheOneOnRecordIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.planned("# A plan\n")
	b.plan("PLAN_v2.md", "# A plan\n\nEdited after it was recorded.\n")
	before := b.checkpoint(run)
	_, err := b.system.ApproveExecution(context.Background(), b.session, run.ID, "")
	refusedBy(t, err, "does not match")
	var input *supervisor.InputError
	if _, err := b.system.ApproveExecution(context.Background(), b.session, run.ID, "PLAN_v9.md"); !errors.As(err, &input) || !strings.Contains(err.Error(), "PLAN_v9.md") {
		t.Errorf("a plan that is not there: %v", err)
	}
	if err := os.Remove(filepath.Join(b.session.Workdir, "PLAN_v2.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.system.ApproveExecution(context.Background(), b.session, run.ID, ""); !errors.As(err, &input) {
		t.Errorf("a plan that is gone: %v", err)
	}
	if _, err := b.system.ApproveExecution(context.Background(), b.session, b.startRun().ID, ""); !errors.As(err, &input) {
		t.Errorf("no plan at all: %v", err)
	}
	if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" {
		t.Errorf("a refused approval changed %s", diff)
	}
}

func TestProgressIsDurableAndItsUsageAddsUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	run := b.planned("# A plan\n")
	_, err := b.system.RecordProgress(ctx, b.session, run.ID, store.Progress{})
	refusedBy(t, err, "from phase planning")
	if _, err := b.system.ApproveExecution(ctx, b.session, run.ID, ""); err != nil {
		t.Fatal(err)
	}
	const reports = 20
	var wg sync.WaitGroup
	for range reports {
		wg.Go(func() {
			if _, err := b.system.RecordProgress(ctx, b.session, run.ID, store.Progress{Usage: store.TokenUsage{InToks: 3, OutToks: 1}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	current, paused := "I-1", "lunch"
	cp, err := b.system.RecordProgress(ctx, b.session, run.ID, store.Progress{
		DoneVCIDs: []string{"VC-001"}, ImplStatus: map[string]string{"I-1": "implemented"}, CurrentI: &current, PausedReason: &paused,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &store.Execution{
		Approval: cp.Execution.Approval, DoneVCIDs: []string{"VC-001"}, ImplStatus: map[string]string{"I-1": "implemented"},
		CurrentI: "I-1", Usage: store.TokenUsage{InToks: 3 * reports, OutToks: reports}, PausedReason: "lunch",
	}
	for name, got := range map[string]store.Checkpoint{"returned": cp, "on disk": b.checkpoint(run)} {
		if diff := cmp.Diff(want, got.Execution); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnExecutionEndsInTheReviewOrGoesBackToPlanning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	run := b.planned("# A plan\n")
	if _, err := b.system.ApproveExecution(ctx, b.session, run.ID, ""); err != nil {
		t.Fatal(err)
	}
	refusedBy(t, b.ask(run, "q"), "from phase executing")
	cp, err := b.system.ReturnToPlanning(ctx, b.session, run.ID)
	if err != nil || cp.Phase != store.PhasePlanning || cp.NextAction != store.ActionRevisePlan || cp.Execution.Approval != nil {
		t.Errorf("got %+v, %v", cp, err)
	}
	// The revised plan is recorded, reviewed and approved as any other.
	req := b.plan("PLAN_v3.md", "# A better plan\n")
	req.RunID, req.Reviewers = run.ID, 1
	if _, err := b.system.Refine(ctx, req, nil); err != nil {
		t.Errorf("a review of the revised plan: %v", err)
	}
	_, err = b.system.Plans(ctx, b.session, supervisor.PlansAction{
		Action: "record-checkpoint", RunID: run.ID, Checkpoint: &supervisor.CheckpointParams{Transition: "plan-written", PlanPath: "PLAN_v3.md"},
	})
	if err != nil {
		t.Errorf("recording the revised plan: %v", err)
	}
	if cp, err = b.system.ApproveExecution(ctx, b.session, run.ID, ""); err != nil || cp.Plan.Version != 3 {
		t.Errorf("approving the revised plan: %+v, %v", cp.Plan, err)
	}
	if cp, err = b.system.CompleteExecution(ctx, b.session, run.ID); err != nil || cp.Phase != store.PhaseImplementationReview || cp.NextAction != store.ActionAskQuestion {
		t.Errorf("got %+v, %v", cp, err)
	}
	_, err = b.system.ReturnToPlanning(ctx, b.session, run.ID)
	refusedBy(t, err, "from phase implementation-review")
}

func TestAnExecutionThatMovedToAnotherWorkTreeNeedsItsApprovalAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	run := b.planned("# A plan\n")
	if _, err := b.system.ApproveExecution(ctx, b.session, run.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := run.MutateCheckpoint(nil, nil, time.Now(), store.Migrated(run.Root, time.Now())); err != nil {
		t.Fatal(err)
	}
	moved := b.checkpoint(run)
	_, err := b.system.RecordProgress(ctx, b.session, run.ID, store.Progress{DoneVCIDs: []string{"VC-001"}})
	refusedBy(t, err, "not approved in this work tree")
	_, err = b.system.CompleteExecution(ctx, b.session, run.ID)
	refusedBy(t, err, "not approved in this work tree")
	if diff := cmp.Diff(moved, b.checkpoint(run)); diff != "" {
		t.Errorf("a refused step changed %s", diff)
	}
	if _, err := b.system.ApproveExecution(ctx, b.session, run.ID, ""); err != nil {
		t.Fatal(err)
	}
	if cp, err := b.system.RecordProgress(ctx, b.session, run.ID, store.Progress{DoneVCIDs: []string{"VC-001"}}); err != nil || len(cp.Execution.DoneVCIDs) != 1 {
		t.Errorf("got %+v, %v", cp.Execution, err)
	}
}
