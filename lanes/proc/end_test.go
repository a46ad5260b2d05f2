package proc_test

import (
	"bufio"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/lanes/proc"
	"pilothouse/lanes/proc/proctest"
)

// outcome compares what a test says about an Exit.
func outcome(t *testing.T, got, want proc.Exit) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(proc.Exit{}, "Started", "Ended", "Stderr", "StderrBytes"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("exit (-want +got):\n%s\nstderr: %s", diff, got.Stderr)
	}
}

func TestAChildThatEndsByItselfIsSwept(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want proc.Exit
	}{
		{"success", nil, proc.Exit{Code: 0}},
		{"failure", []string{"--then", "exit:3"}, proc.Exit{Code: 3}},
		{"death by a signal is no success", []string{"--then", "kill:KILL"}, proc.Exit{Code: 137, Signal: "SIGKILL"}},
		{"death by another signal", []string{"--then", "kill:HUP"}, proc.Exit{Code: 129, Signal: "SIGHUP"}},
		{"a grandchild holds the pipes", []string{"--ignore", "HUP", "--grandchild", "inherit"}, proc.Exit{Swept: 1, Ladder: []string{"sweep"}}},
		{"a grandchild with closed pipes", []string{"--ignore", "HUP", "--grandchild", "detached"}, proc.Exit{Swept: 1, Ladder: []string{"sweep"}}},
		{"a grandchild in another session holds the pipes", []string{"--grandchild", "setsid"}, proc.Exit{Swept: 1, Ladder: []string{"sweep"}}},
		{"an orphan in another session", []string{"--then", "daemonize"}, proc.Exit{Swept: 1, Ladder: []string{"sweep"}}},
		{
			"many stubborn ones and a failure",
			[]string{"--ignore", "TERM,HUP", "--grandchild", "inherit", "--grandchild", "setsid", "--grandchild", "daemon", "--grandchild", "daemon", "--then", "exit:9"},
			proc.Exit{Code: 9, Swept: 4, Ladder: []string{"sweep"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bothModes(t, func(t *testing.T, options proc.Options) {
				s := newSpawner(t, options)
				spec, marker := stub(t, tc.args...)
				c := start(t, s, spec)
				_, exit := finish(t, c)
				outcome(t, exit, tc.want)
				noSurvivors(t, marker)
				if s.Live() != 0 {
					t.Errorf("%d children are live", s.Live())
				}
			})
		})
	}
}

func TestTheKillLadder(t *testing.T) {
	const forEver = time.Hour
	family := []string{"--grandchild", "inherit", "--grandchild", "detached", "--grandchild", "setsid", "--grandchild", "daemon"}
	terminate, kill := (*proc.Child).Terminate, (*proc.Child).Kill
	for _, tc := range []struct {
		name  string
		args  []string
		grace time.Duration
		end   func(*proc.Child)
		want  proc.Exit
	}{
		{"TERM ends a child that obeys", []string{"--then", "hang"}, forEver, terminate,
			proc.Exit{Code: 143, Signal: "SIGTERM", Ladder: []string{"term"}}},
		{"KILL follows for a child that ignores TERM", []string{"--ignore", "TERM", "--then", "hang"}, 50 * time.Millisecond, terminate,
			proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"term", "kill"}}},
		{"KILL can come at once", []string{"--then", "hang"}, forEver, kill,
			proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"kill"}}},
		{"KILL overtakes TERM", []string{"--ignore", "TERM", "--then", "hang"}, forEver, func(c *proc.Child) { c.Terminate(); c.Terminate(); time.AfterFunc(50*time.Millisecond, c.Kill) },
			proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"term", "kill"}}},
		{"what TERM to the group does not reach is swept", append(family, "--then", "hang"), forEver, terminate,
			proc.Exit{Code: 143, Signal: "SIGTERM", Swept: 2, Ladder: []string{"term", "sweep"}}},
		{"a stubborn family is killed", append(family, "--ignore", "TERM,HUP,INT", "--then", "hang"), 50 * time.Millisecond, terminate,
			proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"term", "kill"}}},
		{"a child that prints for ever is killed", []string{"--ignore", "TERM", "--then", "spam"}, 50 * time.Millisecond, terminate,
			proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"term", "kill"}}},
		{"a child that closed its output is killed", []string{"--ignore", "TERM", "--then", "close-stdout"}, 50 * time.Millisecond, terminate,
			proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"term", "kill"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bothModes(t, func(t *testing.T, options proc.Options) {
				s := newSpawner(t, options)
				spec, marker := stub(t, tc.args...)
				spec.Grace = tc.grace
				c, stdout := startReady(t, s, spec)
				tc.end(c)
				_, exit := finishReading(t, c, stdout)
				// Grandchildren of the group race with the sweep for who ends them.
				if len(tc.want.Ladder) > 0 && tc.want.Swept > 0 && exit.Swept >= tc.want.Swept {
					exit.Swept = tc.want.Swept
				}
				outcome(t, exit, tc.want)
				noSurvivors(t, marker)
			})
		})
	}
}

