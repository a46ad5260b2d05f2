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

// scene is a place with the plan, whose Pi is a script.
type scene struct {
	*piharness.Place
	t      *testing.T
	starts string // file with a line for each child
	gate   string // children wait for it where GATE is set
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{Place: piharness.NewPlace(t, filepath.Join(t.TempDir(), "agent")), t: t}
	t.Cleanup(s.NoSurvivors)
	s.starts, s.gate = filepath.Join(s.Home, "starts"), filepath.Join(s.Home, "gate")
	s.Env = append(s.Env, "STARTS="+s.starts)
	s.Script(pi)
	s.Write("plan.md", planText)
	return s
}

// gated makes the children of the commands from now on wait for the returned function.
func (s *scene) gated() func() {
	s.Env = append(s.Env, "GATE="+s.gate)
	return func() { s.Write(s.gate, "") }
}

func (s *scene) run(args ...string) piharness.Ended {
	s.t.Helper()
	return s.Start(args...).Wait()
}

// serve starts a daemon and returns when it says that it is ready, as it does to a
// service manager.
func (s *scene) serve(args ...string) *piharness.Program {
	s.t.Helper()
	j := s.Prepare(append([]string{"serve"}, args...)...)
	said := s.manager(j)
	j.Begin()
	s.t.Cleanup(func() {
		if !j.HasEnded() {
			j.Signal(syscall.SIGKILL)
			j.Wait()
		}
	})
	if state := <-said; state != "READY=1" {
		s.t.Fatalf("the daemon said %q; stderr:\n%s", state, j.Stderr.String())
	}
	return j
}

var notified atomic.Int64 // sockets that programs notify

// manager listens for what a program tells its service manager.
func (s *scene) manager(j *piharness.Program) <-chan string {
	s.t.Helper()
	path := filepath.Join(s.Home, fmt.Sprintf("notify-%d", notified.Add(1)))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(piharness.Patience)); err != nil {
		s.t.Fatal(err)
	}
	j.Cmd.Env = append(j.Cmd.Env[:len(j.Cmd.Env):len(j.Cmd.Env)], "NOTIFY_SOCKET="+path)
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
			return new(net.Dialer).DialContext(ctx, "unix", s.Socket())
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
	deadline := time.After(piharness.Patience)
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
	deadline := time.After(piharness.Patience)
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
