package integration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/scriptedmodel"
)

// failsOnce refuses the key in the first round and answers in the next.
func failsOnce(answer string) scriptedmodel.Step {
	then := say(answer)
	return scriptedmodel.Step{Status: 401, Message: "no such key", Times: 1, Then: &then}
}

func TestALaneThatFailsDoesNotTakeItsSiblingsWithItAndIsResumedAlone(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on(correctnessLens, say(oneFinding)), on(orderingLens, failsOnce(nothingFound)), on(verificationLens, say(nothingFound)))
	path := w.Write("PLAN.md", plan)

	e := w.must(0, "refine", path, "--reviewers", "3", "--model", "sim/plain", "--json")
	r := e.round(t)
	if diff := cmp.Diff(map[string]string{"correctness": "complete", "ordering": "failed", "verification": "complete"}, r.statuses()); diff != "" {
		t.Fatalf("statuses (-want +got):\n%s", diff)
	}
	failed := r.lane(t, "ordering")
	if failed.Error.Class != "auth" || !strings.Contains(failed.Error.Message, "no such key") || failed.Attempts != 1 {
		t.Errorf("error %+v after %d attempts", failed.Error, failed.Attempts)
	}
	want := "pilothouse: 2 of 3 lanes complete; continue with `pilothouse refine " + path + " --resume-round " + r.RoundID + "`"
	if e.Last() != want {
		t.Errorf("last line %q, want %q", e.Last(), want)
	}
	if line := "pilothouse: lane ordering failed: the provider refused the credentials"; !strings.Contains(e.Stderr, line) {
		t.Errorf("stderr lacks %q:\n%s", line, e.Stderr)
	}
	lanes := map[string]string{}
	for _, lane := range w.checkpoint(r.RunID).ReviewRounds[0].Lanes {
		lanes[lane.LaneID] = lane.Status
	}
	if diff := cmp.Diff(map[string]string{"correctness": "complete", "ordering": "failed", "verification": "complete"}, lanes); diff != "" {
		t.Errorf("lanes of the checkpoint (-want +got):\n%s", diff)
	}
	if got := w.Model.Stats().Requests; got != 3 {
		t.Errorf("the model got %d requests, want 3: a refused key is not tried again", got)
	}

	e = w.must(0, "refine", path, "--resume-round", r.RoundID, "--model", "sim/plain", "--json")
	resumed := e.round(t)
	if got := w.Model.Stats().Requests; got != 4 {
		t.Errorf("the model got %d requests, want 4: only the failed lane runs again", got)
	}
	if resumed.RoundID != r.RoundID || resumed.RunID != r.RunID {
		t.Errorf("resumed %s of %s", resumed.RoundID, resumed.RunID)
	}
	for id, reused := range map[string]bool{"correctness": true, "ordering": false, "verification": true} {
		if lane := resumed.lane(t, id); lane.Status != "complete" || lane.Reused != reused {
			t.Errorf("lane %s is %s, reused %v", id, lane.Status, lane.Reused)
		}
	}
	if got := resumed.lane(t, "correctness"); got.Output != oneFinding || len(got.Findings) != 1 || got.Usage.Input != r.lane(t, "correctness").Usage.Input {
		t.Errorf("reused lane %+v", got)
	}
	if got := resumed.lane(t, "ordering").Output; got != nothingFound {
		t.Errorf("ordering answered %q", got)
	}
	if strings.Contains(e.Stderr, "lanes complete") {
		t.Errorf("a complete round complains:\n%s", e.Stderr)
	}
	for _, lane := range w.checkpoint(r.RunID).ReviewRounds[0].Lanes {
		if lane.Status != "complete" {
			t.Errorf("lane %s is %s in the checkpoint", lane.LaneID, lane.Status)
		}
	}
	if got := len(w.ledger(r.RunID, "subagents.jsonl")); got != 4 {
		t.Errorf("the ledger has %d children, want 4", got)
	}
	w.checkPrivate()
}

func TestWhenEveryLaneFailsTheRoundFails(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", scriptedmodel.Step{Status: 401, Message: "no such key"}))
	path := w.Write("PLAN.md", plan)
	e := w.must(1, "refine", path, "--reviewers", "2", "--model", "sim/plain", "--json")
	for _, lane := range e.round(t).Lanes {
		if lane.Status != "failed" || lane.Error.Class != "auth" || lane.Output != "" {
			t.Errorf("lane %+v, error %+v", lane, lane.Error)
		}
	}
	if !strings.HasPrefix(e.Last(), "pilothouse: 0 of 2 lanes complete; continue with ") {
		t.Errorf("last line %q", e.Last())
	}
}

func TestAProviderThatPiDoesNotKnowFailsTheLaneWithThatReason(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	path := w.Write("PLAN.md", plan)
	e := w.must(1, "refine", path, "--model", "nowhere/plain", "--json")
	lane := e.round(t).Lanes[0]
	if lane.Error.Class != "model_unknown" || !strings.Contains(lane.Error.Message, "nowhere") || lane.Attempts != 1 {
		t.Errorf("error %+v after %d attempts", lane.Error, lane.Attempts)
	}
	if !strings.Contains(e.Stderr, "nowhere") {
		t.Errorf("stderr does not name the provider:\n%s", e.Stderr)
	}
	if w.Model.Stats().Requests != 0 {
		t.Error("the model was asked")
	}
}
