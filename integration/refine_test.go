package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// reviewers scripts the three lenses: each looks at a file with another tool
// before it answers.
func reviewers() []scriptedmodel.Rule {
	return []scriptedmodel.Rule{
		on(correctnessLens, call("read", map[string]any{"path": "oven/oven.go"}), say(oneFinding)),
		on(orderingLens, call("grep", map[string]any{"pattern": "Minutes"}), call("ls", map[string]any{"path": "docs"}), say(nothingFound)),
		on(verificationLens, call("ls", map[string]any{"path": "."}), say(oneFinding)),
	}
}

func TestThreeReviewersAnswerWithTheirFindings(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, reviewers()...)
	path := w.Write("PLAN_v2.md", plan)

	e := w.must(0, "refine", path, "--reviewers", "3", "--model", "sim/plain", "--drain-timeout", unhurried, "--json")
	r := e.round(t)

	if r.Role != "reviewer" || r.Target != "plan" || r.Model == nil || *r.Model != "sim/plain" {
		t.Errorf("role %s, target %s, model %v", r.Role, r.Target, r.Model)
	}
	if got := w.runs(); len(got) != 1 || r.RunID != got[0] || !strings.HasSuffix(r.RunID, "Z-bake-more-bread") {
		t.Errorf("run %s, on disk %v", r.RunID, got)
	}
	var order []string
	for _, lane := range r.Lanes {
		order = append(order, lane.LaneID)
		if lane.Lens == nil || *lane.Lens != lane.LaneID {
			t.Errorf("lane %s has the lens %v", lane.LaneID, lane.Lens)
		}
		if lane.Status != "complete" || lane.Attempts != 1 || lane.Model == nil || *lane.Model != "plain" {
			t.Errorf("lane %s: status %s, %d attempts, model %v", lane.LaneID, lane.Status, lane.Attempts, lane.Model)
		}
		if u := lane.Usage; u.Input <= 0 || u.Output <= 0 || u.Cost <= 0 || lane.DurationMs <= 0 {
			t.Errorf("lane %s: usage %+v, %d ms", lane.LaneID, u, lane.DurationMs)
		}
		if lane.Exit.Code == nil || *lane.Exit.Code != 0 || lane.Exit.Signal != nil {
			t.Errorf("lane %s: exit %+v", lane.LaneID, lane.Exit)
		}
		if lane.ResultFile == nil || !filepath.IsAbs(*lane.ResultFile) || piharness.ReadFile(t, *lane.ResultFile) != lane.Output {
			t.Errorf("lane %s: result file %v does not hold the answer", lane.LaneID, lane.ResultFile)
		}
		if lane.WellFormed == nil || !*lane.WellFormed || lane.Reused {
			t.Errorf("lane %s: well-formed %v, reused %v", lane.LaneID, lane.WellFormed, lane.Reused)
		}
		if !strings.Contains(r.Text, lane.Output) {
			t.Errorf("the text lacks the answer of lane %s", lane.LaneID)
		}
	}
	if diff := cmp.Diff([]string{"correctness", "ordering", "verification"}, order); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
	for id, turns := range map[string]int{"correctness": 2, "ordering": 3, "verification": 2} {
		if lane := r.lane(t, id); lane.Turns != turns {
			t.Errorf("lane %s took %d turns, want %d", id, lane.Turns, turns)
		}
	}
	if got := r.lane(t, "ordering"); got.Output != nothingFound || len(got.Findings) != 0 {
		t.Errorf("ordering answered %q with findings %v", got.Output, got.Findings)
	}
	found := r.lane(t, "correctness")
	if found.Output != oneFinding || len(found.Findings) != 1 {
		t.Fatalf("correctness answered %q with findings %v", found.Output, found.Findings)
	}
	f := found.Findings[0]
	if f.ID != "F-001" || f.Severity != "high" || f.Title != "The oven is full" || f.Disposition != "accept" || f.Fix != "Bake in two batches." {
		t.Errorf("finding %+v", f)
	}
	if diff := cmp.Diff([]string{"I-001", "VC-001"}, f.Affects); diff != "" {
		t.Errorf("affects (-want +got):\n%s", diff)
	}
}

func TestARoundIsShownToAPersonWithItsWorstFindingsAndWhereItIsStored(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Review lens", say(nothingFound)), on("Goal:", say(oneFinding)))
	path := w.Write("PLAN.md", plan)
	e := w.must(0, "refine", path, "--model", "inherit")
	for _, want := range []string{
		"HIGH   general/F-001  The oven is full", "oven/oven.go:5", "Bake in two batches.", "general.md", "1 of 1 lanes complete",
	} {
		if !strings.Contains(e.Stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, e.Stdout)
		}
	}
	if strings.Contains(e.Stdout, "starting") || !strings.Contains(e.Stderr, "Reviewer (inherit)") {
		t.Errorf("progress belongs on stderr; stdout:\n%s\nstderr:\n%s", e.Stdout, e.Stderr)
	}
	if _, err := os.Stat(w.runFile(w.runs()[0], "reviews")); err != nil {
		t.Error(err)
	}
}
