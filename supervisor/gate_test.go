package supervisor_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestPlanModeBlocksWhatMayWriteAndNamesTheWaysOut(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.command("plan", "", p.nobody)
	for _, test := range []struct {
		tool    string
		input   object
		effects string
		blocked bool
	}{
		{"read", object{"path": "main.go"}, "", false},
		{"grep", object{"pattern": "x"}, "", false},
		{"exit_plan_mode", object{"plan": "# x"}, "", false},
		{"ask_choice", object{}, "", false},
		{"write", object{"path": "main.go", "content": ""}, "", true},
		{"write", object{"path": inDir(p.root().Dir, "tmp", "x"), "content": ""}, "", true}, // no run has a plan to be written
		{"edit", object{"path": "main.go", "edits": []any{}}, "none", true},
		{"patch", object{}, "", true},
		{"apply_patch", object{}, "", true},
		{"read", object{}, "workspace", true},
		{"lookup", object{}, "external", true},
		{"lookup", object{}, "", true},
		{"lookup", object{}, "none", false},
		{"subagent", object{}, "none", true},
		{"bash", object{"command": "cd src && git status && git log"}, "", false},
		{"bash", object{"command": "cd src && git status && ./deploy"}, "", true},
		{"bash", object{"command": "git push"}, "", true},
		{"bash", object{"command": "git clone https://example.com/a refs/a"}, "", true},
	} {
		event := object{"toolName": test.tool, "toolCallId": "c9", "input": test.input}
		if test.effects != "" {
			event["sideEffects"] = test.effects
		}
		reply := p.hook("tool_call", event)
		if blocked := reply.Block != nil; blocked != test.blocked {
			t.Errorf("%s %v declaring %q: blocked %v, want %v", test.tool, test.input, test.effects, blocked, test.blocked)
			continue
		}
		if !test.blocked {
			continue
		}
		name := test.tool
		if command, ok := test.input["command"].(string); ok {
			name = strings.TrimSpace(command[strings.LastIndex(command, "&")+1:]) // the segment that is to blame
		}
		says(t, reply.Block.Reason, "exit_plan_mode", "/plan off", name)
		if diff := cmp.Diff([]string{"entry pilothouse-denial"}, kinds(reply)); diff != "" {
			t.Errorf("%s: the denial is not on record: %s", test.tool, diff)
			continue
		}
		var denial struct{ Subject, Tool, ToolCallID, Reason string }
		if err := json.Unmarshal(reply.Actions[0].Data, &denial); err != nil {
			t.Fatal(err)
		}
		if denial.Subject != "tool" || denial.Tool != test.tool || denial.ToolCallID != "c9" || denial.Reason != reply.Block.Reason {
			t.Errorf("the record of the denial is %+v", denial)
		}
	}
}

func TestPlanModeHoldsForTheCommandsOfTheUserToo(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	blocked := func(command string) bool {
		reply := p.hook("user_bash", object{"command": command, "cwd": p.Workdir})
		if reply.Block != nil {
			says(t, reply.Block.Reason, "/plan off", "run the command again")
		}
		return reply.Block != nil
	}
	if blocked("make install") {
		t.Error("blocked without plan mode")
	}
	p.startRun()
	if blocked("make install") {
		t.Error("the write guard of a run holds the user back")
	}
	p.command("plan", "", p.nobody)
	if !blocked("make install") || blocked("git diff | cat") {
		t.Error("plan mode does not hold, or not only for what may write")
	}
}

func TestARunThatIsPlannedKeepsItsWorkspaceReadOnly(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	if reason := p.writes("main.go"); reason != "" {
		t.Fatalf("without a run: %s", reason)
	}
	run := p.startRun()
	artifacts := run.ArtifactDir
	relative, err := filepath.Rel(p.Workdir, artifacts)
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, inDir(artifacts, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inDir(artifacts, "PLAN_v1.md"), inDir(relative, "notes", "a.md"), "@" + inDir(relative, "a.md"), inDir(p.Workdir, ".git/pi_plans/tmp/x")} {
		if reason := p.writes(path); reason != "" {
			t.Errorf("%s: %s", path, reason)
		}
	}
	for _, path := range []string{
		"src/main.go", "@/src/main.go", inDir(filepath.Dir(artifacts), "another-run", "x.md"), artifacts + "-2/x.md", "./refs/a",
		inDir(artifacts, "..", "..", "..", "main.go"), inDir(artifacts, "link", "x"), "",
	} {
		says(t, p.writes(path), "read-only outside planning artifacts", run.RunID, "/plans-abandon")
	}
	if reason := p.calls("read", object{"path": "src/main.go"}); reason != "" {
		t.Errorf("a read: %s", reason)
	}
	if p.runs("git log") != "" || p.runs("go build ./...") == "" {
		t.Error("the shell does not only read")
	}
	says(t, p.runs("sed -i s/a/b/ main.go"), "read-only outside planning artifacts")
	for status, guarded := range map[store.RunStatus]bool{
		store.StatusAccepted: true, store.StatusExecuting: false, store.StatusDone: false, store.StatusStopped: false, store.StatusAbandoned: false,
	} {
		p.setStatus(run, status)
		if got := p.writes("main.go") != ""; got != guarded {
			t.Errorf("%s: guarded %v, want %v", status, got, guarded)
		}
	}
}

