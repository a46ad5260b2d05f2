package proc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pilothouse/lanes/proc"
)

func TestAProgramThatCannotBeStartedIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy := file("busy", "#!/bin/sh\n", 0o755)
	writer, err := os.OpenFile(busy, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Close() })
	blocked := filepath.Join(dir, "blocked")
	if err := os.Mkdir(blocked, 0o755); err != nil {
		t.Fatal(err)
	}
	file("blocked/pi", "#!/bin/sh\n", 0o644)

	for _, tc := range []struct {
		name      string
		spec      proc.Spec
		reason    string
		cause     error
		temporary bool
	}{
		{"no program named", proc.Spec{}, "no program is named", os.ErrInvalid, false},
		{"not on PATH", proc.Spec{Path: "pi-of-nobody", Env: []string{"PATH=/usr/bin:/bin"}}, "no folder on PATH holds it", os.ErrNotExist, false},
		{"no PATH at all", proc.Spec{Path: "sh"}, "no folder on PATH holds it", os.ErrNotExist, false},
		{"a relative folder on PATH", proc.Spec{Path: "busy", Dir: dir, Env: []string{"PATH=."}}, "no folder on PATH holds it", os.ErrNotExist, false},
		{"on PATH but not executable", proc.Spec{Path: "pi", Env: []string{"PATH=" + blocked}}, blocked + "/pi is not executable", syscall.EACCES, false},
		{"no such file", proc.Spec{Path: dir + "/nothing"}, "no such file or directory", os.ErrNotExist, false},
		{"a directory", proc.Spec{Path: dir}, "it is a directory", syscall.EACCES, false},
		{"not executable", proc.Spec{Path: file("plain", "#!/bin/sh\n", 0o644)}, "it is not executable", syscall.EACCES, false},
		{"an empty file", proc.Spec{Path: file("empty", "", 0o755)}, "the file is empty", syscall.ENOEXEC, false},
		{"no #! line", proc.Spec{Path: file("text", "echo hello\n", 0o755)}, "neither a program for this system nor a script", syscall.ENOEXEC, false},
		{"a missing interpreter", proc.Spec{Path: file("script", "#!/opt/none/node --flag\n", 0o755)}, "its interpreter /opt/none/node does not exist", os.ErrNotExist, false},
		{"being written", proc.Spec{Path: busy}, "being written", syscall.ETXTBSY, true},
		{"one argument too long", proc.Spec{Path: "/bin/true", Args: []string{strings.Repeat("x", 128<<10)}}, "too long for the system", syscall.E2BIG, false},
		{"a NUL in an argument", proc.Spec{Path: "/bin/true", Args: []string{"a\x00b"}}, "holds a NUL byte", syscall.EINVAL, false},
		{"a NUL in the environment", proc.Spec{Path: "/bin/true", Env: []string{"A=a\x00b"}}, "holds a NUL byte", syscall.EINVAL, false},
		{"no working directory", proc.Spec{Path: "/bin/true", Dir: dir + "/nowhere"}, "its working directory " + dir + "/nowhere cannot be used", os.ErrNotExist, false},
		{"a file as working directory", proc.Spec{Path: "/bin/true", Dir: busy}, "is not a directory", syscall.ENOTDIR, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := t.TempDir()
			s := newSpawner(t, proc.Options{StateDir: state})
			c, err := s.Start(t.Context(), tc.spec)
			if err == nil {
				c.Kill()
				t.Fatal("the child started")
			}
			start, ok := errors.AsType[*proc.StartError](err)
			if !ok {
				t.Fatalf("%T: %v", err, err)
			}
			if !strings.Contains(start.Reason, tc.reason) || !errors.Is(err, tc.cause) || start.Temporary() != tc.temporary {
				t.Errorf("%q (%v, temporary %v), want %q (%v)", start.Reason, start.Err, start.Temporary(), tc.reason, tc.cause)
			}
			if tc.spec.Path != "" && start.Path != tc.spec.Path {
				t.Errorf("the error names %s", start.Path)
			}
			if left, _ := os.ReadDir(state); len(left) > 0 || s.Live() != 0 {
				t.Errorf("left behind: %v, %d live", left, s.Live())
			}
		})
	}
}

