package supervisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
	"pilothouse/supervisor/guard"
)

func TestThePolicyOfPlanModeKnowsThePlanningDirectoriesOfTheWorkspace(t *testing.T) {
	b := setup(t)
	request := b.plan("PLAN_v1.md", "# Plan\n")
	if _, err := b.system.Refine(t.Context(), request, nil); err != nil {
		t.Fatal(err)
	}
	root, err := store.Find(t.Context(), b.session.Workdir)
	if err != nil {
		t.Fatal(err)
	}
	refs := "../refs"
	if _, err := root.UpdateConfig(func(c *store.Config) error {
		c.RefsRoot, c.RefsRootSource = &refs, store.SourceUser
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	active, ok, err := root.Active()
	if err != nil || !ok {
		t.Fatalf("no active run: %v", err)
	}
	run, err := active.Load()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	policy, notices := supervisor.GuardPolicy(t.Context(), b.session.Workdir)
	want := []string{filepath.Join(home, ".cache", "pi-plans"), root.Dir, run.ArtifactDir, filepath.Join(b.session.Workdir, refs)}
	if diff := cmp.Diff(want, policy.Planning); diff != "" || len(notices) > 0 {
		t.Errorf("notices %q, planning directories: %s", notices, diff)
	}
	for path, want := range map[string]guard.Decision{
		filepath.Join(run.ArtifactDir, "PLAN_v2.md"): guard.Allow,
		filepath.Join(root.Dir, "runs/x/notes.md"):   guard.Allow,
		"../refs/a/b":  guard.Allow,
		"main.go":      guard.Block,
		"../main.go":   guard.Block,
		".git/config":  guard.Block,
		".git/HEAD/..": guard.Block,
	} {
		if got := policy.Tool(guard.ToolCall{Name: "write", Args: map[string]any{"path": path}}); got.Decision != want {
			t.Errorf("write %s is %s, want %s: %s", path, got.Decision, want, got.Reason)
		}
	}
}

func TestAdditionsToThePolicyAreReadFromAFileOfOurOwn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file    string
		mytool  guard.Decision
		notices []string // parts of them, in order
	}{
		"no file":       {"", guard.Block, nil},
		"additions":     {`{"allow":["mytool"]}`, guard.Allow, nil},
		"known writers": {`{"allow":["rm","mytool","bash"]}`, guard.Allow, []string{`"bash" in `, `"rm" in `}},
		"a broken file": {`{"allow":["mytool"`, guard.Block, []string{"is ignored"}},
		"another type":  {`{"allow":"mytool"}`, guard.Block, []string{"is ignored"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session := newSession(t)
			path := filepath.Join(session.Workdir, ".git", "pi_plans", "pilothouse", "guard.json")
			if test.file != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			policy, notices := supervisor.GuardPolicy(t.Context(), session.Workdir)
			if got := policy.Shell("mytool | sort"); got.Decision != test.mytool {
				t.Errorf("mytool is %s, want %s: %s", got.Decision, test.mytool, got.Reason)
			}
			if got := policy.Shell("rm x"); got.Allowed() {
				t.Error("rm is allowed")
			}
			if len(notices) != len(test.notices) {
				t.Fatalf("got %q, want %d notices", notices, len(test.notices))
			}
			for i, part := range test.notices {
				if !strings.Contains(notices[i], part) || !strings.Contains(notices[i], path) {
					t.Errorf("the notice %q lacks %q or the file", notices[i], part)
				}
			}
		})
	}
}

func TestWithoutARepositoryThePolicyStillJudges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, notices := supervisor.GuardPolicy(t.Context(), dir)
	if len(notices) > 0 || policy.Workspace != dir {
		t.Errorf("notices %q, workspace %s", notices, policy.Workspace)
	}
	if !policy.Shell("ls").Allowed() || policy.Shell("rm x").Allowed() {
		t.Error("ls has to pass and rm has not")
	}
	if policy.Tool(guard.ToolCall{Name: "write", Args: map[string]any{"path": "x"}}).Allowed() {
		t.Error("a write outside of the planning directories passes")
	}
}
