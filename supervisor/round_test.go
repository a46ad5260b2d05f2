package supervisor_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestARefineRoundIsRecordedBeforeItIsReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := newWatcher()
	result, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), w.watch)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]lanes.Status{"correctness": lanes.Complete, "ordering": lanes.Complete, "verification": lanes.Complete}
	if diff := cmp.Diff(want, statuses(result)); diff != "" {
		t.Error(diff)
	}
	slices.Sort(w.ended)
	if diff := cmp.Diff(allLanes, w.ended); diff != "" {
		t.Errorf("lanes reported one by one: %s", diff)
	}
	cp, err := b.run(result.RunID).LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	round := cp.Round(result.RoundID)
	if round == nil {
		t.Fatal("the round is not in the checkpoint")
	}
	for _, lane := range result.Lanes {
		answer, err := b.run(result.RunID).ReadReview(round.Lane(lane.LaneID).ResultFile)
		if err != nil || answer != lane.Output {
			t.Errorf("lane %s: stored %q (%v), reported %q", lane.LaneID, answer, err, lane.Output)
		}
		if lane.WellFormed == nil || !*lane.WellFormed || !*lane.Holds || lane.Usage.Cost != 0.25 {
			t.Errorf("lane %s is not judged rightly: %+v", lane.LaneID, lane)
		}
	}
	record, err := b.run(result.RunID).RoundDir().LoadRound(result.RoundID)
	if err != nil || record.CompletedAt.IsZero() {
		t.Errorf("the round's record is open: %+v, %v", record, err)
	}
	if _, state, err := b.run(result.RunID).Owner(); err != nil || state != store.OwnerNone {
		t.Errorf("the run is still owned after its last call: %v, %v", state, err)
	}
}

func TestAPlanEditedInPlaceIsReviewedInTheSameRunWithItsNewDigest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n\nBetter.\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.RunID != second.RunID || first.RoundID == second.RoundID {
		t.Errorf("runs %s, %s; rounds %s, %s", first.RunID, second.RunID, first.RoundID, second.RoundID)
	}
	cp, err := b.run(first.RunID).LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	identity, err := store.IdentifyPlan(cp.Plan.Path)
	if err != nil || cp.Plan.SHA256 != identity.SHA256 {
		t.Errorf("recorded plan %s, on disk %s (%v)", cp.Plan.SHA256, identity.SHA256, err)
	}
}

func TestACancelledRoundKeepsATerminalRecordOfEveryLane(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	w := newWatcher()
	go func() {
		<-w.working
		cancel()
	}()
	result, err := b.system.Refine(ctx, b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n"), w.watch)
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range result.Lanes {
		if lane.Status != lanes.Cancelled || lane.Error == nil || lane.Error.Class != "cancelled" {
			t.Errorf("lane %s: %s, %+v", lane.LaneID, lane.Status, lane.Error)
		}
	}
	cp, err := b.run(result.RunID).LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range cp.Round(result.RoundID).Lanes {
		if lane.Status != store.LaneFailed {
			t.Errorf("lane %s is %s in the checkpoint", lane.LaneID, lane.Status)
		}
	}
}

func TestAResumedRoundRunsOnlyTheLanesThatAreNotComplete(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	first, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	// One answer is lost; its lane runs again and the others are reused.
	if err := os.Remove(*first.Lanes[1].ResultFile); err != nil {
		t.Fatal(err)
	}
	req.ResumeRoundID, req.Reviewers = first.RoundID, 0
	second, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, lane := range second.Lanes {
		if lane.Reused != (i != 1) || lane.Status != lanes.Complete || lane.Output != first.Lanes[i].Output {
			t.Errorf("lane %s: reused %v, %s", lane.LaneID, lane.Reused, lane.Status)
		}
	}
	if !strings.Contains(second.Text, "[REUSED]") || len(second.Notices) == 0 {
		t.Errorf("the result does not tell reused lanes: notices %q", second.Notices)
	}
}

func TestAnAnswerThatACrashKeptOutOfTheCheckpointIsNotPaidForTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	first, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	// As after a crash between the answer's file and the checkpoint.
	run := b.run(first.RunID)
	_, err = run.MutateCheckpoint(nil, nil, time.Now(), func(cp *store.Checkpoint) error {
		for _, id := range []string{"correctness", "ordering"} {
			lane := cp.Round(first.RoundID).Lane(id)
			lane.Status, lane.ResultFile, lane.CompletedAt = store.LanePending, "", ""
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	req.ResumeRoundID = first.RoundID
	second, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, lane := range second.Lanes {
		if !lane.Reused || lane.Output != first.Lanes[i].Output {
			t.Errorf("lane %s was run again", lane.LaneID)
		}
	}
	cp, err := run.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range cp.Round(first.RoundID).Lanes {
		if !lane.Reusable() {
			t.Errorf("lane %s is %s in the checkpoint", lane.LaneID, lane.Status)
		}
	}
}

func TestAFailedLaneDoesNotTakeItsRoundWithIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good, bad := t.TempDir(), "no/such/directory"
	result, err := b.system.AnalyzeRefs(context.Background(), supervisor.AnalyzeRequest{
		Session: b.session, Model: supervisor.ModelAnswer{Answered: true},
		Refs: []actors.Reference{{ID: "a", LocalPath: good}, {ID: "b", LocalPath: bad}, {ID: "c", LocalPath: good, Title: "STUB-401"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]lanes.Status{"ref-1": lanes.Complete, "ref-2": lanes.Failed, "ref-3": lanes.Failed}
	if diff := cmp.Diff(want, statuses(result)); diff != "" {
		t.Error(diff)
	}
	if result.RunID != "adhoc" || result.Lanes[1].Error.Class != "start_failure" || result.Lanes[2].Error.Class != "auth" {
		t.Errorf("run %s, errors %+v, %+v", result.RunID, result.Lanes[1].Error, result.Lanes[2].Error)
	}
	if stored, err := os.ReadFile(*result.Lanes[0].ResultFile); err != nil || string(stored) != result.Lanes[0].Output {
		t.Errorf("the answer is not stored: %v", err)
	}
}

func TestRoundsOfOneRunWorkSideBySide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	if _, err := b.system.Refine(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	results := make([]supervisor.RoundResult, 4)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			req := req
			req.Reviewers = 1
			if i%2 == 1 {
				req.Role = actors.Criticizer
			}
			var err error
			if results[i], err = b.system.Refine(context.Background(), req, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cp, err := b.run(results[0].RunID).LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if cp.Round(r.RoundID) == nil {
			t.Errorf("round %s was reported but is not in the checkpoint", r.RoundID)
		}
	}
}
