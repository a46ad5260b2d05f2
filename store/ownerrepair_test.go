package store_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

// repairLog is doctor.jsonl, with what differs from run to run replaced.
func repairLog(t testing.TB, dir store.RunDir) []store.Repair {
	t.Helper()
	path := filepath.Join(dir.Root.Dir, "pilothouse/doctor.jsonl")
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	var all []store.Repair
	for line := range strings.Lines(read(t, path)) {
		var repair store.Repair
		if err := json.Unmarshal([]byte(line), &repair); err != nil {
			t.Errorf("line %q: %v", line, err)
			continue
		}
		all = append(all, repair)
	}
	return all
}

func TestAReleaseByHandTakesTheRunFromADeadOwnerAndIsWrittenDown(t *testing.T) {
	t.Parallel()
	dir, dead := newRun(t), deadPID(t)
	write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pid"] = dead }))
	record, _, err := dir.Owner()
	if err != nil {
		t.Fatal(err)
	}
	done, err := dir.ReleaseOwner(t.Context(), false, pinned)
	if err != nil {
		t.Fatal(err)
	}
	want := []store.Repair{{
		At: "2026-08-25T13:00:00Z", RunID: dir.ID, Action: store.RepairRelease, State: store.OwnerDead, Owner: &record,
	}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, repairLog(t, dir)); diff != "" {
		t.Errorf("the log: %s", diff)
	}
	if _, state, err := dir.Owner(); state != store.OwnerNone || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
	if lease := acquire(t, dir, "s"); lease.Generation != 1 {
		t.Errorf("got %+v", lease)
	}
}

func TestAReleaseByHandOfAFreeRunDoesNothing(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	if done, err := dir.ReleaseOwner(t.Context(), true, pinned); len(done) != 0 || err != nil {
		t.Errorf("got %+v, %v", done, err)
	}
	if log := repairLog(t, dir); log != nil {
		t.Errorf("the log has %+v", log)
	}
}

func TestOnlyForceTakesARunFromAnOwnerThatMayLive(t *testing.T) {
	t.Parallel()
	living := startSleep(t)
	for name, test := range map[string]struct {
		change func(r map[string]any)
		reason store.OwnedReason
		state  store.OwnerState
	}{
		"alive":     {func(r map[string]any) { r["pid"] = living.Process.Pid }, store.OwnedAlive, store.OwnerAlive},
		"elsewhere": {func(r map[string]any) { r["host"] = "elsewhere" }, store.OwnedElsewhere, store.OwnerElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newRun(t)
			write(t, ownerFile(dir), foreign(test.change))
			before := read(t, ownerFile(dir))
			var owned *store.OwnedError
			if _, err := dir.ReleaseOwner(t.Context(), false, pinned); !errors.As(err, &owned) || owned.Reason != test.reason {
				t.Errorf("got %v", err)
			}
			if read(t, ownerFile(dir)) != before || repairLog(t, dir) != nil {
				t.Error("a refused repair left a trace")
			}
			done, err := dir.ReleaseOwner(t.Context(), true, pinned)
			if err != nil || len(done) != 1 || !done[0].Forced || done[0].State != test.state || done[0].Owner.ProcessToken != strings.Repeat("f", 32) {
				t.Errorf("got %+v, %v", done, err)
			}
			if diff := cmp.Diff(done, repairLog(t, dir)); diff != "" {
				t.Error(diff)
			}
			acquire(t, dir, "s")
		})
	}
}

