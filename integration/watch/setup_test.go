// Package watch_test has `pilothouse watch` as people meet it: in a terminal, as a page
// in a browser, and over the end of the daemon that it watches.
package watch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/supervisor/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// scene is a place with a plan, whose Pi is a script.
type scene struct {
	*piharness.Place
	t     *testing.T
	gates string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{Place: piharness.NewPlace(t, filepath.Join(t.TempDir(), "agent")), t: t}
	t.Cleanup(s.NoSurvivors)
	s.gates = filepath.Join(s.Home, "gates")
	if err := os.Mkdir(s.gates, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "GATES="+s.gates)
	s.Script(pi)
	s.Write("plan.md", "# Bake more bread\n\n## Items\n- I-001 Bake forty loaves a day in the one oven.\n")
	return s
}

// open lets the children go on past a gate.
func (s *scene) open(gate string) {
	s.t.Helper()
	s.Write(filepath.Join(s.gates, gate), "")
}

// await looks until something is so. What was seen is told when it never is.
func await(t *testing.T, what string, look func() (seen string, ok bool)) {
	t.Helper()
	deadline := time.After(piharness.Patience)
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

func (s *scene) start(args ...string) *job {
	s.t.Helper()
	j := &job{s.Prepare(args...)}
	j.Begin()
	s.t.Cleanup(func() {
		if !j.HasEnded() {
			j.end(syscall.SIGTERM)
		}
	})
	return j
}

// job is a program at work.
type job struct{ *piharness.Program }

// wait waits for the end of the program and returns its exit status.
func (j *job) wait() int { return j.Wait().Code }

func (j *job) end(sig syscall.Signal) int {
	j.Signal(sig)
	return j.wait()
}

// serve starts a daemon and returns when it answers.
func (s *scene) serve() *job {
	s.t.Helper()
	j := s.start("serve")
	await(s.t, "a daemon that answers", func() (string, bool) {
		health, err := api.Ask(s.t.Context(), s.Socket())
		return j.Stderr.String(), err == nil && health.PID == j.Cmd.Process.Pid
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
		return fmt.Sprintf("%+v\n%s", listed, j.Stderr.String()), atWork == 3
	})
	return j
}

func (s *scene) client() *api.Client {
	s.t.Helper()
	client, err := api.Connect(s.t.Context(), s.Socket())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// must runs another program, which has to end well, and returns what it printed.
func (s *scene) must(name string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), piharness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = s.Env, s.Dir
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%v: %v\n%s", cmd.Args, err, problems.String())
	}
	return out.String()
}
