package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends a program that hangs; no assertion depends on it.
const patience = 3 * time.Minute

// workspace is a git repository with everything that pilothouse needs to work in
// it: the pinned Pi, a scripted model, and an environment of its own. Every
// process that comes of it carries the marker in its environment.
type workspace struct {
	t      *testing.T
	dir    string
	env    []string
	marker string
	model  *scriptedmodel.Server
}

var workspaces atomic.Int64

// newWorkspace makes a workspace for the new generation of Pi, whose model
// answers by the rules.
func newWorkspace(t *testing.T, rules ...scriptedmodel.Rule) *workspace {
	t.Helper()
	return newWorkspaceWith(t, piharness.NewPi(t), rules...)
}

func newWorkspaceWith(t *testing.T, pi piharness.Command, rules ...scriptedmodel.Rule) *workspace {
	t.Helper()
	return newWorkspaceLogged(t, pi, nil, rules...)
}

// newWorkspaceLogged is newWorkspaceWith whose model writes down what it hears.
func newWorkspaceLogged(t *testing.T, pi piharness.Command, log io.Writer, rules ...scriptedmodel.Rule) *workspace {
	t.Helper()
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: rules, Log: log})
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
	w := &workspace{
		t: t, model: model, dir: piharness.Repo(t),
		marker: fmt.Sprintf("pilothouse-e2e-%d-%d-", os.Getpid(), workspaces.Add(1)),
	}
	w.env = append(piharness.Env(t, agentDir), "PILOTHOUSE_PI="+pi.String(), "PILOTHOUSE_E2E="+w.marker)
	t.Cleanup(func() {
		if left := piharness.Survivors(w.marker); len(left) > 0 {
			t.Errorf("processes outlived the test: %v", left)
		}
	})
	return w
}

// newListeningWorkspace is newWorkspace whose model keeps what it hears, tool
// results included.
func newListeningWorkspace(t *testing.T, rules ...scriptedmodel.Rule) (*workspace, func() string) {
	t.Helper()
	log := &lockedBuffer{}
	w := newWorkspaceLogged(t, piharness.NewPi(t), log, rules...)
	return w, log.String
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// write makes a file of the workspace and returns its absolute path.
func (w *workspace) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	writeFile(w.t, path, text)
	return path
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// setenv sets a variable for the programs that are started from now on.
func (w *workspace) setenv(name, value string) { w.env = append(w.env, name+"="+value) }

// ended is what a program left behind.
type ended struct {
	code           int
	stdout, stderr string
}

// last is the last line on stderr: what pilothouse has to say at the end.
func (e ended) last() string {
	lines := strings.Split(strings.TrimSpace(e.stderr), "\n")
	return lines[len(lines)-1]
}

// job is a pilothouse at work.
type job struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	hung           *time.Timer
}

// start starts pilothouse in the workspace.
func (w *workspace) start(args ...string) *job {
	w.t.Helper()
	j := w.prepared(args...)
	j.start()
	return j
}

// prepared is a job that is not started yet.
func (w *workspace) prepared(args ...string) *job {
	w.t.Helper()
	j := &job{t: w.t, cmd: w.command(args...)}
	j.cmd.Stdout, j.cmd.Stderr = &j.stdout, &j.stderr
	return j
}

func (j *job) start() {
	j.t.Helper()
	if err := j.cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	j.hung = time.AfterFunc(patience, func() { _ = j.cmd.Process.Signal(syscall.SIGQUIT) })
}

func (w *workspace) command(args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(piharness.Binary(w.t), args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	return cmd
}

func (j *job) signal(s os.Signal) {
	j.t.Helper()
	if err := j.cmd.Process.Signal(s); err != nil {
		j.t.Fatal(err)
	}
}

// wait waits for the program's end. One that was built with the race detector
// must not have found a race.
func (j *job) wait() ended {
	j.t.Helper()
	_ = j.cmd.Wait() // the exit status is asserted by the caller
	j.hung.Stop()
	e := ended{j.cmd.ProcessState.ExitCode(), j.stdout.String(), j.stderr.String()}
	if strings.Contains(e.stderr, "DATA RACE") || strings.Contains(e.stderr, "panic:") || strings.Contains(e.stderr, "goroutine ") {
		j.t.Errorf("%v reported a defect:\n%s", j.cmd.Args[1:], e.stderr)
	}
	return e
}

// run runs pilothouse in the workspace to its end.
func (w *workspace) run(args ...string) ended {
	w.t.Helper()
	return w.start(args...).wait()
}

// must runs pilothouse and fails the test unless it ends with the status.
func (w *workspace) must(code int, args ...string) ended {
	w.t.Helper()
	e := w.run(args...)
	if e.code != code {
		w.t.Fatalf("pilothouse %v ended with %d, want %d; stderr:\n%s", args, e.code, code, e.stderr)
	}
	return e
}

// await waits until the model's counts satisfy reached.
func (w *workspace) await(reached func(scriptedmodel.Stats) bool) {
	w.t.Helper()
	if err := w.model.Await(w.t.Context(), reached); err != nil {
		w.t.Fatal(err)
	}
}