// A hung owner is one that a person has to decide about; it stops when it wakes up.
func TestASuspendedOwnerWhoseRunIsReleasedByForceStopsWhenItWakesUp(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	owner := startProcess(t, "own", dir, "theirs")
	if got := owner.answer(t); got != "acquired 1" {
		t.Fatal(got)
	}
	signal(t, owner, syscall.SIGSTOP)
	var owned *store.OwnedError
	if _, err := dir.ReleaseOwner(t.Context(), false, pinned); !errors.As(err, &owned) {
		t.Errorf("got %v", err)
	}
	if _, err := dir.ReleaseOwner(t.Context(), true, pinned); err != nil {
		t.Fatal(err)
	}
	lease := acquire(t, dir, "mine")
	before := read(t, checkpointFile(dir))
	signal(t, owner, syscall.SIGCONT)
	if got := owner.ask(t, "write"); !strings.Contains(got, "no longer owns") {
		t.Errorf("it wrote: %s", got)
	}
	if read(t, checkpointFile(dir)) != before || lease.Assert() != nil {
		t.Errorf("the new owner was disturbed: %v", lease.Assert())
	}
}

func TestAReleaseByHandInTheProcessThatHoldsTheRunNeedsForceToo(t *testing.T) {
	t.Parallel()
	for _, session := range []string{"s", ""} {
		dir := newRun(t)
		lease := acquire(t, dir, session)
		var owned *store.OwnedError
		if _, err := dir.ReleaseOwner(t.Context(), false, pinned); !errors.As(err, &owned) {
			t.Errorf("got %v", err)
		}
		if err := lease.Assert(); err != nil {
			t.Errorf("a refused release took the lease: %v", err)
		}
		if _, err := dir.ReleaseOwner(t.Context(), true, pinned); err != nil {
			t.Error(err)
		}
		var lost *store.LostOwnerError
		if err := lease.Assert(); !errors.As(err, &lost) {
			t.Errorf("got %v", err)
		}
	}
}

func TestALeftTakeoverLockIsShownAndRemovedByHand(t *testing.T) {
	t.Parallel()
	dir, dead := newRun(t), deadPID(t)
	write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pid"] = dead }))
	lock := ownerFile(dir) + ".lock"
	write(t, lock, "")
	if got, there, err := dir.TakeoverLock(); !there || got.Left || got.Path != lock || err != nil {
		t.Errorf("a fresh one: %+v, %v, %v", got, there, err)
	}
	at := pinned.AddDate(-1, 0, 0)
	if err := os.Chtimes(lock, at, at); err != nil {
		t.Fatal(err)
	}
	if got, there, err := dir.TakeoverLock(); !there || !got.Left || err != nil {
		t.Errorf("an old one: %+v, %v, %v", got, there, err)
	}
	if err := os.Remove(ownerFile(dir)); err != nil { // no takeover is to come that would remove it
		t.Fatal(err)
	}
	done, err := dir.ReleaseOwner(t.Context(), false, pinned)
	if err != nil || len(done) != 1 || done[0].Action != store.RepairUnlock {
		t.Errorf("got %+v, %v", done, err)
	}
	if diff := cmp.Diff(done, repairLog(t, dir)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock: %v", err)
	}
}

func TestTheLogOfRepairsGoesOnAfterATornLine(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	path := filepath.Join(dir.Root.Dir, "pilothouse/doctor.jsonl")
	write(t, path, `{"at":"2026`)
	write(t, ownerFile(dir), "{")
	if _, err := dir.ReleaseOwner(t.Context(), false, pinned); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(read(t, path), "\n")
	if first != `{"at":"2026` || !strings.HasPrefix(second, `{"at":"2026-08-25T13:00:00Z","runId"`) || !strings.HasSuffix(second, "}\n") {
		t.Errorf("got %q", read(t, path))
	}
}

// Whoever cannot write down what he is about to do does not do it.
func TestARepairThatCannotBeWrittenDownIsNotDone(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	write(t, ownerFile(dir), "{")
	if err := os.MkdirAll(filepath.Join(dir.Root.Dir, "pilothouse/doctor.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.ReleaseOwner(t.Context(), false, pinned); err == nil || !strings.Contains(err.Error(), "doctor.jsonl") {
		t.Errorf("got %v", err)
	}
	if read(t, ownerFile(dir)) != "{" {
		t.Error("it was done")
	}
}
