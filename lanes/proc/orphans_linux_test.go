package proc_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pilothouse/lanes/proc"
	"pilothouse/lanes/proc/proctest"
)

// stat returns the state and the parent of a process.
func stat(pid int) (state, parent string) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return "", ""
	}
	return fields[0], fields[1]
}

// guardOf finds the guard of an orchestrator.
func guardOf(t *testing.T, orchestrator int) (pid int) {
	t.Helper()
	eventually(t, "the orchestrator has a guard", func() bool {
		for _, candidate := range proctest.Survivors("pilothouse-guard") {
			if _, parent := stat(candidate); parent == strconv.Itoa(orchestrator) {
				pid = candidate
				return true
			}
		}
		return false
	})
	return pid
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a killed process is dead", func() bool {
		state, _ := stat(pid)
		return state == "" || state == "Z"
	})
}

// stubbornFamily is a child with descendants that no hang-up, no parent-death
// signal and no group signal reaches.
func stubbornFamily(t *testing.T) (proc.Spec, string) {
	return stub(t, "--ignore", "TERM,HUP,INT,PIPE", "--grandchild", "inherit", "--grandchild", "setsid", "--grandchild", "daemon", "--then", "spam")
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestNothingOutlivesAKilledOrchestratorThatHasAGuard(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		options.StateDir = t.TempDir()
		o := newOrchestrator(t, options, nil)
		spec, marker := stubbornFamily(t)
		id := o.start(spec)
		o.start(spec)
		kill(t, o.pid())
		eventually(t, "the guard ends what is left", func() bool { return len(proctest.Survivors(marker)) == 0 })

		if id.Cgroup != "" {
			eventually(t, "the guard removes the cgroups", func() bool {
				_, err := os.Stat(filepath.Dir(id.Cgroup))
				return os.IsNotExist(err)
			})
		}
		report, err := proc.Sweep(options.StateDir, nil)
		if err != nil || report.Closed != 2 || report.Kept != 0 {
			t.Errorf("sweep afterwards: %+v, %v", report, err)
		}
		if left := files(t, options.StateDir); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
	})
}

func TestSweepEndsWhatAKilledOrchestratorAndItsKilledGuardLeft(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		options.StateDir = t.TempDir()
		o := newOrchestrator(t, options, nil)
		spec, marker := stubbornFamily(t)
		id := o.start(spec)
		o.killWithGuard() // it stays a zombie until the test ends, as under a parent that does not reap
		if id.Cgroup == "" && len(proctest.Survivors(marker)) == 0 {
			t.Fatal("nothing was left, so the test shows nothing")
		}
		report, err := proc.Sweep(options.StateDir, nil)
		if err != nil || report.Closed != 1 || report.Kept != 0 {
			t.Errorf("sweep: %+v, %v", report, err)
		}
		// A sweep of another test may have been quicker with the cgroup.
		if id.Cgroup == "" && report.Killed < 2 {
			t.Errorf("the sweep ended %d processes", report.Killed)
		}
		noSurvivors(t, marker)
		if left := files(t, options.StateDir); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
		if _, err := os.Stat(id.Cgroup); id.Cgroup != "" && !os.IsNotExist(err) {
			t.Errorf("the cgroup is left: %v", err)
		}
	})
}

func TestSweepFindsTheCgroupsOfAnOrchestratorWithoutRecords(t *testing.T) {
	requireCgroup(t)
	o := newOrchestrator(t, proc.Options{}, nil)
	spec, marker := stubbornFamily(t)
	id := o.start(spec)
	o.killWithGuard()
	if _, err := proc.Sweep("", nil); err != nil {
		t.Error(err)
	}
	noSurvivors(t, marker)
	if _, err := os.Stat(filepath.Dir(id.Cgroup)); !os.IsNotExist(err) {
		t.Errorf("the cgroup is left: %v", err)
	}
}

func TestALostGuardIsReplaced(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		o := newOrchestrator(t, options, nil)
		spec, marker := stubbornFamily(t)
		o.start(spec)
		first := guardOf(t, o.pid())
		kill(t, first)
		eventually(t, "there is a new guard", func() bool { return guardOf(t, o.pid()) != first })
		o.start(spec)
		kill(t, o.pid())
		eventually(t, "the new guard ends both trees", func() bool { return len(proctest.Survivors(marker)) == 0 })
	})
}

