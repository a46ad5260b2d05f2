package proc_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pilothouse/lanes/proc"
	"pilothouse/lanes/proc/proctest"
)

// freeze makes a process immune to SIGKILL until the returned function is
// called. The freezer of cgroup v1 does that; version 2 lets the signal through.
func freeze(t *testing.T, pid int) (thaw func()) {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup/freezer", proctest.Marker())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("nothing makes a process undying here: %v", err)
	}
	set := func(file, value string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
			t.Errorf("freezer: %v", err)
		}
	}
	thaw = func() { set("freezer.state", "THAWED") }
	t.Cleanup(func() {
		thaw()
		eventually(t, "the freezer can be removed", func() bool { return os.Remove(dir) == nil })
	})
	set("cgroup.procs", strconv.Itoa(pid))
	set("freezer.state", "FROZEN")
	eventually(t, "the process is frozen", func() bool {
		state, _ := os.ReadFile(filepath.Join(dir, "freezer.state"))
		return string(state) == "FROZEN\n"
	})
	return thaw
}

func TestAChildThatDoesNotDieIsGivenUpAndReapedLater(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		options.StateDir = t.TempDir()
		s := newSpawner(t, options)
		spec, marker := stub(t, "--then", "hang")
		c, stdout := startReady(t, s, spec)
		thaw := freeze(t, c.Identity().PID)
		c.Kill()
		_, exit := finishReading(t, c, stdout)
		outcome(t, exit, proc.Exit{Code: -1, Leaked: true, Ladder: []string{"kill"}})
		if s.Live() != 0 {
			t.Errorf("%d children are live", s.Live())
		}
		if n := len(files(t, options.StateDir)); n != 1 {
			t.Errorf("%d records of a child that is not reaped", n)
		}
		thaw()
		closeSpawner(t, s) // waits for it after all
		noSurvivors(t, marker)
		if left := files(t, options.StateDir); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
	})
}
