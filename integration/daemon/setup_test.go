// Package daemon_test has the daemon as its users meet it: real processes of
// pilothouse that work through `pilothouse serve`, which is asked, left, killed and
// brought back.
package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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
	"pilothouse/supervisor/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends a program that hangs; no assertion depends on it.
const patience = 2 * time.Minute

// pi is a program in the place of pi. It reads its task; "STUB-401" in it makes the
// child fail. It says that it responds, waits for the file $GATE, if that is set, and
// answers as a reviewer.
const pi = `#!/bin/sh
task=$(cat)
echo x >>"$STARTS"
say() { printf '%s\n' "$1"; }
say '{"type":"session","version":3,"id":"stub"}'
say '{"type":"agent_start"}'
say '{"type":"turn_start"}'
case $task in
*STUB-401*)
  say '{"type":"message_end","message":{"role":"assistant","content":[],"model":"stub","stopReason":"error","errorMessage":"401: bad key","usage":{"input":1,"output":0,"cost":{"total":0}}}}' ;;
*)
  say '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"looking"}}'
  if [ -n "$GATE" ]; then until [ -e "$GATE" ]; do sleep 0.02; done; fi
  say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"## Findings\n\nNo findings.\n\n## Checked\n\n- <b> & all the rest"}],"model":"stub","stopReason":"stop","usage":{"input":10,"output":5,"cost":{"total":0.25}}}}' ;;
esac
say '{"type":"agent_end","messages":[],"willRetry":false}'
say '{"type":"agent_settled","aborted":false}'
`

const planText = "# Bake more bread\n\n## Items\n- I-001 Bake forty loaves a day in the one oven.\n"

// scene is a workspace, and the place of a daemon beside it. All processes that come
// of it have the marker in their environment.
type scene struct {
	t       *testing.T
	dir     string
	env     []string
	marker  string
	home    string
	runtime string // XDG_RUNTIME_DIR
	starts  string // file with a line for each child
	gate    string // children wait for it where GATE is set
}

var scenes atomic.Int64

func newScene(t *testing.T) *scene {
	t.Helper()
	env := piharness.Env(t, filepath.Join(t.TempDir(), "agent"))
	s := &scene{t: t, dir: piharness.Repo(t), marker: fmt.Sprintf("pilothouse-daemon-%d-%d-", os.Getpid(), scenes.Add(1))}
	for _, entry := range env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			s.home = home
		}
	}
	s.runtime, s.starts, s.gate = filepath.Join(s.home, "runtime"), filepath.Join(s.home, "starts"), filepath.Join(s.home, "gate")
	if err := os.Mkdir(s.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(s.home, "pi")
	s.write(program, pi)
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.dir, "plan.md"), planText)
	s.env = append(env, "PILOTHOUSE_PI="+program, "XDG_RUNTIME_DIR="+s.runtime, "STARTS="+s.starts, "PILOTHOUSE_E2E="+s.marker)
	t.Cleanup(func() { s.noSurvivors() })
	return s
}

func (s *scene) write(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) read(path string) string {
	s.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// gated makes the children of the commands from now on wait for the returned function.
func (s *scene) gated() func() {
	s.env = append(s.env, "GATE="+s.gate)
	return func() { s.write(s.gate, "") }
}

func (s *scene) socket() string { return filepath.Join(s.runtime, "pilothouse", "api.sock") }

func (s *scene) noSurvivors() {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		left := piharness.Survivors(s.marker)
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline:
			s.t.Errorf("processes outlived the test: %v", left)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ended is what a program left behind.
type ended struct {
	code           int
	signal         syscall.Signal
	stdout, stderr string
}

// job is a pilothouse at work.
type job struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
	hung           *time.Timer
}

func (s *scene) prepare(args ...string) *job {
	s.t.Helper()
	j := &job{t: s.t, cmd: exec.Command(piharness.Binary(s.t), args...)}
	j.cmd.Dir, j.cmd.Env = s.dir, s.env
	j.cmd.Stdout, j.cmd.Stderr = &j.stdout, &j.stderr
	return j
}

func (j *job) begin() *job {
	j.t.Helper()
	if err := j.cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	j.hung = time.AfterFunc(patience, func() { _ = j.cmd.Process.Signal(syscall.SIGQUIT) })
	return j
}

func (s *scene) start(args ...string) *job {
	s.t.Helper()
	return s.prepare(args...).begin()
}

func (j *job) signal(sig syscall.Signal) {
	j.t.Helper()
	if err := j.cmd.Process.Signal(sig); err != nil {
		j.t.Fatal(err)
	}
}

// wait waits for the program's end. It must not have reported a defect of its own.
func (j *job) wait() ended {
	j.t.Helper()
	_ = j.cmd.Wait() // the exit status is asserted by the caller
	j.hung.Stop()
	e := ended{code: j.cmd.ProcessState.ExitCode(), stdout: j.stdout.String(), stderr: j.stderr.String()}
	if status, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = status.Signal()
	}
	if strings.Contains(e.stderr, "DATA RACE") || strings.Contains(e.stderr, "panic:") || strings.Contains(e.stderr, "goroutine ") {
		j.t.Errorf("%v reported a defect:\n%s", j.cmd.Args[1:], e.stderr)
	}
	return e
}

