package faults_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
)

// guard is the guard process of a job.
func (j *job) guard() (pid int) {
	j.s.t.Helper()
	j.s.eventually("there is a guard", func() bool {
		for _, candidate := range proctest.Survivors("pilothouse-guard") {
			if parent(candidate) == j.Cmd.Process.Pid {
				pid = candidate
				return true
			}
		}
		return false
	})
	return pid
}

func parent(pid int) (id int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	var state string
	_, _ = fmt.Sscan(rest, &state, &id)
	return id
}

// gone waits until none of the processes of the scene is left and logs how long it took.
func (s *scene) gone(since time.Time) {
	s.t.Helper()
	s.eventually("nothing survives", func() bool { return len(piharness.Survivors(s.Marker)) == 0 })
	s.t.Logf("nothing survived %v after the kill", time.Since(since).Round(time.Millisecond))
}

// kill kills pilothouse, and with it its guard if that shall not help.
func (j *job) kill(guardToo bool) time.Time {
	j.s.t.Helper()
	if guardToo {
		guard := j.guard()
		j.Signal(syscall.SIGSTOP) // it would replace its guard
		if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
			j.s.t.Fatal(err)
		}
	}
	begin := time.Now()
	j.Signal(os.Kill)
	j.wait()
	return begin
}

// resumes ends what is left of a killed round by the next start, which works on
// what is missing.
func (s *scene) resumes(lanesMissing int) {
	s.t.Helper()
	_, _, record := s.recorded()
	s.stub(answers(s.t)...)
	o := s.refine("--resume-round", record.RoundID).wait()
	if o.Code != 0 || o.round().Complete() != lanesMissing {
		s.t.Errorf("resuming ended with %d: %s", o.Code, o.Stderr)
	}
	s.noSurvivors()
	for lane, status := range s.consistent() {
		if status != store.LaneStatusComplete {
			s.t.Errorf("lane %s is %s", lane, status)
		}
	}
}

func TestFaultD44AKillLeavesNoSurvivorsAtTheLatestAfterTheNextStart(t *testing.T) {
	t.Parallel()
	for _, cgroup := range []bool{true, false} {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprintf("cgroup %v, guard %v", cgroup, guarded), func(t *testing.T) {
				t.Parallel()
				s := stubScene(t, append(family(t), "--ignore", "HUP,TERM,INT")...)
				if !cgroup {
					s.setenv("PILOTHOUSE_NO_CGROUP", "1")
				}
				j := s.refine("--reviewers", "3")
				s.started(12)
				begin := j.kill(!guarded)
				if guarded {
					s.gone(begin)
				} else if left := len(proctest.Survivors(s.Marker)); left == 0 && !cgroup { // a cgroup ends with the next start of anybody
					t.Error("nothing was left, so the test shows nothing")
				}
				s.resumes(3)
			})
		}
	}
}

// A child of any name is found: what counts is its record, never what it is called.
func TestFaultD48TheNextStartEndsAChildWhateverItIsCalled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"node", "bun", "claude"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, t.TempDir())
			path := filepath.Join(t.TempDir(), name)
			copyFile(t, path, proctest.Build(t))
			s.program(path, append(family(t), "--ignore", "HUP,TERM,INT")...)
			s.setenv("PILOTHOUSE_NO_CGROUP", "1")
			j := s.refine()
			s.started(4)
			j.kill(true)
			s.resumes(1)
		})
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFaultD50WhatAKilledProcessLeftIsGoneWhenTheResumedRoundIsCancelled(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(family(t), "--ignore", "HUP,TERM,INT")...)
	s.setenv("PILOTHOUSE_NO_CGROUP", "1")
	j := s.refine()
	s.started(4)
	j.kill(true)
	_, _, record := s.recorded()
	s.stub(append(prints(t, lanestest.Opening()...), "--then", "hang")...)
	resumed := s.refine("--resume-round", record.RoundID)
	s.eventually("the lane works again", func() bool { return strings.Contains(resumed.Stderr.String(), "waiting") })
	resumed.Signal(os.Interrupt)
	if o := resumed.wait(); o.Code != 130 {
		t.Errorf("ended with %d: %s", o.Code, o.Stderr)
	}
	s.cancelled(1)
}

func TestFaultD59AShutdownLeavesNeitherChildNorGuard(t *testing.T) {
	t.Parallel()
	s := stubScene(t, family(t)...)
	j := s.refine("--reviewers", "3")
	s.started(12)
	guard := j.guard()
	j.Signal(syscall.SIGTERM)
	if o := j.wait(); o.Code != 143 {
		t.Errorf("ended with %d", o.Code)
	}
	if parent(guard) == j.Cmd.Process.Pid || (syscall.Kill(guard, 0) == nil && strings.Contains(commandLine(guard), "pilothouse-guard")) {
		t.Error("the guard is left")
	}
	s.cancelled(3)
}

func commandLine(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(line)
}

// wrapped makes pi a script that gives the real pi a shell and hides its use, so
// that a lane has processes which pilothouse knows nothing of.
func (s *scene) wrapped(pi piharness.Command) {
	s.t.Helper()
	s.script(`for word do
	shift
	[ "$word" = read,grep,find,ls ] && word=read,bash
	set -- "$@" "$word"
done
` + pi.String() + ` "$@" | grep --line-buffered -v '"type":"tool_execution'
`)
}

func TestFaultD44AKillEndsWhatRealPiStarted(t *testing.T) {
	t.Parallel()
	generations(t, func(t *testing.T, pi piharness.Command) {
		for _, cgroup := range []bool{true, false} {
			t.Run(fmt.Sprintf("cgroup %v", cgroup), func(t *testing.T) {
				t.Parallel()
				const command = "sleep 300 & setsid sleep 300 & (setsid nohup sleep 300 >/dev/null 2>&1 </dev/null &); wait"
				s := piScene(t, pi, on(anyTask, scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": command}}))
				s.wrapped(pi)
				if !cgroup {
					s.setenv("PILOTHOUSE_NO_CGROUP", "1")
				}
				j := s.refine("--reviewers", "3")
				s.eventually("nine processes of three shells sleep", func() bool {
					sleeping := 0
					for _, pid := range piharness.Survivors(s.Marker) {
						if strings.HasPrefix(commandLine(pid), "sleep\x00300\x00") {
							sleeping++
						}
					}
					return sleeping == 9
				})
				s.gone(j.kill(false))
				_, cp, _ := s.recorded()
				for _, lane := range cp.ReviewRounds[0].Lanes {
					if lane.Status == store.LaneRunning {
						t.Errorf("lane %s is running", lane.LaneID)
					}
				}
			})
		}
	})
}
