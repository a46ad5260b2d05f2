// Package execute_test carries plans out with the real Pi and a scripted model: the
// program alone, no Pi session.
package execute_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends a program that hangs; no assertion depends on it.
const patience = 3 * time.Minute

// planText has two checks.
const planText = `# Say how long a batch takes

## Implementation Items
- ` + "`I-001`" + `: write batch.txt
- ` + "`I-002`" + `: bake faster

## Verifier Checklist
- [ ] ` + "`VC-001`" + ` covers I-001; batch.txt says 45
- [ ] ` + "`VC-002`" + ` covers I-002; oven.go says 40
`

// scene is a repository with a plan, the pinned Pi and a model that follows rules.
type scene struct {
	t      *testing.T
	dir    string
	env    []string
	marker string
	model  *scriptedmodel.Server
}

var scenes atomic.Int64

func newScene(t *testing.T, rules ...scriptedmodel.Rule) *scene {
	t.Helper()
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	agentDir := filepath.Join(t.TempDir(), "agent")
	if err := scriptedmodel.AgentDir(agentDir, model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, dir: piharness.Repo(t), model: model, marker: fmt.Sprintf("pilothouse-execute-%d-%d-", os.Getpid(), scenes.Add(1))}
	s.env = append(piharness.Env(t, agentDir), "PILOTHOUSE_PI="+piharness.NewPi(t).String(), "PILOTHOUSE_E2E="+s.marker)
	s.write("PLAN.md", planText)
	t.Cleanup(s.noSurvivors)
	return s
}

// noSurvivors waits until no process of the scene is left: after a kill of the program
// its guard ends them.
func (s *scene) noSurvivors() {
	s.t.Helper()
	deadline, poll := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer poll.Stop()
	for {
		left := piharness.Survivors(s.marker)
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline:
			s.t.Errorf("processes outlived the test: %v", left)
			return
		case <-poll.C:
		}
	}
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// digest is what a user who has read a file approves.
func (s *scene) digest(name string) string {
	sum := sha256.Sum256([]byte(s.read(name)))
	return hex.EncodeToString(sum[:])
}

// ended is what a program left behind.
type ended struct {
	code           int
	stdout, stderr string
}

// job is a pilothouse at work.
type job struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	hung           *time.Timer
}

func (s *scene) start(args ...string) *job {
	s.t.Helper()
	j := &job{t: s.t, cmd: exec.Command(piharness.Binary(s.t), args...)}
	j.cmd.Dir, j.cmd.Env = s.dir, s.env
	j.cmd.Stdout, j.cmd.Stderr = &j.stdout, &j.stderr
	if err := j.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	j.hung = time.AfterFunc(patience, func() { _ = j.cmd.Process.Signal(syscall.SIGQUIT) })
	return j
}

func (j *job) signal(signal os.Signal) {
	j.t.Helper()
	if err := j.cmd.Process.Signal(signal); err != nil {
		j.t.Fatal(err)
	}
}

func (j *job) wait() ended {
	j.t.Helper()
	_ = j.cmd.Wait() // the exit status is asserted by the caller
	j.hung.Stop()
	e := ended{j.cmd.ProcessState.ExitCode(), j.stdout.String(), j.stderr.String()}
	if strings.Contains(e.stderr, "DATA RACE") || strings.Contains(e.stderr, "panic:") {
		j.t.Errorf("%v reported a defect:\n%s", j.cmd.Args[1:], e.stderr)
	}
	return e
}

// must runs pilothouse and fails the test unless it ends with the status.
func (s *scene) must(code int, args ...string) ended {
	s.t.Helper()
	e := s.start(args...).wait()
	if e.code != code {
		s.t.Fatalf("pilothouse %v ended with %d, want %d; stdout:\n%s\nstderr:\n%s", args, e.code, code, e.stdout, e.stderr)
	}
	return e
}

// await waits until the model's counts satisfy reached.
func (s *scene) await(reached func(scriptedmodel.Stats) bool) {
	s.t.Helper()
	if err := s.model.Await(s.t.Context(), reached); err != nil {
		s.t.Fatal(err)
	}
}

// report is what execute --json printed.
func report(t *testing.T, e ended) supervisor.ExecuteResult {
	t.Helper()
	var r supervisor.ExecuteResult
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatalf("%v in:\n%s\nstderr:\n%s", err, e.stdout, e.stderr)
	}
	return r
}

// onlyRun is the run of the scene, which has one.
func (s *scene) onlyRun() (store.RunDir, store.Run, store.Checkpoint) {
	s.t.Helper()
	root, err := store.Find(s.t.Context(), s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	runs, err := root.Runs()
	if err != nil || len(runs) != 1 {
		s.t.Fatalf("%d runs, %v; want one", len(runs), err)
	}
	cp, err := runs[0].Dir.LoadCheckpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	return runs[0].Dir, runs[0].Run, cp
}

// bash is a step that runs a command.
func bash(command string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": command}}
}

// says is a step that ends the agent's run.
func says(text string) scriptedmodel.Step { return scriptedmodel.Step{Text: text} }

// when answers a message of the executor that has these words.
func when(words string, steps ...scriptedmodel.Step) scriptedmodel.Rule {
	return scriptedmodel.Rule{Match: words, Steps: steps}
}
