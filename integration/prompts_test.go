package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACriticizerAsksItsQuestions(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Task: criticize one plan", call("read", map[string]any{"path": "docs/decision.md"}), say(criticism)))
	path := w.Write("PLAN.md", plan)
	r := w.must(0, "refine", path, "--role", "criticizer", "--model", "inherit", "--json").round(t)

	if r.Role != "criticizer" || r.Model != nil || len(r.Lanes) != 1 {
		t.Fatalf("role %s, model %v, %d lanes", r.Role, r.Model, len(r.Lanes))
	}
	lane := r.lane(t, "criticizer")
	if lane.Status != "complete" || lane.Output != criticism || len(lane.Questions) != 2 || lane.Lens != nil {
		t.Fatalf("lane %+v", lane)
	}
	if q := lane.Questions[1]; q.Number != 2 || q.Text != "Who tells the customer?" || q.Why != "nothing in the plan does." {
		t.Errorf("question %+v", q)
	}
	if got := w.checkpoint(r.RunID).ReviewRounds[0]; got.Role != "criticizer" || got.Reviewers != 1 {
		t.Errorf("round %+v", got)
	}
	entries := w.ledger(r.RunID, "subagents.jsonl")
	if len(entries) != 1 || entries[0]["role"] != "criticizer" || !strings.HasPrefix(entries[0]["name"].(string), "pi-plans-criticizer-criticizer-") { //nolint:errcheck // a panic is a failure too
		t.Errorf("subagents %v", entries)
	}
}

func TestWhatALaneIsToldReachesTheModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		role, lens, task string
		args             []string
	}{
		{"reviewer", correctnessLens, "Task: review one plan", []string{"--reviewers", "2"}},
		{"criticizer", "", "Task: criticize one plan", []string{"--role", "criticizer"}},
	} {
		t.Run(tt.role, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			path := w.Write("PLAN.md", plan)
			args := append([]string{"refine", path, "--model", "sim/plain", "--focus", "is one oven enough", "--context", "a small bakery"}, tt.args...)
			w.must(0, args...)

			prompt := rolePrompt(t, tt.role)
			lensed := false
			for _, request := range w.Model.Requests() {
				if !strings.Contains(request.System, prompt) {
					t.Errorf("the system text lacks the role prompt:\n%s", request.System)
				}
				for _, want := range []string{
					tt.task, "\n" + plan + "\n", "Plan path: " + path, "Specific concerns from the main agent: is one oven enough",
					"Context: a small bakery", "Authority boundary: read only",
				} {
					if !strings.Contains(request.User, want) {
						t.Errorf("the task lacks %q:\n%s", want, request.User)
					}
				}
				lensed = lensed || strings.Contains(request.User, tt.lens)
				if diff := cmp.Diff([]string{"read", "grep", "find", "ls"}, request.Tools); diff != "" {
					t.Errorf("tools (-want +got):\n%s", diff)
				}
			}
			if !lensed || w.Model.Stats().Requests == 0 {
				t.Errorf("of %d requests none has the lens %q", w.Model.Stats().Requests, tt.lens)
			}
		})
	}
}

// rolePrompt is the text of a role's prompt file behind its front matter.
func rolePrompt(t *testing.T, role string) string {
	t.Helper()
	matches, err := filepath.Glob(filepath.Join("..", "agents", "*"+role+".md"))
	if err != nil || len(matches) != 1 {
		t.Fatalf("prompt of the %s: %v, %v", role, matches, err)
	}
	data, err := os.ReadFile(matches[0])
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(strings.TrimPrefix(string(data), "---\n"), "\n---\n")
	if !found {
		t.Fatalf("%s has no front matter", matches[0])
	}
	return strings.TrimSpace(body)
}

func TestAToolThatALaneWasNotGivenDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", call("bash", map[string]any{"command": "touch made-by-bash"}), call("write", map[string]any{"path": "made-by-write", "content": "x"}), say(nothingFound)))
	path := w.Write("PLAN.md", plan)
	before := tree(t, w.Dir)
	r := w.must(0, "refine", path, "--model", "sim/plain", "--json").round(t)
	if lane := r.Lanes[0]; lane.Status != "complete" || lane.Turns != 3 {
		t.Errorf("lane is %s after %d turns", lane.Status, lane.Turns)
	}
	for _, name := range changed(before, tree(t, w.Dir)) {
		if !strings.HasPrefix(name, ".git") && !strings.HasPrefix(name, "docs") {
			t.Errorf("%s was changed", name)
		}
	}
}
