package proc_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/lanes/proc"
	"pilothouse/lanes/proc/proctest"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	if order := os.Getenv(envOrchestrator); order != "" {
		os.Exit(orchestrate(order))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		proctest.Clean()
		os.Exit(code)
	}))
}

// patience is for things that must happen; no test waits this long when all is well.
const patience = 30 * time.Second

// eventually fails the test when ok does not become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("did not happen in %v: %s", patience, what)
		}
	}
}

// bothModes runs a test with a cgroup for each child and without.
func bothModes(t *testing.T, test func(t *testing.T, options proc.Options)) {
	t.Run("with a cgroup", func(t *testing.T) {
		t.Parallel()
		requireCgroup(t)
		test(t, proc.Options{})
	})
	t.Run("without a cgroup", func(t *testing.T) {
		t.Parallel()
		test(t, proc.Options{NoCgroup: true})
	})
}

// requireCgroup skips the test where no cgroup is writable.
func requireCgroup(t *testing.T) {
	t.Helper()
	s := newSpawner(t, proc.Options{})
	c := start(t, s, proc.Spec{Path: "/bin/true"})
	finish(t, c)
	if c.Identity().Cgroup == "" {
		t.Skip("no cgroup v2 is writable here")
	}
}

func newSpawner(t *testing.T, options proc.Options) *proc.Spawner {
	t.Helper()
	s, err := proc.NewSpawner(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSpawner(t, s) })
	return s
}

func closeSpawner(t *testing.T, s *proc.Spawner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func start(t *testing.T, s *proc.Spawner, spec proc.Spec) *proc.Child {
	t.Helper()
	c, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stub is a stub child that can be found by the marker returned.
func stub(t *testing.T, args ...string) (spec proc.Spec, marker string) {
	t.Helper()
	marker = proctest.Marker()
	return proc.Spec{
		Path:  proctest.Build(t),
		Args:  append([]string{"--marker", marker}, args...),
		Env:   []string{"PATH=" + os.Getenv("PATH")},
		Label: "round-1/" + t.Name(),
	}, marker
}

// startReady starts a stub child, waits until it has set itself up and returns the rest of its stdout.
func startReady(t *testing.T, s *proc.Spawner, spec proc.Spec) (*proc.Child, *bufio.Reader) {
	t.Helper()
	spec.Args = append(spec.Args, "--ready")
	c := start(t, s, spec)
	stdout := bufio.NewReader(c.Stdout())
	if line, err := stdout.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child is not ready: %q, %v, %+v", line, err, c.Wait())
	}
	return c, stdout
}

// finish reads the child's stdout to its end and waits for the child.
func finish(t *testing.T, c *proc.Child) (stdout string, exit proc.Exit) {
	t.Helper()
	return finishReading(t, c, c.Stdout())
}

func finishReading(t *testing.T, c *proc.Child, r io.Reader) (stdout string, exit proc.Exit) {
	t.Helper()
	var text strings.Builder
	read := make(chan error, 1)
	go func() {
		_, err := io.Copy(&text, r)
		read <- err
	}()
	exit = wait(t, c)
	select {
	case err := <-read:
		if err != nil {
			t.Errorf("read stdout: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("stdout has no end though the child has")
	}
	return text.String(), exit
}

func wait(t *testing.T, c *proc.Child) proc.Exit {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the child does not end")
	}
	return c.Wait()
}

func noSurvivors(t *testing.T, marker string) {
	t.Helper()
	if pids := proctest.Survivors(marker); len(pids) > 0 {
		t.Errorf("processes survived: %v", pids)
	}
}
