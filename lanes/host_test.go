package lanes_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes"
	"pilothouse/lanes/proc"
)

// tellTale is a pi that prints its argv, its environment, its task and the mode
// of its prompt file, and the prompt.
const tellTale = `#!/bin/sh
for word in "$@"; do printf 'arg %s\n' "$word"; last=$word; done
env | sed 's/^/env /'
sed 's/^/task /'
echo
stat -c 'mode %a' "$last" "${last%/*}"
sed 's/^/prompt /' "$last"
`

// piHost is a place that runs a script as pi.
func piHost(t *testing.T, script string) *lanes.PiHost {
	t.Helper()
	spawner, err := proc.NewSpawner(proc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spawner.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(t.TempDir(), "pi")
	write(t, program, script, 0o755)
	return &lanes.PiHost{
		Pace:    &lanes.Pace{},
		Spawner: spawner, Command: lanes.Command{Path: program, Args: []string{"first"}}, Scratch: t.TempDir(),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "API_KEY=sk-secret", "PI_PLANS_REFINER=0", "TRACEPARENT=outer"},
	}
}

// tell runs a lane's child and sorts what it prints by its first word.
func tell(t *testing.T, host *lanes.PiHost, s lanes.Spec, traceparent string) map[string][]string {
	t.Helper()
	child, err := host.Start(context.Background(), s, traceparent)
	if err != nil {
		t.Fatal(err)
	}
	child.Feed([]byte(s.Task))
	data, err := io.ReadAll(child.Stdout())
	if err != nil {
		t.Error(err)
	}
	if exit := child.Wait(); exit.Code != 0 {
		t.Errorf("exit status %d: %s", exit.Code, exit.Stderr)
	}
	told := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		told[kind] = append(told[kind], rest)
	}
	return told
}

func TestTheArgumentsOfALane(t *testing.T) {
	t.Parallel()
	isolation := []string{"--mode", "json", "-p", "--no-session", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files"}
	tools := []string{"--tools", "read,grep,find,ls"}
	tests := []struct {
		name       string
		untrusting bool
		model      string
		want       []string
	}{
		{"a pi of an unknown generation", false, "", nil},
		{"a pi of the newer generation", true, "", []string{"--no-approve"}},
		{"a model", true, "sim/plain:high", []string{"--no-approve", "--model", "sim/plain:high"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			host := piHost(t, tellTale)
			host.Command.Untrusting = test.untrusting
			s := spec("general")
			s.Dir, s.Model, s.Task = t.TempDir(), test.model, "Task: a secret plan"
			args := tell(t, host, s, "")["arg"]
			want := append([]string{"first"}, append(append(append([]string{}, isolation...), tools...), test.want...)...)
			want = append(want, "--append-system-prompt")
			if diff := cmp.Diff(want, args[:len(args)-1]); diff != "" {
				t.Error(diff)
			}
			if all := strings.Join(args, " "); strings.Contains(all, "secret") || strings.Contains(all, "You review") {
				t.Errorf("the arguments, which everybody can read, hold the task, the prompt or a key: %s", all)
			}
		})
	}
}

func TestAChildGetsItsTaskItsPromptAndItsEnvironment(t *testing.T) {
	t.Parallel()
	host := piHost(t, tellTale)
	s := spec("general")
	s.Dir, s.SystemPrompt, s.Task = t.TempDir(), "You review.\nSay “ja”.", "Task: "+strings.Repeat("lang ", 100_000)
	told := tell(t, host, s, "00-inner-01")
	if diff := cmp.Diff([]string{s.Task}, told["task"]); diff != "" {
		t.Error("the task did not arrive whole")
	}
	if diff := cmp.Diff([]string{"You review.", "Say “ja”."}, told["prompt"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"600", "700"}, told["mode"]); diff != "" {
		t.Error("modes of the prompt file and its folder: " + diff)
	}
	var ours []string
	for _, variable := range told["env"] {
		for _, name := range []string{"PI_PLANS_REFINER=", "TRACEPARENT=", "API_KEY="} {
			if strings.HasPrefix(variable, name) {
				ours = append(ours, variable)
			}
		}
	}
	slices.Sort(ours)
	want := []string{"API_KEY=sk-secret", "PI_PLANS_REFINER=1", "TRACEPARENT=00-inner-01"}
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Error(diff)
	}
	wantEmpty(t, host.Scratch)
}

func TestTheSessionsTraceReachesAChildOfARoundWithoutOne(t *testing.T) {
	t.Parallel()
	s := spec("general")
	s.Dir = t.TempDir()
	for _, variable := range tell(t, piHost(t, tellTale), s, "")["env"] {
		if variable == "TRACEPARENT=outer" {
			return
		}
	}
	t.Error("the session's TRACEPARENT is gone")
}

func TestAPromptIsRemovedWithAChildThatIsEnded(t *testing.T) {
	t.Parallel()
	host := piHost(t, "#!/bin/sh\nsleep 600\n")
	s := spec("general")
	s.Dir = t.TempDir()
	child, err := host.Start(context.Background(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(host.Scratch); err != nil || len(entries) != 1 {
		t.Errorf("%d prompts of a living child, %v", len(entries), err)
	}
	child.Terminate()
	if _, err := io.Copy(io.Discard, child.Stdout()); err != nil {
		t.Error(err)
	}
	if exit := child.Wait(); exit.Signal != "SIGTERM" {
		t.Errorf("exit %+v", exit)
	}
	wantEmpty(t, host.Scratch)
}

func TestAFailedStartLeavesNoPrompt(t *testing.T) {
	t.Parallel()
	host := piHost(t, "#!/nowhere/sh\n")
	s := spec("general")
	s.Dir = t.TempDir()
	_, err := host.Start(context.Background(), s, "")
	var start *proc.StartError
	if !errors.As(err, &start) || !strings.Contains(err.Error(), "/nowhere/sh") {
		t.Errorf("got %v, want a *proc.StartError that names the interpreter", err)
	}
	wantEmpty(t, host.Scratch)

	host.Scratch = filepath.Join(host.Scratch, "gone")
	if _, err := host.Start(context.Background(), s, ""); err == nil {
		t.Error("a prompt that cannot be written is no error")
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("%d prompts are left, %v", len(entries), err)
	}
}
