package integration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
)

// The old generation refuses flags that it does not know, so a lane that works
// was sent none.
func TestTheOldGenerationOfPiReviewsAndCriticises(t *testing.T) {
	t.Parallel()
	w := newWorkspaceWith(t, piharness.OldPi(t), append(reviewers(), on("Task: criticize", say(criticism)))...)
	path := w.Write("PLAN.md", plan)
	r := w.must(0, "refine", path, "--reviewers", "3", "--model", "sim/plain", "--drain-timeout", unhurried, "--json").round(t)
	for id, want := range map[string]string{"correctness": oneFinding, "ordering": nothingFound, "verification": oneFinding} {
		lane := r.lane(t, id)
		if lane.Status != "complete" || lane.Output != want || lane.Usage.Input == 0 || lane.Exit.Code == nil || *lane.Exit.Code != 0 {
			t.Errorf("lane %+v", lane)
		}
	}
	for _, request := range w.Model.Requests() {
		if diff := cmp.Diff([]string{"read", "grep", "find", "ls"}, request.Tools); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
	}
	r = w.must(0, "refine", path, "--role", "criticizer", "--model", "inherit", "--json").round(t)
	if lane := r.lane(t, "criticizer"); lane.Output != criticism || len(lane.Questions) != 2 {
		t.Errorf("lane %+v", lane)
	}
	w.checkPrivate()
}
