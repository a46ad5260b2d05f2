// Package watch_test has `pilothouse watch` as people meet it: in a terminal, as a page
// in a browser, and over the end of the daemon that it watches.
package watch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// patience ends what hangs; no assertion depends on it.
const patience = 2 * time.Minute

// pi is a program in the place of pi. It says something that a terminal and a browser
// must not obey, uses a tool, goes on when the file "more" is there, and answers as a
// reviewer when "done" is.
const pi = `#!/bin/sh
cat >/dev/null
say() { printf '%s\n' "$1"; }
await() { until [ -e "$GATES/$1" ]; do sleep 0.02; done; }
say '{"type":"session","version":3,"id":"stub"}'
say '{"type":"agent_start"}'
say '{"type":"turn_start"}'
say '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"Read \u001b[31mme\u001b[0m <img src=x onerror=window.owned=1> 計画\n"}}'
say '{"type":"message_end","message":{"role":"assistant","content":[],"model":"stub-1","stopReason":"toolUse","usage":{"input":1200,"output":34,"cost":{"total":0.25}}}}'
say '{"type":"tool_execution_start","toolCallId":"t1","toolName":"read","args":{"path":"oven/oven.go"}}'
await more
say '{"type":"tool_execution_end","toolCallId":"t1","toolName":"read","isError":false,"result":{"content":[{"type":"text","text":"const Minutes = 45"}]}}'
say '{"type":"turn_end"}'
say '{"type":"turn_start"}'
say '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"Forty loaves fit."}}'
await done
say '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"## Findings\n\nNo findings.\n\n## Checked\n\n- all"}],"model":"stub-1","stopReason":"stop","usage":{"input":100,"output":6,"cost":{"total":0.5}}}}'
say '{"type":"agent_end","messages":[],"willRetry":false}'
say '{"type":"agent_settled","aborted":false}'
`

// scene is a workspace, and the place of a daemon beside it. All processes that come of
// it have the marker in their environment.
type scene struct {
	t      *testing.T
	dir    string
	env    []string
	marker string
	home   string
	gates  string
}

var scenes atomic.Int64

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		t: t, dir: piharness.Repo(t), marker: fmt.Sprintf("pilothouse-watch-%d-%d-", os.Getpid(), scenes.Add(1)),
		env: piharness.Env(t, filepath.Join(t.TempDir(), "agent")),
	}
	for _, entry := range s.env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			s.home = home
		}
	}
	s.gates = filepath.Join(s.home, "gates")
	for _, dir := range []string{s.gates, filepath.Join(s.home, "run")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(s.home, "pi")
	s.write(program, pi)
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(filepath.Join(s.dir, "plan.md"), "# Bake more bread\n\n## Items\n- I-001 Bake forty loaves a day in the one oven.\n")
	s.env = append(s.env, "PILOTHOUSE_PI="+program, "XDG_RUNTIME_DIR="+filepath.Join(s.home, "run"), "GATES="+s.gates, "PILOTHOUSE_E2E="+s.marker)
	t.Cleanup(func() {
		await(t, "the end of all processes", func() (string, bool) {
			left := piharness.Survivors(s.marker)
			return fmt.Sprint(left), len(left) == 0
		})
	})
	return s
}

func (s *scene) write(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// open lets the children go on past a gate.
func (s *scene) open(gate string) {
	s.t.Helper()
	s.write(filepath.Join(s.gates, gate), "")
}

func (s *scene) socket() string { return filepath.Join(s.home, "run", "pilothouse", "api.sock") }

// await looks until something is so. What was seen is told when it never is.
func await(t *testing.T, what string, look func() (seen string, ok bool)) {
	t.Helper()
	deadline := time.After(patience)
	for {
		seen, ok := look()
		if ok {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("there never was %s; last seen:\n%s", what, seen)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// job is a program at work.
type job struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr lockedBuffer
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
	s.t.Cleanup(func() {
		if j.cmd.ProcessState == nil {
			j.end(syscall.SIGTERM)
		}
	})
	return j
}

// wait waits for the end of the program and returns its exit status. It must not have
// reported a defect of its own.
func (j *job) wait() int {
	j.t.Helper()
	_ = j.cmd.Wait() // the exit status is asserted by the caller
	j.hung.Stop()
	if text := j.stderr.String(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") || strings.Contains(text, "goroutine ") {
		j.t.Errorf("%v reported a defect:\n%s", j.cmd.Args[1:], text)
	}
	return j.cmd.ProcessState.ExitCode()
}

func (j *job) end(sig syscall.Signal) int {
	j.t.Helper()
	if err := j.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		j.t.Fatal(err)
	}
	return j.wait()
}

// serve starts a daemon and returns when it answers.
func (s *scene) serve() *job {
	s.t.Helper()
	j := s.start("serve")
	await(s.t, "a daemon that answers", func() (string, bool) {
		health, err := api.Ask(s.t.Context(), s.socket())
		return j.stderr.String(), err == nil && health.PID == j.cmd.Process.Pid
	})
	return j
}

// refine starts a round of three reviewers and returns when all of them are at work.
func (s *scene) refine() *job {
	s.t.Helper()
	j := s.start("refine", "plan.md", "--reviewers", "3", "--model", "inherit", "--progress", "none", "--json")
	client := s.client()
	await(s.t, "three lanes at work", func() (string, bool) {
		listed, err := client.Lanes(s.t.Context())
		if err != nil {
			return err.Error(), false
		}
		atWork := 0
		for _, lane := range listed {
			if lane.Phase == "tool: read" {
				atWork++
			}
		}
		return fmt.Sprintf("%+v\n%s", listed, j.stderr.String()), atWork == 3
	})
	return j
}

func (s *scene) client() *api.Client {
	s.t.Helper()
	client, err := api.Connect(s.t.Context(), s.socket())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// must runs another program, which has to end well, and returns what it printed.
func (s *scene) must(name string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%v: %v\n%s", cmd.Args, err, problems.String())
	}
	return out.String()
}

// lockedBuffer is written by one goroutine and read by others.
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
