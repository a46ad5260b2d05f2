package faults_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"pilothouse/integration/piharness"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/store"
)

// Section D: orphans, cancel, shutdown. What needs a look at the process table is
// in the file for Linux.

// family are the switches of a child that hangs in the middle of its work, with a
// process of each kind that it has started: four processes a lane.
func family(t *testing.T) []string {
	return append(prints(t, lanestest.Opening()...), "--grandchild", "inherit", "--grandchild", "setsid", "--grandchild", "daemon", "--then", "hang")
}

// cancelled checks a round that was ended by force: nobody survives and every lane
// has its record.
func (s *scene) cancelled(laneCount int) {
	s.t.Helper()
	s.noSurvivors()
	statuses := s.consistent()
	if len(statuses) != laneCount {
		s.t.Errorf("%d lanes are on record, want %d", len(statuses), laneCount)
	}
	for lane, status := range statuses {
		if status != store.LaneStatusCancelled {
			s.t.Errorf("lane %s is %s", lane, status)
		}
	}
}

func TestFaultD44ASignalLeavesNoSurvivors(t *testing.T) {
	t.Parallel()
	for _, cgroup := range []bool{true, false} {
		for _, tt := range []struct {
			signal syscall.Signal
			status int
		}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
			t.Run(fmt.Sprintf("%v, cgroup %v", tt.signal, cgroup), func(t *testing.T) {
				t.Parallel()
				s := stubScene(t, family(t)...)
				if !cgroup {
					s.setenv("PILOTHOUSE_NO_CGROUP", "1")
				}
				j := s.refine("--reviewers", "3")
				s.started(12)
				j.Signal(tt.signal)
				if o := j.wait(); o.Code != tt.status {
					t.Errorf("ended with %d, want %d: %s", o.Code, tt.status, o.Stderr)
				}
				s.cancelled(3)
			})
		}
	}
}

func TestFaultD45AClosedTerminalLeavesNoSurvivors(t *testing.T) {
	t.Parallel()
	s := stubScene(t, family(t)...)
	j := s.command("refine", s.plan, "--model", "sim/plain", "--reviewers", "3")
	j.Cmd.Stdout, j.Cmd.Stderr = nil, nil // the terminal
	terminal, err := pty.Start(j.Cmd)
	if err != nil {
		t.Fatal(err)
	}
	j.Watch()
	var read sync.WaitGroup
	read.Go(func() {
		for buf := make([]byte, 4096); ; {
			if _, err := terminal.Read(buf); err != nil {
				return
			}
		}
	})
	s.started(12)
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	read.Wait()
	if o := j.wait(); o.Code != 129 {
		t.Errorf("ended with %d, want 129", o.Code)
	}
	s.cancelled(3)
}

func TestFaultD46WhatAChildStartedGoesWithItThoughItEndedWell(t *testing.T) {
	t.Parallel()
	for _, cgroup := range []bool{true, false} {
		t.Run(fmt.Sprintf("cgroup %v", cgroup), func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, append(answers(t), "--grandchild", "detached", "--grandchild", "daemon", "--then", "daemonize")...)
			if !cgroup {
				s.setenv("PILOTHOUSE_NO_CGROUP", "1")
			}
			s.refine().wait().complete(report)
			s.noSurvivors()
		})
	}
}

