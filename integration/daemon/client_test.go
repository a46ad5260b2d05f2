package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/lanes"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

func TestARoundGoesOnWhenItsClientIsKilled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	open := s.gated()
	client := s.Start(refineArgs()...)
	s.responding(3)
	client.Signal(syscall.SIGKILL)
	client.Wait()
	open()
	id := s.only().ID
	s.finished(id)
	var call api.CallDetail
	s.ask("GET", "/v1/calls/"+id, &call)
	var result supervisor.RoundResult
	if err := json.Unmarshal(call.Result, &result); err != nil || result.Complete() != 3 {
		t.Fatalf("the round came to %s (%v)", call.Result, err)
	}
	if status := s.ask("POST", "/v1/calls/"+id+"/ack", new(any)); status != http.StatusOK {
		t.Errorf("acknowledged with %d", status)
	}
	if status := s.ask("POST", "/v1/calls/"+id+"/ack", new(any)); status != http.StatusGone {
		t.Errorf("acknowledged again with %d", status)
	}
	// What the user does: the answers are there and are not paid for again.
	contains(t, s.Must(0, "show").Stdout, "complete")
	s.Must(0, refineArgs("--resume-round", result.RoundID)...)
	if n := s.childrenStarted(); n != 3 {
		t.Errorf("%d children for 3 lanes", n)
	}
}

func TestAnInterruptAtAClientCancelsItsCallOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve()
	s.gated()
	client := s.Start(refineArgs()...)
	s.responding(3)
	client.Signal(syscall.SIGINT)
	e := client.Wait()
	if e.Code != 130 {
		t.Errorf("ended with %d", e.Code)
	}
	contains(t, e.Stderr, "interrupted with 0 of 3 lanes complete", "continue with `pilothouse refine plan.md --resume-round")
	contains(t, e.Stdout, "interrupted by SIGINT")
	var calls api.Calls
	if s.ask("GET", "/v1/calls", &calls); len(calls.Calls) != 0 {
		t.Errorf("calls %+v", calls)
	}
	// Without a daemon the same words.
	local := s.Start(append([]string{"--local"}, refineArgs("--progress", "plain")...)...)
	for range 3 {
		local.Says("responding")
	}
	local.Signal(syscall.SIGINT)
	if other := local.Wait(); other.Code != e.Code || s.neutral(other.Stdout) != s.neutral(e.Stdout) && !strings.Contains(other.Stdout, "interrupted by SIGINT") {
		t.Errorf("without the daemon: %d\n%s\nwith it:\n%s", other.Code, other.Stdout, e.Stdout)
	}
	daemon.Signal(syscall.SIGTERM)
	if e := daemon.Wait(); e.Code != 0 {
		t.Errorf("the daemon ended with %d", e.Code)
	}
}

func TestASecondInterruptLeavesTheCallToTheDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve()
	s.gated()
	// A child that does not end at TERM keeps the call from ending for five seconds.
	s.Write(filepath.Join(s.Home, "pi"), strings.Replace(pi, "task=", "trap '' TERM\ntask=", 1))
	client := s.Start(refineArgs()...)
	s.responding(3)
	id := s.only().ID
	client.Signal(syscall.SIGINT)
	daemon.Says("call cancelled")
	client.Signal(syscall.SIGINT)
	if e := client.Wait(); e.Signal != syscall.SIGINT {
		t.Errorf("ended with %d, signal %v", e.Code, e.Signal)
	}
	s.finished(id)
}

func TestACallThatSomebodyElseCancelsFailsAtItsClient(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.gated()
	client := s.Start(refineArgs("--json")...)
	s.responding(3)
	if status := s.ask("DELETE", "/v1/calls/"+s.only().ID+"?reason=too+dear", new(any)); status != http.StatusAccepted {
		t.Errorf("cancelled with %d", status)
	}
	e := client.Wait()
	if e.Code != 1 {
		t.Errorf("ended with %d", e.Code)
	}
	var result supervisor.RoundResult
	if err := json.Unmarshal([]byte(e.Stdout), &result); err != nil {
		t.Fatal(err)
	}
	for _, lane := range result.Lanes {
		if lane.Status != lanes.Cancelled || !strings.Contains(lane.Error.Message, "too dear") {
			t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
		}
	}
}

func TestADaemonOfAnotherProtocolIsNotUsed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	socket, err := api.Listen(t.Context(), s.Socket())
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{ReadHeaderTimeout: piharness.Patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, `{"version":"0.0.1","protocol":0}`)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = other.Serve(socket) })
	defer func() {
		_ = other.Close()
		serving.Wait()
		_ = socket.Release()
	}()
	e := s.Must(1, "plans", "init")
	contains(t, e.Stderr, "0.0.1", "protocol 0", "serve --stop", "--local")
	if lines := strings.Count(e.Stderr, "\n"); lines != 1 {
		t.Errorf("%d lines:\n%s", lines, e.Stderr)
	}
	s.Must(0, "--local", "plans", "init")
}

func TestADirectoryThatOthersControlIsNoPlaceForADaemon(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(dir string) error{
		"writable for all": func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chmod(dir, 0o777)
		},
		"a symbolic link": func(dir string) error { return os.Symlink(t.TempDir(), dir) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			if err := prepare(filepath.Dir(s.Socket())); err != nil {
				t.Fatal(err)
			}
			e := s.Must(1, "serve")
			contains(t, e.Stderr, filepath.Dir(s.Socket()), "must not hold the socket")
			e = s.Must(0, "plans", "init")
			contains(t, e.Stderr, "note: working without a daemon", "must not hold the socket")
		})
	}
}

func TestManyCommandsShareADaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	const clients, workspaces = 30, 5
	var dirs []string
	for range workspaces {
		dir := piharness.Repo(t)
		s.Write(filepath.Join(dir, "plan.md"), planText)
		dirs = append(dirs, dir)
	}
	var all sync.WaitGroup
	for i := range clients {
		dir := dirs[i%workspaces]
		client := s.Start("refine", "plan.md", "--workdir", dir, "--model", "inherit", "--json", "--progress", "plain")
		all.Go(func() {
			e := client.Wait()
			var result supervisor.RoundResult
			if err := json.Unmarshal([]byte(e.Stdout), &result); err != nil || e.Code != 0 {
				t.Errorf("client %d ended with %d (%v): %s", i, e.Code, err, e.Stderr)
				return
			}
			if result.Complete() != 1 || !strings.HasPrefix(*result.Lanes[0].ResultFile, dir) || !strings.Contains(e.Stderr, result.RoundID) {
				t.Errorf("client %d in %s got %+v and saw\n%s", i, dir, result, e.Stderr)
			}
		})
	}
	all.Wait()
	if n := s.childrenStarted(); n != clients {
		t.Errorf("%d children for %d lanes", n, clients)
	}
}
