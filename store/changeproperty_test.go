package store_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/store"
)

// randomChange draws a step of the workflow with arguments from small sets, so that
// steps often meet each other.
func randomChange(t *rapid.T) store.Change {
	id := rapid.SampledFrom([]string{"a", "b", "c"})
	role := rapid.SampledFrom([]string{"reviewer", "criticizer"})
	target := rapid.SampledFrom([]string{"plan", "implementation"})
	identity := rapid.SampledFrom([]store.PlanIdentity{plan, otherPlan})
	switch rapid.IntRange(0, 18).Draw(t, "change") {
	case 0:
		return ask(id.Draw(t, "question"))
	case 1:
		return answer(id.Draw(t, "question"))
	case 2:
		return store.QuestionDropped(id.Draw(t, "question"))
	case 3:
		return store.PlanWritten(identity.Draw(t, "plan"))
	case 4, 5:
		written := identity.Draw(t, "plan")
		return store.RoundStartedOrResumed(store.RoundSpec{
			RoundID: id.Draw(t, "round"), Role: role.Draw(t, "role"), Target: target.Draw(t, "target"), Lanes: lanes("a", "b"), Plan: &written,
		}, pinned)
	case 6, 7:
		return store.LaneCompleted(id.Draw(t, "round"), id.Draw(t, "lane"), rapid.SampledFrom([]string{"x.md", "y.md", "../z", ""}).Draw(t, "file"), pinned)
	case 8:
		return store.LaneEndedWithoutResult(id.Draw(t, "round"), id.Draw(t, "lane"), pinned)
	case 9, 10:
		return store.ReviewConsolidated(id.Draw(t, "round"), rapid.SampledFrom([]string{"", "d.md", "/d"}).Draw(t, "disposition"), pinned)
	case 11:
		return store.HandoffOffered()
	case 12:
		given := approval
		given.Plan = identity.Draw(t, "plan")
		return store.ExecutionApproved(given)
	case 13:
		return store.ExecutionProgressed(store.Progress{DoneVCIDs: []string{id.Draw(t, "vc")}, Usage: store.TokenUsage{InToks: 1}})
	case 14:
		return rapid.SampledFrom([]store.Change{store.HeadChanged(), store.Reverified(), store.ExecutionStopped("x"), store.ReturnedToPlanning()}).Draw(t, "step")
	case 15:
		return store.ExecutionCompleted()
	case 16:
		return store.ReviewConfigured(rapid.SampledFrom([]string{"1", ""}).Draw(t, "condition"))
	case 17:
		return rapid.SampledFrom([]store.Change{store.ReviewRoundFinished(), store.Completed("done")}).Draw(t, "step")
	default:
		return store.Migrated(store.Root{Workdir: "/n", Worktree: "/n", CommonDir: "/w/.git"}, pinned)
	}
}

func TestWhateverStepsAreTakenTheCheckpointStaysLegal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cp := planning()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := cp.Clone()
			err := randomChange(t)(&cp)
			var state *store.StateError
			switch {
			case err == nil:
			case errors.Is(err, store.ErrNoChange) || errors.As(err, &state):
				if diff := cmp.Diff(before, cp); diff != "" {
					t.Fatalf("%v changed %s", err, diff)
				}
			default:
				t.Fatalf("unexpected error %v", err)
			}
			checkLegal(t, before, cp)
		}
		checkEncoding(t, cp)
	})
}

func checkLegal(t *rapid.T, before, after store.Checkpoint) {
	if err := after.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(after.AnsweredQuestions) < len(before.AnsweredQuestions) || len(after.ReviewRounds) < len(before.ReviewRounds) {
		t.Fatal("history was lost")
	}
	if before.Phase == store.PhaseCompleted && after.Phase != store.PhaseCompleted {
		t.Fatal("a completed workflow went on")
	}
	if pending := after.PendingQuestion; pending != nil && after.Answered(pending.QuestionID) {
		t.Fatal("a question is pending and answered")
	}
	for _, round := range after.ReviewRounds {
		complete, pending := 0, 0
		for _, lane := range round.Lanes {
			if lane.Status == store.LaneComplete {
				complete++
				if lane.ResultFile == "" {
					t.Fatal("a complete lane without a result")
				}
			}
			if lane.Status == store.LanePending {
				pending++
			}
		}
		if round.Consolidated && (pending > 0 || round.Role == "reviewer" && complete == 0) {
			t.Fatalf("consolidated too early: %+v", round)
		}
	}
	if after.Phase == store.PhaseExecuting && after.Execution == nil {
		t.Fatal("executing nothing")
	}
	if e := after.Execution; after.Phase == store.PhaseExecuting && e.Approval != nil && after.Plan.SHA256 != e.Approval.Plan.SHA256 {
		t.Fatal("executing another plan than the approved one")
	}
}

// checkEncoding checks that what is written reads as the same.
func checkEncoding(t *rapid.T, cp store.Checkpoint) {
	encoded, err := json.Marshal(cp)
	if err != nil {
		t.Fatal(err)
	}
	var decoded store.Checkpoint
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(encoded), string(again)); diff != "" {
		t.Fatal(diff)
	}
}
