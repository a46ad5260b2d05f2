package integration_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// reference makes a directory with a file that exists nowhere else.
func (w *workspace) reference(id string) string {
	w.t.Helper()
	return filepath.Dir(w.Write("refs/"+id+"/only-in-"+id+".md", "the secret of "+id+"\n"))
}

// readsItsOwn scripts a lane that reads the file that only its own directory has,
// by a relative path.
func readsItsOwn(id string) scriptedmodel.Rule {
	last := say(analysis)
	last.LogMessages = true
	return on("Reference id: "+id+"\n",
		scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "only-in-" + id + ".md"}, BeforeMs: 100}, last)
}

func TestAReferenceThatIsMissingFailsAloneAndWithoutAChild(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, readsItsOwn("one"), readsItsOwn("two"))
	gone := filepath.Join(w.Dir, "refs", "gone")
	e := w.must(0, "analyze-refs", "--model", "sim/plain", "--json", "--ref", "one="+w.reference("one"), "--ref", "gone="+gone, "--ref", "two="+w.reference("two"))
	r := e.round(t)
	if diff := cmp.Diff(map[string]string{"ref-1": "complete", "ref-2": "failed", "ref-3": "complete"}, r.statuses()); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	lane := r.lane(t, "gone")
	if lane.Attempts != 0 || lane.Exit.Code != nil || lane.Exit.Signal != nil || lane.Error.Message != "reference directory not found: "+gone {
		t.Errorf("lane %+v, error %+v", lane, lane.Error)
	}
	if want := "pilothouse: 2 of 3 lanes complete; "; !strings.Contains(e.Stderr, want) || !strings.Contains(e.Stderr, gone) {
		t.Errorf("stderr lacks %q or the directory:\n%s", want, e.Stderr)
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
	if err := json.Unmarshal([]byte(e.Stdout), &raw); err != nil {
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
	if file := r.Lanes[0].ResultFile; file == nil || piharness.ReadFile(t, *file) != analysis {
		t.Errorf("the answer is not stored: %v", file)
	}
}

func TestAnAnalysisIsRecordedInTheActiveRunButNotInItsCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, readsItsOwn("one"))
	w.must(0, "plans", "start-run", "--topic", "More bread", "--skill", "plan-small", "--requestText", "bake")
	run := w.runs()[0]
	before := piharness.ReadFile(t, w.runFile(run, "checkpoint.json"))
	r := w.must(0, "analyze-refs", "--model", "sim/plain", "--json", "--ref", "one="+w.reference("one")).round(t)
	if r.RunID != run {
		t.Errorf("run %s, want %s", r.RunID, run)
	}
	entries := w.ledger(run, "subagents.jsonl")
	if len(entries) != 1 || entries[0]["role"] != "ref-analyst" || entries[0]["name"] != "pi-plans-refs-"+run+"-ref-1" || entries[0]["model"] != "plain" {
		t.Errorf("subagents %v", entries)
	}
	if after := piharness.ReadFile(t, w.runFile(run, "checkpoint.json")); after != before {
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
	if got := w.Model.Stats().Requests; got != 0 {
		t.Errorf("the model got %d requests", got)
	}
}