func TestAStoppedChildIsKilled(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		s := newSpawner(t, options)
		spec, marker := stub(t, "--then", "hang")
		spec.Grace = 50 * time.Millisecond
		c, stdout := startReady(t, s, spec)
		if err := syscall.Kill(c.Identity().PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.Terminate()
		_, exit := finishReading(t, c, stdout)
		outcome(t, exit, proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"term", "kill"}})
		noSurvivors(t, marker)
	})
}

func TestAChildMayWriteItsOutputToTheEndAfterTERM(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		const size = 4 << 20 // far more than the pipe takes
		s := newSpawner(t, options)
		spec, _ := stub(t, "--flush-on-term", "--big", fmt.Sprint(size), "--then", "hang")
		spec.Grace = time.Hour
		c, stdout := startReady(t, s, spec)
		c.Terminate()
		text, exit := finishReading(t, c, stdout)
		outcome(t, exit, proc.Exit{Code: 143, Ladder: []string{"term"}})
		if len(text) != size {
			t.Errorf("read %d bytes of %d", len(text), size)
		}
	})
}

func TestWaitDoesNotDependOnAReader(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		s := newSpawner(t, options)
		spec, marker := stub(t, "--ignore", "TERM", "--then", "spam")
		c, _ := startReady(t, s, spec)
		c.Kill()
		outcome(t, wait(t, c), proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"kill"}})
		noSurvivors(t, marker)
	})
}

func TestTheEndOfStdoutIsNotTheEndOfTheChild(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	spec, _ := stub(t, "--then", "close-stdout")
	c, stdout := startReady(t, s, spec)
	if _, err := io.Copy(io.Discard, stdout); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
		t.Fatalf("the child ended: %+v", c.Wait())
	default:
	}
	c.Kill()
	outcome(t, wait(t, c), proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"kill"}})
}

func TestAProcessThatHidesCannotHoldUpTheEnd(t *testing.T) {
	t.Run("with a cgroup it is found", func(t *testing.T) {
		t.Parallel()
		requireCgroup(t)
		s := newSpawner(t, proc.Options{})
		spec, marker := stub(t, "--grandchild", "scrubbed")
		_, exit := finish(t, start(t, s, spec))
		outcome(t, exit, proc.Exit{Swept: 1, Ladder: []string{"sweep"}})
		noSurvivors(t, marker)
	})
	t.Run("without a cgroup it is reported", func(t *testing.T) {
		t.Parallel()
		s := newSpawner(t, proc.Options{NoCgroup: true})
		spec, marker := stub(t, "--grandchild", "scrubbed", "--big", "3000")
		t.Cleanup(func() {
			for _, pid := range proctest.Survivors(marker) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
		text, exit := finish(t, start(t, s, spec))
		outcome(t, exit, proc.Exit{Leaked: true})
		if len(text) != 3000 {
			t.Errorf("read %d bytes of 3000", len(text))
		}
	})
}

func TestASlowReaderStillGetsWhatADeadChildWrote(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{NoCgroup: true})
	spec, marker := stub(t, "--grandchild", "scrubbed", "--big", "60000")
	t.Cleanup(func() {
		for _, pid := range proctest.Survivors(marker) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	c := start(t, s, spec)
	wait(t, c) // the bound is over for stderr, and so for stdout, before the first read
	n, err := io.Copy(io.Discard, bufio.NewReaderSize(c.Stdout(), 1000))
	if n != 60000 || err != nil {
		t.Errorf("read %d bytes, %v; want 60000", n, err)
	}
}