func TestAFailedStartDoesNotCostTheNextChildItsCgroup(t *testing.T) {
	t.Parallel()
	requireCgroup(t)
	s := newSpawner(t, proc.Options{})
	if _, err := s.Start(t.Context(), proc.Spec{Path: "/etc/passwd"}); err == nil {
		t.Fatal("/etc/passwd started")
	}
	c := start(t, s, proc.Spec{Path: "/bin/true"})
	finish(t, c)
	if c.Identity().Cgroup == "" {
		t.Error("the next child has no cgroup")
	}
}

func TestTheLongestArgumentArrives(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	long := strings.Repeat("x", 128<<10-1)
	dump := filepath.Join(t.TempDir(), "argv")
	spec, _ := stub(t, "--argv-dump", dump, long)
	_, exit := finish(t, start(t, s, spec))
	outcome(t, exit, proc.Exit{})
	if got := read(t, dump); got != strings.Join(spec.Args, "\n") {
		t.Errorf("%d bytes of arguments arrived", len(got))
	}
}

func TestTheEnvironmentIsTheSpecsAndTheMarkersOnly(t *testing.T) {
	t.Setenv("SECRET_OF_THE_DAEMON", "1")
	s := newSpawner(t, proc.Options{})
	dir := t.TempDir()
	dump := filepath.Join(dir, "env")
	spec, _ := stub(t, "--env-dump", dump)
	spec.Dir = dir
	spec.Label = "round 7/läne"
	spec.Env = []string{"HOME=/nowhere", "GIT_TERMINAL_PROMPT=1", "PWD=/elsewhere", proc.EnvDepth + "=1", proc.EnvLane + "=outer:00ff"}
	c := start(t, s, spec)
	finish(t, c)
	got := strings.Split(read(t, dump), "\n")
	want := []string{
		"HOME=/nowhere",
		"GIT_TERMINAL_PROMPT=0",
		"PWD=" + dir,
		proc.EnvDepth + "=2",
		proc.EnvLane + "=outer:00ff,round_7/l_ne:" + c.Identity().Nonce,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("environment\n got %q\nwant %q", got, want)
	}
}

func TestNestingIsRefusedPastItsCap(t *testing.T) {
	for _, tc := range []struct {
		spec, own string
		refused   bool
	}{
		{"", "", false},
		{"2", "", false},
		{"3", "", true},
		{"0", "3", true},
		{"1", "2", false},
		{"-1", "", true},
		{"many", "", true},
		{"99999999999999999999", "", true},
	} {
		t.Run(fmt.Sprintf("session %q, own %q", tc.spec, tc.own), func(t *testing.T) {
			t.Setenv(proc.EnvDepth, tc.own)
			s := newSpawner(t, proc.Options{})
			spec := proc.Spec{Path: "/bin/true"}
			if tc.spec != "" {
				spec.Env = []string{proc.EnvDepth + "=" + tc.spec}
			}
			c, err := s.Start(t.Context(), spec)
			if _, is := errors.AsType[*proc.DepthError](err); is != tc.refused {
				t.Errorf("refused: %v; want %v (%v)", is, tc.refused, err)
			}
			if err == nil {
				finish(t, c)
			}
		})
	}
}

func TestAContextThatIsDoneStartsNothing(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Start(ctx, proc.Spec{Path: "/bin/true"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestAChildDoesNotDependOnTheContextOfItsStart(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	spec, _ := stub(t, "--read-stdin", "--then", "exit:7")
	c, err := s.Start(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	c.Feed(nil)
	_, exit := finish(t, c)
	outcome(t, exit, proc.Exit{Code: 7})
}

func TestCloseEndsWhatIsLeftAndRefusesMore(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		options.StateDir = t.TempDir()
		s := newSpawner(t, options)
		spec, marker := stub(t, "--ignore", "TERM", "--grandchild", "setsid", "--then", "hang")
		c, _ := startReady(t, s, spec)
		if s.Live() != 1 {
			t.Errorf("%d children are live", s.Live())
		}
		closeSpawner(t, s)
		closeSpawner(t, s)
		outcome(t, wait(t, c), proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{"kill"}})
		noSurvivors(t, marker)
		if _, err := s.Start(t.Context(), spec); !errors.Is(err, proc.ErrClosed) {
			t.Errorf("start after close: %v", err)
		}
		if left, _ := os.ReadDir(options.StateDir); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
		if group := c.Identity().Cgroup; group != "" {
			if _, err := os.Stat(filepath.Dir(group)); !os.IsNotExist(err) {
				t.Errorf("the cgroups are left: %v", err)
			}
		}
	})
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
