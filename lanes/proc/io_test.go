package proc_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/lanes/proc"
)

func TestTheTaskArrivesOnStdin(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		task []byte
	}{
		{"an empty one", nil},
		{"one longer than any argument", bytes.Repeat([]byte("ä\n"), 200<<10)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSpawner(t, proc.Options{})
			dump := filepath.Join(t.TempDir(), "stdin")
			spec, _ := stub(t, "--read-stdin", "--stdin-dump", dump)
			c := start(t, s, spec)
			c.Feed(tc.task)
			c.Feed([]byte("only the first counts"))
			_, exit := finish(t, c)
			outcome(t, exit, proc.Exit{})
			if got := read(t, dump); got != string(tc.task) {
				t.Errorf("%d bytes arrived of %d", len(got), len(tc.task))
			}
		})
	}
}

func TestAWarmChildWaitsForItsTask(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	// The shell prints before it reads, so it is known to wait.
	c := start(t, s, proc.Spec{Path: "/bin/sh", Args: []string{"-c", "echo warm; read task; echo got $task"}})
	first := make([]byte, 5)
	if _, err := c.Stdout().Read(first); string(first) != "warm\n" {
		t.Fatalf("%q, %v", first, err)
	}
	select {
	case <-c.Done():
		t.Fatal("the child did not wait")
	default:
	}
	c.Feed([]byte("work\n"))
	text, exit := finish(t, c)
	outcome(t, exit, proc.Exit{})
	if text != "got work\n" {
		t.Errorf("stdout %q", text)
	}
}

func TestAChildThatDoesNotTakeItsTaskHoldsNothingUp(t *testing.T) {
	t.Parallel()
	task := bytes.Repeat([]byte("x"), 200<<10) // more than the pipe takes
	t.Run("it never reads and is killed", func(t *testing.T) {
		t.Parallel()
		s := newSpawner(t, proc.Options{})
		spec, _ := stub(t, "--then", "hang")
		c, stdout := startReady(t, s, spec)
		c.Feed(task)
		c.Kill()
		_, exit := finishReading(t, c, stdout)
		outcome(t, exit, proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"kill"}})
	})
	t.Run("it has closed stdin", func(t *testing.T) {
		t.Parallel()
		s := newSpawner(t, proc.Options{})
		spec, _ := stub(t, "--close-stdin", "--then", "hang")
		c, stdout := startReady(t, s, spec)
		c.Feed(task)
		c.Terminate()
		_, exit := finishReading(t, c, stdout)
		outcome(t, exit, proc.Exit{Code: 143, Signal: "SIGTERM", Ladder: []string{"term"}})
	})
	t.Run("it is gone already", func(t *testing.T) {
		t.Parallel()
		s := newSpawner(t, proc.Options{})
		spec, _ := stub(t)
		c := start(t, s, spec)
		_, exit := finish(t, c)
		c.Feed(task)
		c.Terminate()
		c.Kill()
		outcome(t, exit, proc.Exit{})
	})
	t.Run("it is never fed and obeys TERM", func(t *testing.T) {
		t.Parallel()
		s := newSpawner(t, proc.Options{})
		spec, _ := stub(t, "--then", "hang")
		c, stdout := startReady(t, s, spec)
		c.Terminate()
		_, exit := finishReading(t, c, stdout)
		outcome(t, exit, proc.Exit{Code: 143, Signal: "SIGTERM", Ladder: []string{"term"}})
	})
}

func TestOnlyTheTailOfStderrIsKept(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	for _, tc := range []struct{ limit, want int }{{0, 64 << 10}, {1000, 1000}} {
		const size = 1 << 20
		spec, _ := stub(t, "--stderr", "1048576", "--then", "exit:1")
		spec.StderrTail = tc.limit
		_, exit := finish(t, start(t, s, spec))
		outcome(t, exit, proc.Exit{Code: 1})
		if exit.StderrBytes != size || len(exit.Stderr) != tc.want || !strings.HasSuffix(exit.Stderr, "xx\n") {
			t.Errorf("kept %d of %d bytes, want %d of %d", len(exit.Stderr), exit.StderrBytes, tc.want, size)
		}
	}
}

func TestAQuickFailureKeepsItsWords(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	_, exit := finish(t, start(t, s, proc.Spec{Path: "/bin/sh", Args: []string{"-c", "echo 'env: node: not found' >&2; exit 127"}}))
	outcome(t, exit, proc.Exit{Code: 127})
	if exit.Stderr != "env: node: not found\n" {
		t.Errorf("stderr %q", exit.Stderr)
	}
	if exit.Ended.Before(exit.Started) {
		t.Errorf("ended %v before it started %v", exit.Ended, exit.Started)
	}
}
