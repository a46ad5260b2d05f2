package proc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/lanes/proc"
)

// onFile is a record as it lies in the folder.
type onFile struct {
	Schema       int           `json:"schema"`
	Label        string        `json:"label"`
	Child        proc.Identity `json:"child"`
	Orchestrator proc.Identity `json:"orchestrator"`
}

// elsewhere leaves out what a sweep has ended in the cgroups of dead
// orchestrators that other tests, of other packages too, have just killed.
var elsewhere = cmpopts.IgnoreFields(proc.SweepReport{}, "Killed")

// bystander is a process that no sweep may end, with its identity.
func bystander(t *testing.T) (proc.Identity, func() bool) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	id := identify(t, cmd.Process.Pid)
	return id, func() bool { state, _ := stat(id.PID); return state != "" && state != "Z" }
}

func identify(t *testing.T, pid int) proc.Identity {
	t.Helper()
	text := read(t, fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	id := proc.Identity{
		PID:          pid,
		BootID:       strings.TrimSpace(read(t, "/proc/sys/kernel/random/boot_id")),
		PIDNamespace: strings.Trim(namespace, "pid:[]"),
	}
	if _, err := fmt.Sscan(fields[19], &id.StartTicks); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSweepLeavesTheChildrenOfALivingOrchestratorAlone(t *testing.T) {
	t.Parallel()
	bothModes(t, func(t *testing.T, options proc.Options) {
		options.StateDir = t.TempDir()
		s := newSpawner(t, options)
		spec, _ := stub(t, "--then", "hang")
		c, stdout := startReady(t, s, spec)
		report, err := proc.Sweep(options.StateDir, nil)
		if diff := cmp.Diff(proc.SweepReport{Alive: 1}, report, elsewhere); diff != "" || err != nil {
			t.Errorf("report (-want +got): %s, %v", diff, err)
		}
		var rec onFile
		names := files(t, options.StateDir)
		if len(names) != 1 {
			t.Fatalf("records %v", names)
		}
		if err := json.Unmarshal([]byte(read(t, filepath.Join(options.StateDir, names[0]))), &rec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(onFile{Schema: 1, Label: rec.Label, Child: c.Identity(), Orchestrator: identify(t, os.Getpid())}, rec); diff != "" {
			t.Errorf("record (-want +got): %s", diff)
		}
		if id := identify(t, c.Identity().PID); id.StartTicks != c.Identity().StartTicks {
			t.Errorf("identity %+v", c.Identity())
		}
		c.Terminate()
		_, exit := finishReading(t, c, stdout)
		outcome(t, exit, proc.Exit{Code: 143, Signal: "SIGTERM", Ladder: []string{"term"}})
		if left := files(t, options.StateDir); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
	})
}

func TestSweepEndsNoProcessThatIsNotProven(t *testing.T) {
	t.Parallel()
	sleeper, alive := bystander(t)
	own := identify(t, os.Getpid())
	gone := own
	gone.StartTicks-- // our number, another process
	with := func(id proc.Identity, change func(*proc.Identity)) proc.Identity {
		id.Nonce = "5eed"
		change(&id)
		return id
	}
	same := func(*proc.Identity) {}
	for _, tc := range []struct {
		name string
		rec  onFile
		want proc.SweepReport
	}{
		{"a number that names another process now", onFile{Schema: 1, Orchestrator: gone, Child: with(sleeper, func(id *proc.Identity) { id.StartTicks-- })}, proc.SweepReport{Closed: 1}},
		{"a number without a start time", onFile{Schema: 1, Orchestrator: gone, Child: with(sleeper, func(id *proc.Identity) { id.StartTicks = 0 })}, proc.SweepReport{Closed: 1}},
		{"another boot", onFile{Schema: 1, Orchestrator: gone, Child: with(sleeper, func(id *proc.Identity) { id.BootID = "another" })}, proc.SweepReport{Closed: 1}},
		{"another namespace", onFile{Schema: 1, Orchestrator: gone, Child: with(sleeper, func(id *proc.Identity) { id.PIDNamespace = "1" })}, proc.SweepReport{Closed: 1}},
		{"a living orchestrator", onFile{Schema: 1, Orchestrator: own, Child: with(sleeper, same)}, proc.SweepReport{Alive: 1}},
		{"an orchestrator of another namespace", onFile{Schema: 1, Orchestrator: with(gone, func(id *proc.Identity) { id.PIDNamespace = "1" }), Child: with(sleeper, same)}, proc.SweepReport{Kept: 1}},
		{"an orchestrator without identity", onFile{Schema: 1, Child: with(sleeper, same)}, proc.SweepReport{Kept: 1}},
		{"number 1", onFile{Schema: 1, Orchestrator: gone, Child: with(identify(t, 1), same)}, proc.SweepReport{Closed: 1}},
		{"number -1", onFile{Schema: 1, Orchestrator: gone, Child: with(own, func(id *proc.Identity) { id.PID = -1 })}, proc.SweepReport{Closed: 1}},
		{"a group that is not the child's", onFile{Schema: 1, Orchestrator: gone, Child: with(gone, func(id *proc.Identity) { id.Cgroup = "/sys/fs/cgroup/unified" })}, proc.SweepReport{Closed: 1}},
		{"a newer schema", onFile{Schema: 2, Orchestrator: gone, Child: with(sleeper, same)}, proc.SweepReport{Kept: 1}},
		{"no nonce", onFile{Schema: 1, Orchestrator: gone, Child: sleeper}, proc.SweepReport{Kept: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			text, err := json.Marshal(tc.rec)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, own.BootID+".5eed.json")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			seen, err := proc.Look(dir)
			if diff := cmp.Diff(proc.Leftovers{Alive: tc.want.Alive, Left: tc.want.Closed, Unclear: tc.want.Kept}, seen); diff != "" || err != nil {
				t.Errorf("a look (-want +got): %s, %v", diff, err)
			}
			report, err := proc.Sweep(dir, nil)
			if diff := cmp.Diff(tc.want, report, elsewhere); diff != "" || err != nil {
				t.Errorf("report (-want +got): %s, %v", diff, err)
			}
			if !alive() {
				t.Fatal("a bystander was ended")
			}
			if got := len(files(t, dir)); got != tc.want.Alive+tc.want.Kept {
				t.Errorf("%d records are left", got)
			}
		})
	}
}

func TestSweepCopesWithDamagedFolders(t *testing.T) {
	t.Parallel()
	own := identify(t, os.Getpid())
	dir := t.TempDir()
	owner := fmt.Sprintf("pilothouse-%s-%d-%d", own.PIDNamespace, own.PID, own.StartTicks)
	dead := fmt.Sprintf("pilothouse-%s-%d-%d", own.PIDNamespace, own.PID, own.StartTicks-1)
	for name, text := range map[string]string{
		own.BootID + ".1.json": "",
		own.BootID + ".2.json": "\x00\x00\x00\x00",
		own.BootID + ".3.json": "[]",
		own.BootID + ".4.json": `{"schema":1,"child":{"nonce":`,
		"another-boot.5.json":  "", // torn by a power failure
		owner + ".6.tmp":       "", // being written
		dead + ".7.tmp":        "", // never to be finished
		"notes.txt":            "not ours",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := files(t, dir)
	seen, err := proc.Look(dir)
	if diff := cmp.Diff(proc.Leftovers{Left: 1, Unclear: 4}, seen); diff != "" || err != nil {
		t.Errorf("a look (-want +got): %s, %v", diff, err)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("a look changed files: %s", diff)
	}
	var log bytes.Buffer
	report, err := proc.Sweep(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if diff := cmp.Diff(proc.SweepReport{Kept: 4, Closed: 1}, report, elsewhere); diff != "" || err != nil {
		t.Errorf("report (-want +got): %s, %v", diff, err)
	}
	want := []string{own.BootID + ".1.json", own.BootID + ".2.json", own.BootID + ".3.json", own.BootID + ".4.json", "notes.txt", owner + ".6.tmp"}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("files (-want +got): %s", diff)
	}
	if !strings.Contains(log.String(), own.BootID+".4.json") {
		t.Errorf("the log does not name the file: %s", log.String())
	}

	report, err = proc.Sweep(filepath.Join(dir, "missing"), nil)
	if diff := cmp.Diff(proc.SweepReport{}, report, elsewhere); diff != "" || err != nil {
		t.Errorf("a missing folder: %s, %v", diff, err)
	}
	if seen, err := proc.Look(filepath.Join(dir, "missing")); seen != (proc.Leftovers{}) || err != nil {
		t.Errorf("a look at a missing folder: %+v, %v", seen, err)
	}
	if _, err := proc.Sweep(filepath.Join(dir, "notes.txt"), nil); err == nil {
		t.Error("a file as folder is no error")
	}
	if _, err := proc.Look(filepath.Join(dir, "notes.txt")); err == nil {
		t.Error("a look at a file as folder is no error")
	}
}

func TestASweepInsideATreeDoesNotEndItself(t *testing.T) {
	own := identify(t, os.Getpid())
	gone := own
	gone.StartTicks--
	child := gone
	child.Nonce = "5eed"
	t.Setenv(proc.EnvLane, "outer:5eed,inner:1")
	dir := t.TempDir()
	text, err := json.Marshal(onFile{Schema: 1, Orchestrator: gone, Child: child})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, own.BootID+".5eed.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := proc.Sweep(dir, nil)
	if diff := cmp.Diff(proc.SweepReport{Kept: 1}, report, elsewhere); diff != "" || err != nil {
		t.Errorf("report (-want +got): %s, %v", diff, err)
	}
}
