package proc_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pilothouse/lanes/proc"
)

func TestAChildGetsFourDescriptorsAndATerminalOnTheLast(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	c := start(t, s, proc.Spec{Path: "sleep", Args: []string{"1000"}, Env: []string{"PATH=/usr/bin:/bin"}})
	pid := c.Identity().PID
	eventually(t, "the child has descriptors 0 to 3 open, once the loader is done", func() bool {
		names := slices.DeleteFunc(files(t, fmt.Sprintf("/proc/%d/fd", pid)), func(fd string) bool {
			// What the test itself was started with is passed on.
			return len(fd) > 1 && descriptorFlags(t, "self", fd)&syscall.O_CLOEXEC == 0
		})
		slices.Sort(names)
		return slices.Equal(names, []string{"0", "1", "2", "3"})
	})
	for fd, want := range []string{"pipe:", "pipe:", "pipe:", "/dev/pts/"} {
		if link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); !strings.HasPrefix(link, want) {
			t.Errorf("descriptor %d is %s (%v), want %s", fd, link, err, want)
		}
		if flags := descriptorFlags(t, strconv.Itoa(pid), strconv.Itoa(fd)); flags&syscall.O_NONBLOCK != 0 {
			t.Errorf("descriptor %d does not block: flags %o", fd, flags)
		}
	}
	text := read(t, fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if own := strconv.Itoa(pid); fields[2] != own || fields[3] != own || fields[4] == "0" {
		t.Errorf("group %s, session %s, terminal %s of process %s", fields[2], fields[3], fields[4], own)
	}
	c.Kill()
	finish(t, c)
}

func descriptorFlags(t *testing.T, pid, fd string) (flags int) {
	t.Helper()
	var position int
	info := read(t, "/proc/"+pid+"/fdinfo/"+fd)
	if _, err := fmt.Sscanf(info, "pos: %d\nflags: %o", &position, &flags); err != nil {
		t.Fatalf("%q: %v", info, err)
	}
	return flags
}

func TestWhatAChildWritesToItsTerminalIsDrained(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	text, exit := finish(t, start(t, s, proc.Spec{Path: "/bin/sh", Args: []string{"-c", "head -c 1000000 /dev/zero >/dev/tty && echo drained"}}))
	outcome(t, exit, proc.Exit{})
	if text != "drained\n" {
		t.Errorf("stdout %q, stderr %q", text, exit.Stderr)
	}
}

func TestThreadsThatEndDoNotTakeChildrenWithThem(t *testing.T) {
	t.Parallel()
	s := newSpawner(t, proc.Options{})
	const children, threads = 40, 200
	started := make([]*proc.Child, children)
	marker := ""
	var all sync.WaitGroup
	churn := func() {
		var ends sync.WaitGroup
		for range threads {
			ends.Go(runtime.LockOSThread) // returning locked ends the thread
		}
		ends.Wait()
	}
	for i := range started {
		spec, m := stub(t, "--then", "hang")
		if marker == "" {
			marker = m
		}
		all.Go(func() {
			if i%2 == 0 {
				runtime.LockOSThread()
			}
			c, err := s.Start(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			started[i] = c
		})
	}
	all.Go(churn)
	all.Wait()
	churn()
	runtime.GC()
	for i, c := range started {
		if c == nil {
			continue
		}
		select {
		case <-c.Done():
			t.Errorf("child %d was ended: %+v", i, c.Wait())
		default:
			if state, _ := stat(c.Identity().PID); state == "" || state == "Z" {
				t.Errorf("child %d is dead", i)
			}
			c.Kill()
			finish(t, c)
		}
	}
	noSurvivors(t, marker)
}

func TestNoDescriptorIsLeaked(t *testing.T) { // alone: it counts for the whole process
	round := func() {
		for _, options := range []proc.Options{{StateDir: t.TempDir()}, {StateDir: t.TempDir(), NoCgroup: true}} {
			s, err := proc.NewSpawner(options)
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{nil, {"--then", "hang"}, {"--grandchild", "setsid", "--big", "100000"}} {
				spec, _ := stub(t, args...)
				c := start(t, s, spec)
				c.Feed([]byte("task"))
				if len(args) == 2 {
					c.Kill()
				}
				finish(t, c)
			}
			if _, err := s.Start(t.Context(), proc.Spec{Path: "/etc/passwd"}); err == nil {
				t.Fatal("/etc/passwd started")
			}
			closeSpawner(t, s)
		}
	}
	round() // what the runtime opens once
	before := openFiles()
	for range 3 {
		round()
	}
	if after := openFiles(); after != before {
		t.Errorf("%d open files, before %d", after, before)
	}
}
