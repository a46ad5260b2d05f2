package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pilothouse/integration/scriptedmodel"
)

func TestSevenReferencesAreAnalysedInBatchesOfThree(t *testing.T) {
	t.Parallel()
	var rules []scriptedmodel.Rule
	for i := range 7 {
		rules = append(rules, readsItsOwn(fmt.Sprintf("r%d", i+1)))
	}
	w := newWorkspace(t, rules...)
	args := []string{"analyze-refs", "--model", "sim/plain", "--json", "--context", "a bakery"}
	for i := range 7 {
		id := fmt.Sprintf("r%d", i+1)
		args = append(args, "--ref", id+"="+w.reference(id))
	}

	j := w.start(args...)
	working, waiting := w.most(j)
	e := j.wait()
	if e.Code != 0 {
		t.Fatalf("ended with %d: %s", e.Code, e.Stderr)
	}
	r := e.round(t)
	if r.Role != "ref-analyst" || len(r.Lanes) != 7 {
		t.Fatalf("role %s, %d lanes", r.Role, len(r.Lanes))
	}
	for i, lane := range r.Lanes {
		want := fmt.Sprintf("ref-%d r%d %d complete, attempts 1", i+1, i+1, i/3+1)
		if got := fmt.Sprintf("%s %s %d %s, attempts %d", lane.LaneID, lane.RefID, lane.Batch, lane.Status, lane.Attempts); got != want {
			t.Errorf("lane %s, want %s", got, want)
		}
		if len(lane.Sections) == 0 || lane.Output != analysis {
			t.Errorf("lane %s answered %q", lane.LaneID, lane.Output)
		}
		// The tool found the file by its relative name, so the child worked there.
		if secret := "the secret of " + lane.RefID; !strings.Contains(w.Heard(), secret) {
			t.Errorf("the model never saw %q", secret)
		}
	}
	if open := w.Model.Stats().MaxOpen; open > 3 {
		t.Errorf("%d requests were open at once", open)
	}
	if working > 3 || working < 2 || waiting > 3 || waiting < 1 {
		t.Errorf("%d children worked at once and %d waited for their tasks, want at most three, and some", working, waiting)
	}
	if left := w.Survivors(); len(left) != 0 {
		t.Errorf("processes survived: %v", left)
	}
	// A batch begins when the one before is over.
	ends, starts := map[int]time.Time{}, map[int]time.Time{}
	for _, request := range w.Model.Requests() {
		for _, lane := range r.Lanes {
			if !strings.Contains(request.User, "Reference id: "+lane.RefID+"\n") {
				continue
			}
			if s := starts[lane.Batch]; s.IsZero() || request.Start.Before(s) {
				starts[lane.Batch] = request.Start
			}
			if request.End.After(ends[lane.Batch]) {
				ends[lane.Batch] = request.End
			}
		}
	}
	for batch := 2; batch <= 3; batch++ {
		if starts[batch].Before(ends[batch-1]) {
			t.Errorf("batch %d began at %v, before batch %d ended at %v", batch, starts[batch], batch-1, ends[batch-1])
		}
	}
	w.checkPrivate()
}