func TestAGuardOutlivesTheSignalsThatEndItsOrchestrator(t *testing.T) {
	t.Parallel()
	o := newOrchestrator(t, proc.Options{NoCgroup: true}, nil)
	spec, marker := stubbornFamily(t)
	o.start(spec)
	guard := guardOf(t, o.pid())
	eventually(t, "the guard is set up", func() bool { // TERM would end it before
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", guard))
		for line := range strings.Lines(string(status)) {
			if mask, ok := strings.CutPrefix(line, "SigIgn:"); ok {
				ignored, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
				return ignored&(1<<(syscall.SIGTERM-1)) != 0
			}
		}
		return false
	})
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
		if err := syscall.Kill(guard, sig); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, o.pid())
	eventually(t, "the guard ends what is left", func() bool { return len(proctest.Survivors(marker)) == 0 })
	eventually(t, "the guard ends itself", func() bool { state, _ := stat(guard); return state == "" || state == "Z" })
}

func TestAnUnprivilegedOrchestratorFallsBack(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else; the other tests run unprivileged already")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "proc-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	o := newOrchestrator(t, proc.Options{StateDir: dir}, &syscall.Credential{Uid: nobody, Gid: nobody})
	spec, marker := stubbornFamily(t)
	if id := o.start(spec); id.Cgroup != "" {
		t.Skipf("nobody may write the cgroup %s here", id.Cgroup)
	}
	kill(t, o.pid())
	eventually(t, "the guard ends what is left", func() bool { return len(proctest.Survivors(marker)) == 0 })
}

func TestAnOrchestratorThatClosesEndsItsGuard(t *testing.T) {
	t.Parallel()
	o := newOrchestrator(t, proc.Options{}, nil)
	spec, marker := stubbornFamily(t)
	o.start(spec)
	guard := guardOf(t, o.pid())
	if err := syscall.Kill(guard, 0); err != nil {
		t.Fatal(err)
	}
	o.finish()
	noSurvivors(t, marker)
	if state, _ := stat(guard); state != "" && state != "Z" {
		t.Errorf("the guard is in state %s", state)
	}
}

func TestTooFewDescriptorsFailTheStartCleanly(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		options.StateDir = t.TempDir()
		o := newOrchestrator(t, options, nil)
		spec, marker := stub(t, "--then", "hang", "--ready")
		o.start(spec) // brings the guard
		const never = 1000
		before := o.send(order{Spec: proc.Spec{Path: "/does/not/exist"}, SpareFiles: new(never)}).OpenFiles
		failed := 0
		for spare := range 20 {
			a := o.send(order{Spec: spec, SpareFiles: &spare})
			if a.Error == "" {
				break
			}
			failed++
			if !a.IsStart || !a.Temporary || !strings.Contains(a.Error, "too many open files") {
				t.Errorf("with %d descriptors: %+v", spare, a)
			}
			if a.OpenFiles != before {
				t.Errorf("with %d descriptors: %d open files, before %d", spare, a.OpenFiles, before)
			}
		}
		if failed < 6 {
			t.Errorf("only %d starts failed", failed)
		}
		if n := len(files(t, options.StateDir)); n != 2 {
			t.Errorf("%d records of two children", n)
		}
		o.finish()
		noSurvivors(t, marker)
	})
}

// killWithGuard kills the orchestrator and its guard, neither of which can do anything about the other.
func (o *orchestrator) killWithGuard() {
	o.t.Helper()
	guard := guardOf(o.t, o.pid())
	if err := syscall.Kill(o.pid(), syscall.SIGSTOP); err != nil {
		o.t.Fatal(err)
	}
	kill(o.t, guard)
	kill(o.t, o.pid())
}

// finish lets the orchestrator close in order.
func (o *orchestrator) finish() {
	o.t.Helper()
	if err := o.stdin.Close(); err != nil {
		o.t.Fatal(err)
	}
	if err := o.cmd.Wait(); err != nil {
		o.t.Errorf("orchestrator: %v", err)
	}
}
