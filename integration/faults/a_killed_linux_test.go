package faults_test

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
)

// child is the process of the child of a lane: the leader of its session.
func (s *scene) child(laneID string) (pid int) {
	s.t.Helper()
	s.eventually("lane "+laneID+" has a child", func() bool {
		for _, candidate := range piharness.Survivors(s.Marker) {
			environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", candidate))
			for variable := range strings.SplitSeq(string(environ), "\x00") {
				if lane, ok := strings.CutPrefix(variable, "PILOTHOUSE_LANE="); ok && strings.Contains(lane, "-"+laneID+":") && session(candidate) == candidate {
					pid = candidate
					return true
				}
			}
		}
		return false
	})
	return pid
}

func session(pid int) (id int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	var state string
	var parent, group int
	_, _ = fmt.Sscan(string(rest), &state, &parent, &group, &id)
	return id
}

// killedFromOutside kills the child of one of three lanes and checks what everybody
// is told of it.
func killedFromOutside(t *testing.T, pi piharness.Command, busy scriptedmodel.Step) {
	t.Helper()
	s := piScene(t, pi,
		on("Review lens: Architecture and order", busy), on("Review lens: Requirements fit", says(report)), on("Review lens: Verification", says(report)))
	j := s.refine("--reviewers", "3", "--attempts", "1")
	if err := s.model.Await(t.Context(), func(st scriptedmodel.Stats) bool { return st.Open == 1 && st.Completed == 2 }); err != nil {
		t.Fatal(err)
	}
	pid := s.child("ordering")
	begin := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.eventually("the end of the lane is told", func() bool { return strings.Contains(j.Stderr.String(), "ordering      failed: killed") })
	t.Logf("told %v after the kill", time.Since(begin).Round(time.Millisecond))
	o := j.wait()
	if o.Code != 0 {
		t.Errorf("ended with %d", o.Code)
	}
	checkFailed(t, o.lane("ordering"), pijson.ClassKilled, "SIGKILL")
	if got := strings.Count(o.Stderr, "failed: killed"); got != 1 {
		t.Errorf("the end is told %d times:\n%s", got, o.Stderr)
	}
	for _, id := range []string{"correctness", "verification"} {
		if lane := o.lane(id); lane.Status != lanes.Complete {
			t.Errorf("lane %s is %s: %+v", id, lane.Status, lane.Error)
		}
	}
	if got := s.consistent(); got["ordering"] != "failed" {
		t.Errorf("on record: %v", got)
	}
	run, _, _ := s.recorded()
	if shown := s.command("show").start().wait(); !strings.Contains(shown.Stdout, "killed: pi was killed from outside") {
		t.Errorf("show does not tell:\n%s", shown.Stdout)
	}
	if got := strings.Count(piharness.ReadFile(t, run.Dir+"/subagents.jsonl"), "\n"); got != 3 {
		t.Errorf("the ledger has %d children", got)
	}
}

func TestFaultA19AChildKilledFromOutsideEndsItsLane(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, pi piharness.Command) {
		killedFromOutside(t, pi, scriptedmodel.Step{TextBytes: 100_000, Chunks: 10_000, DelayMs: 50})
	})
}

func TestFaultA20AChildKilledDuringASilentModelCallEndsItsLane(t *testing.T) {
	t.Parallel()
	killedFromOutside(t, piharness.NewPi(t), scriptedmodel.Step{Stall: scriptedmodel.StallHeaders})
}

// A pi whose output nobody takes does not obey TERM until it is taken (Pi fact §7).
func TestFaultA09APiWhoseOutputWasNotTakenObeysTERM(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, pi piharness.Command) {
		s := piScene(t, pi, on(anyTask, scriptedmodel.Step{TextBytes: 40_000, Chunks: 4000, DelayMs: 8})) // over half a minute, three times what a wide pipe holds
		j := s.refine()
		if err := s.model.Await(t.Context(), func(st scriptedmodel.Stats) bool { return st.Open == 1 }); err != nil {
			t.Fatal(err)
		}
		child := s.child("general")
		j.Signal(syscall.SIGSTOP)
		s.eventually("the pipe is full", func() bool { return full(child) })
		j.Signal(syscall.SIGTERM)
		j.Signal(syscall.SIGCONT)
		o := j.wait()
		lane := o.lane("general")
		if o.Code != 143 || lane.Exit.Code == nil || *lane.Exit.Code != 143 {
			t.Errorf("ended with %d, exit of the child %+v, %s", o.Code, lane.Exit, strconv.Quote(lane.Stderr))
		}
		s.cancelled(1)
	})
}

// full tells whether the pipe that is the standard output of a process takes no more.
func full(pid int) bool {
	pipe, err := unix.Open(fmt.Sprintf("/proc/%d/fd/1", pid), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(pipe) }()
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(pipe), Events: unix.POLLOUT}}, 0)
	return err == nil && ready == 0
}
