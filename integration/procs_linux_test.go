package integration_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// child is what the kernel tells of the first process of a child.
type child struct {
	pid   int
	stdin string // such as "pipe:[4711]", "" when it is closed
}

// children are the children that live now, by lane: the processes of one child
// share the marker of their lane.
func (w *workspace) children() map[string]child {
	lanes := map[string]child{}
	for _, pid := range w.Survivors() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // ended in between
		}
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			lane, ok := strings.CutPrefix(variable, "PILOTHOUSE_LANE=")
			if _, known := lanes[lane]; ok && !known {
				stdin, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid)) // closed, or ended in between
				lanes[lane] = child{pid, stdin}
			}
		}
	}
	return lanes
}

// sighting is one look at the children of a job.
type sighting struct{ working, waiting map[string]child }

// look tells the children that have been given their tasks from those that wait for
// them: of the latter, the job holds the other end of the standard input.
func (w *workspace) look(j *job) sighting {
	held := map[string]bool{}
	w.held(j, held)
	all := w.children()
	w.held(j, held) // also of those that were started meanwhile
	s := sighting{map[string]child{}, map[string]child{}}
	for lane, c := range all {
		if held[c.stdin] {
			s.waiting[lane] = c
		} else {
			s.working[lane] = c
		}
	}
	return s
}

// held adds what the files are that the job has open.
func (w *workspace) held(j *job, files map[string]bool) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", j.Cmd.Process.Pid)) // the pattern is well-formed
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil {
			files[file] = true
		}
	}
}

// most looks again and again until the job has ended, and returns the largest
// numbers of children that worked, and that waited for their tasks, at once. A look
// takes time: only who is seen in two of them was there at the moment between.
func (w *workspace) most(j *job) (working, waiting int) {
	var before sighting
	for alive(j.Cmd.Process.Pid) {
		now := w.look(j)
		working = max(working, inBoth(before.working, now.working))
		waiting = max(waiting, inBoth(before.waiting, now.waiting))
		before = now
		time.Sleep(10 * time.Millisecond) // leaves the processor to what is watched
	}
	return working, waiting
}

func inBoth(a, b map[string]child) (n int) {
	for lane := range a {
		if _, both := b[lane]; both {
			n++
		}
	}
	return n
}

// untilSpares waits until this many children wait for their tasks while the three
// of a batch work, and returns them.
func (w *workspace) untilSpares(j *job, n int) map[string]child {
	w.t.Helper()
	for alive(j.Cmd.Process.Pid) {
		if now := w.look(j); len(now.waiting) == n && len(now.working) == 3 {
			return now.waiting
		}
		time.Sleep(5 * time.Millisecond) // leaves the processor to what is watched
	}
	w.t.Fatalf("the job ended before %d children were started ahead of their tasks: %s", n, j.wait().Stderr)
	return nil
}

// alive tells whether a child of this process has not exited; a zombie has.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z'
}

// commandLines are the command lines of all processes of the workspace.
func (w *workspace) commandLines() []string {
	var lines []string
	for _, pid := range w.Survivors() {
		if line, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "cmdline")); err == nil {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}