func TestReferencesMayBeWrittenWhereTheyAreConfigured(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.startRun()
	set := func(root string) {
		if _, err := p.system.Plans(t.Context(), p.Session, supervisor.PlansAction{Action: "set-refs-root", RefsRoot: root, RefsRootSource: "user"}); err != nil {
			t.Fatal(err)
		}
	}
	clone := func(dir string) string { return p.runs("git clone --depth 1 https://example.com/a " + dir) }
	if p.writes("refs/a/b") == "" || clone("refs/a") == "" {
		t.Error("references may be anywhere")
	}
	set("./refs")
	if p.writes("refs/a/b") != "" || clone("refs/a") != "" || p.writes("main.go") == "" || clone("a") == "" {
		t.Error("references are kept from their directory, or not from others")
	}
	set(".git/pi-plans/refs")
	if p.writes(".git/pi-plans/refs/a/b") != "" || p.writes("refs/a/b") == "" || p.writes(".git/config") == "" {
		t.Error("references are kept from the git directory, or let into all of it")
	}
}

func TestPlanModeInAPlanningRunLetsItsPlanBeWritten(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	run := p.startRun()
	p.command("plan", "", p.nobody)
	if reason := p.writes(inDir(run.ArtifactDir, "PLAN_v1.md")); reason != "" {
		t.Errorf("the plan: %s", reason)
	}
	says(t, p.writes("main.go"), "/plan off")
	p.setStatus(run, store.StatusExecuting)
	if p.writes(inDir(run.ArtifactDir, "PLAN_v1.md")) == "" || p.writes("main.go") == "" {
		t.Error("an execution lifted plan mode, which only the user may")
	}
}

func TestTheRunOfAnotherSessionOnlyKeepsFilesFromBeingWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner, other := b.pi("s1"), b.pi("s2")
	owner.startRun() // active.json points to it
	if other.writes("main.go") == "" {
		t.Error("a session without a run of its own is not guarded by the active one")
	}
	if reason := other.runs("go build ./..."); reason != "" {
		t.Errorf("its shell is guarded, too: %s", reason)
	}
	if owner.runs("go build ./...") == "" {
		t.Error("the session of the run has a shell that writes")
	}
}

func TestTheOwnRunOfASessionCountsBeforeTheActiveOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.pi("s1"), b.pi("s2")
	one := first.startRunOf("one")
	two := second.startRunOf("two") // the pointer moved
	if first.writes(inDir(one.ArtifactDir, "PLAN_v1.md")) != "" || first.writes(inDir(two.ArtifactDir, "PLAN_v1.md")) == "" {
		t.Error("the first session is held to the run of the second")
	}
	first.setStatus(one, store.StatusExecuting)
	if first.writes("main.go") != "" || second.writes("main.go") == "" {
		t.Error("the status of one run counts for the session of the other")
	}
	if err := os.RemoveAll(inDir(first.root().Dir, "runs", one.RunID)); err != nil {
		t.Fatal(err)
	}
	if first.writes("main.go") == "" {
		t.Error("with its run gone, the session is not held to the active one")
	}
}

func TestAnOwnRunThatCannotBeReadIsAnErrorAndNoPermission(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, other := b.pi("s1"), b.pi("s2")
	run := p.startRun()
	if err := os.WriteFile(inDir(p.root().Dir, "runs", run.RunID, "run.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if reply, err := p.system.Hook(t.Context(), p.Session, "tool_call", spelled(t, object{"toolName": "write", "input": object{"path": "x"}})); err == nil {
		t.Errorf("nobody knows whether the run is planned, and the answer is %+v", reply)
	}
	if reason := other.writes("main.go"); reason != "" {
		t.Errorf("a broken run holds a session back that is not its own: %s", reason)
	}
}

func TestASessionOutsideOfARepositoryHasPlanMode(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.Workdir = t.TempDir()
	if p.writes("x") != "" {
		t.Error("blocked without plan mode")
	}
	p.command("plan", "", p.nobody)
	if p.writes("x") == "" || p.runs("ls") != "" || p.runs("touch x") == "" {
		t.Error("plan mode does not hold without a repository")
	}
}

func TestAWorkspaceThatBecomesAnotherIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.startRun()
	if p.writes("main.go") == "" {
		t.Fatal("not guarded")
	}
	nested := inDir(p.Workdir, "nested")
	if err := os.Mkdir(nested, 0o700); err != nil {
		t.Fatal(err)
	}
	inner := *p
	inner.Workdir = nested
	if inner.writes("main.go") == "" {
		t.Error("a directory of the workspace is not guarded")
	}
	if out, err := exec.Command("git", "init", "-q", nested).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if reason := inner.writes("main.go"); reason != "" {
		t.Errorf("a repository of its own is guarded by the run of the one around it: %s", reason)
	}
	if err := os.RemoveAll(inDir(nested, ".git")); err != nil {
		t.Fatal(err)
	}
	if inner.writes("main.go") == "" {
		t.Error("with its repository gone the directory is not guarded")
	}
}
