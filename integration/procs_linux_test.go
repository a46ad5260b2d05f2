package integration_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pilothouse/integration/piharness"
)

// children are the lanes whose child lives now: the processes of one child share
// the marker of their lane.
func (w *workspace) children() map[string]bool {
	lanes := map[string]bool{}
	for _, pid := range piharness.Survivors(w.marker) {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // ended in between
		}
		for variable := range strings.SplitSeq(string(environ), "\x00") {
			if lane, ok := strings.CutPrefix(variable, "PILOTHOUSE_LANE="); ok {
				lanes[lane] = true
			}
		}
	}
	return lanes
}

// mostChildren looks again and again until the job has ended, and returns the
// largest number of children that lived at once. A child between its start and
// its reaping counts.
func (w *workspace) mostChildren(j *job) int {
	most := 0
	for alive(j.cmd.Process.Pid) {
		most = max(most, len(w.children()))
		time.Sleep(10 * time.Millisecond) // leaves the processor to what is watched
	}
	return most
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
	for _, pid := range piharness.Survivors(w.marker) {
		if line, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "cmdline")); err == nil {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}
