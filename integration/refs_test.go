package integration_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/scriptedmodel"
)

// reference makes a directory with a file that exists nowhere else.
func (w *workspace) reference(id string) string {
	w.t.Helper()
	return filepath.Dir(w.write("refs/"+id+"/only-in-"+id+".md", "the secret of "+id+"\n"))
}

// readsItsOwn scripts a lane that reads the file that only its own directory has,
// by a relative path.
func readsItsOwn(id string) scriptedmodel.Rule {
	last := say(analysis)
	last.LogMessages = true
	return on("Reference id: "+id+"\n",
		scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "only-in-" + id + ".md"}, BeforeMs: 100}, last)
}

func TestSevenReferencesAreAnalysedInBatchesOfThree(t *testing.T) {
	t.Parallel()
	var rules []scriptedmodel.Rule
	for i := range 7 {
		rules = append(rules, readsItsOwn(fmt.Sprintf("r%d", i+1)))
	}
	w, heard := newListeningWorkspace(t, rules...)
	args := []string{"analyze-refs", "--model", "sim/plain", "--json", "--context", "a bakery"}
	for i := range 7 {
		id := fmt.Sprintf("r%d", i+1)
		args = append(args, "--ref", id+"="+w.reference(id))
	}

	j := w.start(args...)
	most := w.mostChildren(j)
	e := j.wait()
	if e.code != 0 {
		t.Fatalf("ended with %d: %s", e.code, e.stderr)
	}
	r := e.round(t)
	if r.Role != "ref-analyst" || len(r.Lanes) != 7 {
		t.Fatalf("role %s, %d lanes", r.Role, len(r.Lanes))
	}
	for i, lane := range r.Lanes {
		want := fmt.Sprintf("ref-%d r%d %d complete", i+1, i+1, i/3+1)
		if got := fmt.Sprintf("%s %s %d %s", lane.LaneID, lane.RefID, lane.Batch, lane.Status); got != want {
			t.Errorf("lane %s, want %s", got, want)
		}
		if len(lane.Sections) == 0 || lane.Output != analysis {
			t.Errorf("lane %s answered %q", lane.LaneID, lane.Output)
		}
		// The tool found the file by its relative name, so the child worked there.
		if secret := "the secret of " + lane.RefID; !strings.Contains(heard(), secret) {
			t.Errorf("the model never saw %q", secret)
		}
	}
	if open := w.model.Stats().MaxOpen; open > 3 || open < 2 {
		t.Errorf("%d requests were open at once", open)
	}
	if most > 3 || most < 1 {
		t.Errorf("%d children lived at once", most)
	}
	// A batch begins when the one before is over.
	ends, starts := map[int]time.Time{}, map[int]time.Time{}
	for _, request := range w.model.Requests() {
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

func TestAReferenceThatIsMissingFailsAloneAndWithoutAChild(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, readsItsOwn("one"), readsItsOwn("two"))
	gone := filepath.Join(w.dir, "refs", "gone")
	e := w.must(0, "analyze-refs", "--model", "sim/plain", "--json", "--ref", "one="+w.reference("one"), "--ref", "gone="+gone, "--ref", "two="+w.reference("two"))
	r := e.round(t)
	if diff := cmp.Diff(map[string]string{"ref-1": "complete", "ref-2": "failed", "ref-3": "complete"}, r.statuses()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	lane := r.lane(t, "gone")
	if lane.Attempts != 0 || lane.Exit.Code != nil || lane.Exit.Signal != nil || lane.Error.Message != "reference directory not found: "+gone {
		t.Errorf("lane %+v, error %+v", lane, lane.Error)
	}
	if want := "pilothouse: 2 of 3 lanes complete; "; !strings.Contains(e.stderr, want) || !strings.Contains(e.stderr, gone) {
		t.Errorf("stderr lacks %q or the directory:\n%s", want, e.stderr)
	}
}

func TestAnAnalysisWithoutARunBelongsToNone(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, readsItsOwn("one"))
	r := w.must(0, "analyze-refs", "--model", "sim/plain", "--json", "--ref", "one="+w.reference("one")).round(t)
	if r.RunID != "adhoc" || len(w.runs()) != 0 {
		t.Errorf("run %s, on disk %v", r.RunID, w.runs())
	}
	var raw struct{ Lanes []struct{ Name string } }
	e := w.must(0, "analyze-refs", "--model", "sim/plain", "--json", "--ref", "one="+w.reference("one"))
	if err := json.Unmarshal([]byte(e.stdout), &raw); err != nil {
		t.Fatal(err)
	}
	if got := raw.Lanes[0].Name; got != "pi-plans-refs-adhoc-ref-1" {
		t.Errorf("the child is called %s", got)
	}
	for name := range tree(t, w.stateRoot()) {
		if strings.HasSuffix(name, "subagents.jsonl") {
			t.Errorf("there is a ledger: %s", name)
		}
	}
	if file := r.Lanes[0].ResultFile; file == nil || readFile(t, *file) != analysis {
		t.Errorf("the answer is not stored: %v", file)
	}
}

func TestAnAnalysisIsRecordedInTheActiveRunButNotInItsCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, readsItsOwn("one"))
	w.must(0, "plans", "start-run", "--topic", "More bread", "--skill", "plan-small", "--requestText", "bake")
	run := w.runs()[0]
	before := readFile(t, w.runFile(run, "checkpoint.json"))
	r := w.must(0, "analyze-refs", "--model", "sim/plain", "--json", "--ref", "one="+w.reference("one")).round(t)
	if r.RunID != run {
		t.Errorf("run %s, want %s", r.RunID, run)
	}
	entries := w.ledger(run, "subagents.jsonl")
	if len(entries) != 1 || entries[0]["role"] != "ref-analyst" || entries[0]["name"] != "pi-plans-refs-"+run+"-ref-1" || entries[0]["model"] != "plain" {
		t.Errorf("subagents %v", entries)
	}
	if after := readFile(t, w.runFile(run, "checkpoint.json")); after != before {
		t.Errorf("the checkpoint changed:\n%s", cmp.Diff(before, after))
	}
}

func TestWhenEveryReferenceIsMissingTheAnalysisFails(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	e := w.must(1, "analyze-refs", "--model", "sim/plain", "--json", "--ref", "a=nowhere", "--ref", "b=README.md")
	if diff := cmp.Diff(map[string]string{"ref-1": "failed", "ref-2": "failed"}, e.round(t).statuses()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if got := w.model.Stats().Requests; got != 0 {
		t.Errorf("the model got %d requests", got)
	}
}