// says waits until the program has written words to stderr.
func (j *job) says(words string) {
	j.t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(j.stderr.String(), words) {
		select {
		case <-deadline:
			j.t.Fatalf("%v never said %q:\n%s", j.cmd.Args[1:], words, j.stderr.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *scene) run(args ...string) ended {
	s.t.Helper()
	return s.start(args...).wait()
}

func (s *scene) must(code int, args ...string) ended {
	s.t.Helper()
	e := s.run(args...)
	if e.code != code {
		s.t.Fatalf("pilothouse %v ended with %d, want %d; stdout:\n%s\nstderr:\n%s", args, e.code, code, e.stdout, e.stderr)
	}
	return e
}

// serve starts a daemon and returns when it says that it is ready, as it does to a
// service manager.
func (s *scene) serve(args ...string) *job {
	s.t.Helper()
	j := s.prepare(append([]string{"serve"}, args...)...)
	said := s.manager(j)
	j.begin()
	s.t.Cleanup(func() {
		if j.cmd.ProcessState == nil {
			j.signal(syscall.SIGKILL)
			j.wait()
		}
	})
	if state := <-said; state != "READY=1" {
		s.t.Fatalf("the daemon said %q; stderr:\n%s", state, j.stderr.String())
	}
	return j
}

// manager listens for what a program tells its service manager.
func (s *scene) manager(j *job) <-chan string {
	s.t.Helper()
	path := filepath.Join(s.home, fmt.Sprintf("notify-%d", scenes.Add(1)))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	j.cmd.Env = append(j.cmd.Env[:len(j.cmd.Env):len(j.cmd.Env)], "NOTIFY_SOCKET="+path)
	said := make(chan string, 10)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(said)
		buf := make([]byte, 100)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			said <- string(buf[:n])
		}
	})
	s.t.Cleanup(func() {
		_ = conn.Close()
		reading.Wait()
	})
	return said
}

// ask reads the daemon's answer to a request into value and returns its status.
func (s *scene) ask(method, path string, value any) int {
	s.t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket())
		},
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://daemon"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if err := json.Unmarshal(data, value); err != nil {
		s.t.Fatalf("%s %s answered %q: %v", method, path, data, err)
	}
	return response.StatusCode
}

// responding waits until the daemon has that many lanes responding.
func (s *scene) responding(n int) []api.Lane {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		var listed api.Lanes
		s.ask("GET", "/v1/lanes", &listed)
		count := 0
		for _, lane := range listed.Lanes {
			if lane.Phase == "responding" {
				count++
			}
		}
		if count >= n {
			return listed.Lanes
		}
		select {
		case <-deadline:
			s.t.Fatalf("%d of %d lanes respond: %+v", count, n, listed)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// only is the one call that the daemon knows.
func (s *scene) only() api.Call {
	s.t.Helper()
	var calls api.Calls
	s.ask("GET", "/v1/calls", &calls)
	if len(calls.Calls) != 1 {
		s.t.Fatalf("calls %+v, want one", calls)
	}
	return calls.Calls[0]
}

// finished waits for the end of a call.
func (s *scene) finished(id string) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		var call api.CallDetail
		if s.ask("GET", "/v1/calls/"+id, &call); call.State == api.StateFinished {
			return
		}
		select {
		case <-deadline:
			s.t.Fatalf("call %+v never ends", call)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *scene) childrenStarted() int {
	s.t.Helper()
	data, err := os.ReadFile(s.starts)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// refineArgs ask for a review by three reviewers.
func refineArgs(more ...string) []string {
	return append([]string{"refine", "plan.md", "--reviewers", "3", "--model", "inherit", "--progress", "none"}, more...)
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
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