// The answer of a lane is stored, and pilothouse dies before the checkpoint says so.
func TestFaultD51ALaneWhoseAnswerIsStoredDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	if o := s.refine("--reviewers", "2").wait(); o.Code != 0 {
		t.Fatal(o.Stderr)
	}
	run, cp, record := s.recorded()
	file := filepath.Join(run.Dir, "checkpoint.json")
	lane := cp.ReviewRounds[0].Lanes[1]
	text := piharness.ReadFile(t, file)
	begin := strings.Index(text, `"laneId": "`+lane.LaneID+`"`)
	length := strings.Index(text[begin:], "}")
	entry := text[begin : begin+length]
	var kept []string
	for line := range strings.SplitSeq(entry, "\n") {
		switch {
		case strings.Contains(line, `"resultFile"`), strings.Contains(line, `"completedAt"`):
		case strings.Contains(line, `"status"`):
			kept = append(kept, strings.Replace(line, store.LaneComplete, store.LaneRunning, 1))
		default:
			kept = append(kept, line)
		}
	}
	before := strings.TrimRight(strings.Join(kept, "\n"), ", \t\n") + "\n\t\t\t\t"
	piharness.WriteFile(t, file, text[:begin]+before+text[begin+length:])
	if cp, err := run.LoadCheckpoint(); err != nil || cp.ReviewRounds[0].Lane(lane.LaneID).Reusable() {
		t.Fatalf("the checkpoint is not as before the write: %v\n%s", err, piharness.ReadFile(t, file))
	}
	s.stub("--then", "exit 3") // a lane that runs again fails
	o := s.refine("--resume-round", record.RoundID).wait()
	if o.Code != 0 || o.round().Complete() != 2 {
		t.Errorf("resuming ended with %d: %s", o.Code, o.Stderr)
	}
	for _, lane := range o.round().Lanes {
		if !lane.Reused || lane.Output != report {
			t.Errorf("lane %s: reused %v, output %q", lane.LaneID, lane.Reused, lane.Output)
		}
	}
	for lane, status := range s.consistent() {
		if status != store.LaneStatusComplete {
			t.Errorf("lane %s is %s", lane, status)
		}
	}
	if got := strings.Count(piharness.ReadFile(t, filepath.Join(run.Dir, "subagents.jsonl")), "\n"); got != 2 {
		t.Errorf("the ledger has %d children", got)
	}
}

func TestFaultD53ACancelEndsQueuedLanesToo(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(prints(t, lanestest.Opening()...), "--then", "hang")...)
	args := []string{"analyze-refs", "--model", "sim/plain", "--json"}
	for n := range 7 {
		dir := filepath.Join(s.Dir, fmt.Sprintf("ref%d", n))
		piharness.WriteFile(t, filepath.Join(dir, "NOTES.md"), "a list\n")
		args = append(args, "--ref", fmt.Sprintf("r%d=%s", n, dir))
	}
	j := s.command(args...).start()
	s.eventually("three lanes work", func() bool { return strings.Count(j.Stderr.String(), "waiting") >= 3 })
	j.Signal(os.Interrupt)
	o := j.wait()
	if o.Code != 130 {
		t.Errorf("ended with %d", o.Code)
	}
	for i, lane := range o.round().Lanes {
		if want := min(1, max(0, 3-i)); lane.Status != lanes.Cancelled || lane.Attempts != want {
			t.Errorf("lane %s is %s after %d attempts, want cancelled after %d", lane.LaneID, lane.Status, lane.Attempts, want)
		}
	}
	s.noSurvivors()
}

func TestFaultD60AChildThatIgnoresTERMIsKilledAndItsLaneStaysCancelled(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(prints(t, lanestest.Opening()...), "--ignore", "TERM,HUP,INT", "--then", "hang")...)
	j := s.refine()
	s.started(1)
	s.eventually("the lane works", func() bool { return strings.Contains(j.Stderr.String(), "waiting") })
	run, _, before := s.recorded()
	j.Signal(syscall.SIGTERM)
	seen := []store.LaneStatus{before.Lanes[0].Status}
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for last := false; !last; {
			select {
			case <-stop:
				last = true
			case <-time.After(5 * time.Millisecond):
			}
			record, err := run.RoundDir().LoadRound(before.RoundID)
			if err != nil {
				t.Error(err)
			} else if now := record.Lanes[0].Status; now != seen[len(seen)-1] {
				seen = append(seen, now)
			}
		}
	}()
	o := j.wait()
	close(stop)
	<-watched
	lane := o.lane("general")
	if o.Code != 143 || lane.Exit.Signal == nil || *lane.Exit.Signal != "SIGKILL" {
		t.Errorf("ended with %d, exit %+v", o.Code, lane.Exit)
	}
	if first := slices.IndexFunc(seen, store.LaneStatus.Terminal); first != len(seen)-1 {
		t.Errorf("the lane was in turn %v", seen)
	}
	s.cancelled(1)
}

// A lane's child runs a tool that the lane does not have (section G).
func TestFaultG103AForeignToolEndsItsLaneSoon(t *testing.T) {
	t.Parallel()
	call := lanestest.Uses("bash")[:2]
	s := stubScene(t, append(prints(t, lanestest.Join(lanestest.Opening(), call)...), "--then", "hang")...)
	lane := s.refine().wait().failed("protocol", `the tool "bash" ran`)
	if lane.Attempts != 1 || lane.DurationMs > 60_000 {
		t.Errorf("%d attempts in %d ms", lane.Attempts, lane.DurationMs)
	}
}
