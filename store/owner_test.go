package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func ownerFile(dir store.RunDir) string { return filepath.Join(dir.Dir, "owner.json") }

func acquire(t testing.TB, dir store.RunDir, session string) *store.Lease {
	t.Helper()
	lease, err := dir.Acquire(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = lease.Release() })
	return lease
}

// refusedFor checks that the run cannot be acquired, and tells who has it.
func refusedFor(t testing.TB, dir store.RunDir, reason store.OwnedReason, check ...func(*store.OwnedError)) {
	t.Helper()
	before := read(t, ownerFile(dir))
	_, err := dir.Acquire(t.Context(), "other")
	var owned *store.OwnedError
	if !errors.As(err, &owned) || owned.Reason != reason || owned.RunID != dir.ID {
		t.Fatalf("got %v, want %s", err, reason)
	}
	if read(t, ownerFile(dir)) != before {
		t.Error("a refusal changed owner.json")
	}
	for _, check := range check {
		check(owned)
	}
}

// foreign is a record that the Pi extension could have written.
func foreign(change func(record map[string]any)) string {
	host, _ := os.Hostname()
	record := map[string]any{
		"schema": 1, "host": host, "pid": os.Getpid(), "pidStart": nil, "sessionId": "theirs",
		"processToken": strings.Repeat("f", 32), "generation": 3, "acquiredAt": "2026-08-25T13:00:00Z",
	}
	change(record)
	data, _ := json.Marshal(record)
	return string(data)
}

func psStart(t testing.TB, pid int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "lstart=", "-p", fmt.Sprint(pid)).Output()
	if err != nil {
		t.Skipf("no ps: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func startSleep(t testing.TB) *exec.Cmd {
	t.Helper()
	command := exec.Command("sleep", "600")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return command
}

// deadPID is the id of a process that is gone.
func deadPID(t testing.TB) int {
	t.Helper()
	command := exec.Command("true")
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return command.Process.Pid
}

func TestAFreeRunIsAcquiredOnceByASession(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	lease := acquire(t, dir, "s1")
	if lease.Generation != 1 || lease.SessionID != "s1" {
		t.Errorf("got %+v", lease)
	}
	host, _ := os.Hostname()
	record, state, err := dir.Owner()
	if err != nil || state != store.OwnerAlive {
		t.Fatalf("got %s, %v", state, err)
	}
	want := fmt.Sprintf("{\n\t\"schema\": 1,\n\t\"host\": %q,\n\t\"pid\": %d,\n\t\"pidStart\": %q,\n\t\"sessionId\": \"s1\",\n\t\"processToken\": %q,\n\t\"generation\": 1,\n\t\"acquiredAt\": %q\n}\n",
		host, os.Getpid(), psStart(t, os.Getpid()), lease.Token, record.AcquiredAt)
	if diff := cmp.Diff(want, read(t, ownerFile(dir))); diff != "" {
		t.Error(diff)
	}
	if again := acquire(t, dir, "s1"); again != lease {
		t.Errorf("got another lease, %+v", again)
	}
	if err := lease.Assert(); err != nil {
		t.Error(err)
	}
	refusedFor(t, dir, store.OwnedBySession, func(owned *store.OwnedError) {
		if owned.SessionID != "s1" || !strings.Contains(owned.Error(), "actively owned") {
			t.Errorf("got %v", owned)
		}
	})
}

func TestAReleasedRunIsFreeAndStartsAtGenerationOne(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	lease := acquire(t, dir, "s1")
	if released, err := lease.Release(); !released || err != nil {
		t.Errorf("got %v, %v", released, err)
	}
	if _, err := os.Stat(ownerFile(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("owner.json: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir.Dir, "pilothouse/alive-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	var lost *store.LostOwnerError
	if err := lease.Assert(); !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
	if released, err := lease.Release(); released || err != nil {
		t.Errorf("the second time: %v, %v", released, err)
	}
	if _, state, err := dir.Owner(); state != store.OwnerNone || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
	if next := acquire(t, dir, "s2"); next.Generation != 1 || next.Token == lease.Token {
		t.Errorf("got %+v", next)
	}
}

func TestALostLeaseStopsItsWritesAndItsReleaseLeavesTheNewOwner(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	lease := acquire(t, dir, "s1")
	if _, err := dir.MutateCheckpoint(lease, nil, pinned, store.HandoffOffered()); err != nil {
		t.Fatal(err)
	}
	theirs := foreign(func(r map[string]any) { r["host"] = "elsewhere"; r["generation"] = 2 })
	write(t, ownerFile(dir), theirs)
	before := read(t, checkpointFile(dir))
	for _, given := range []*store.Lease{lease, nil} {
		var lost *store.LostOwnerError
		_, err := dir.MutateCheckpoint(given, nil, pinned, store.HandoffOffered())
		if !errors.As(err, &lost) || !strings.Contains(err.Error(), "no longer owns") {
			t.Errorf("got %v", err)
		}
	}
	for name, write := range map[string]func() error{
		"status":   func() error { _, err := dir.SetStatus(store.StatusDone, pinned); return err },
		"ledger":   func() error { _, err := dir.AppendDecision(store.Decision{Question: "q"}, pinned); return err },
		"notes":    func() error { return dir.UpdateNotes(pinned, func(*store.WorkflowNotes) {}) },
		"review":   func() error { _, err := dir.WriteReview("r", "a", "x"); return err },
		"round":    func() error { return dir.RoundDir().SaveRound(exampleRound("r", pinned)) },
		"of round": func() error { _, err := dir.RoundDir().WriteReview("r", "a", "x"); return err },
	} {
		var lost *store.LostOwnerError
		if err := write(); !errors.As(err, &lost) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if read(t, checkpointFile(dir)) != before {
		t.Error("a lost lease wrote")
	}
	if released, err := lease.Release(); released || err != nil || read(t, ownerFile(dir)) != theirs {
		t.Errorf("got %v, %v", released, err)
	}
	if _, err := dir.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered()); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestAcquireAsksTheDiskAndNotItsMemory(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	acquire(t, dir, "s1")
	write(t, ownerFile(dir), foreign(func(r map[string]any) { r["host"] = "elsewhere" }))
	var owned *store.OwnedError
	if _, err := dir.Acquire(t.Context(), "s1"); !errors.As(err, &owned) || owned.Host != "elsewhere" {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(ownerFile(dir)); err != nil {
		t.Fatal(err)
	}
	acquire(t, dir, "s1")
}

func TestRecordsOfTheExtensionAreJudgedByTheirProcess(t *testing.T) {
	t.Parallel()
	living := startSleep(t)
	livingStart := psStart(t, living.Process.Pid)
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zombie.Wait() })
	waitForZombie(t, zombie.Process.Pid)
	dead := deadPID(t)
	tests := map[string]struct {
		change func(r map[string]any)
		reason store.OwnedReason // empty: taken over
	}{
		"living":               {func(r map[string]any) { r["pid"], r["pidStart"] = living.Process.Pid, livingStart }, store.OwnedAlive},
		"living with no start": {func(r map[string]any) { r["pid"] = living.Process.Pid }, store.OwnedAlive},
		"living in another time zone": {func(r map[string]any) {
			r["pid"], r["pidStart"] = living.Process.Pid, shifted(t, livingStart, 2*time.Hour)
		}, store.OwnedAlive},
		"living a second off": {func(r map[string]any) {
			r["pid"], r["pidStart"] = living.Process.Pid, shifted(t, livingStart, time.Second)
		}, store.OwnedAlive},
		"id used again": {func(r map[string]any) {
			r["pid"], r["pidStart"] = living.Process.Pid, shifted(t, livingStart, -100*time.Hour)
		}, ""},
		"our id used again":      {func(r map[string]any) { r["pidStart"] = "Thu Jan  1 00:00:00 1970" }, ""},
		"our id with nonsense":   {func(r map[string]any) { r["pidStart"] = "bogus" }, ""},
		"init":                   {func(r map[string]any) { r["pid"] = 1 }, store.OwnedAlive},
		"dead":                   {func(r map[string]any) { r["pid"], r["pidStart"] = dead, livingStart }, ""},
		"dead, start unknown":    {func(r map[string]any) { r["pid"] = dead }, ""},
		"zombie":                 {func(r map[string]any) { r["pid"] = zombie.Process.Pid }, ""},
		"cross-host":             {func(r map[string]any) { r["host"], r["pid"] = "elsewhere", dead }, store.OwnedElsewhere},
		"acquired in the future": {func(r map[string]any) { r["pid"], r["acquiredAt"] = dead, "2999-01-01T00:00:00Z" }, ""},
		"odd session":            {func(r map[string]any) { r["pid"], r["sessionId"] = dead, 7 }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := newRun(t)
			write(t, ownerFile(dir), foreign(test.change))
			if test.reason != "" {
				refusedFor(t, dir, test.reason)
				return
			}
			lease := acquire(t, dir, "s1")
			record, _, err := dir.Owner()
			if err != nil || lease.Generation != 4 || record.Generation != 4 || record.PID != os.Getpid() || record.ProcessToken != lease.Token {
				t.Errorf("got %+v, %+v, %v", lease, record, err)
			}
			if _, err := os.Stat(ownerFile(dir) + ".lock"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the takeover lock is left: %v", err)
			}
		})
	}
}

func shifted(t testing.TB, lstart string, by time.Duration) string {
	t.Helper()
	const layout = "Mon Jan _2 15:04:05 2006"
	at, err := time.Parse(layout, lstart)
	if err != nil {
		t.Skipf("ps speaks another language: %s", lstart)
	}
	return at.Add(by).Format(layout)
}

func waitForZombie(t testing.TB, pid int) {
	t.Helper()
	for range 10_000 {
		out, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
		if strings.HasPrefix(string(out), "Z") {
			return
		}
	}
	t.Fatal("the process did not end")
}

func TestARecordOfThisProcessIsAdoptedByItsSession(t *testing.T) {
	t.Parallel()
	mine := func(session any) string {
		return foreign(func(r map[string]any) { r["pidStart"], r["sessionId"] = psStart(t, os.Getpid()), session })
	}
	for _, session := range []any{"s1", nil, "unknown"} {
		dir := newRun(t)
		write(t, ownerFile(dir), mine(session))
		lease := acquire(t, dir, "s1")
		if lease.Token != strings.Repeat("f", 32) || lease.Generation != 3 || read(t, ownerFile(dir)) != mine(session) {
			t.Errorf("%v: got %+v", session, lease)
		}
		if released, err := lease.Release(); !released || err != nil {
			t.Errorf("%v: got %v, %v", session, released, err)
		}
	}
	dir := newRun(t)
	write(t, ownerFile(dir), mine("s1"))
	refusedFor(t, dir, store.OwnedBySession)
}

func TestARecordThatBreaksARuleIsCorruptAndStays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r map[string]any){
		"unknown key":      func(r map[string]any) { r["extra"] = 1 },
		"no start":         func(r map[string]any) { delete(r, "pidStart") },
		"newer schema":     func(r map[string]any) { r["schema"] = 2 },
		"no token":         func(r map[string]any) { r["processToken"] = "" },
		"generation zero":  func(r map[string]any) { r["generation"] = 0 },
		"pid as text":      func(r map[string]any) { r["pid"] = "1" },
		"time as a number": func(r map[string]any) { r["acquiredAt"] = 1 },
	} {
		dir := newRun(t)
		content := foreign(change)
		write(t, ownerFile(dir), content)
		for _, acquire := range []func(context.Context, string) (*store.Lease, error){dir.Acquire, dir.TakeOver} {
			var corrupt *store.CorruptError
			if _, err := acquire(t.Context(), "s"); !errors.As(err, &corrupt) || read(t, ownerFile(dir)) != content {
				t.Errorf("%s: got %v", name, err)
			}
		}
		repairs, err := dir.ReleaseOwner(t.Context(), false, pinned)
		if err != nil || len(repairs) != 1 || repairs[0].Action != store.RepairSetAside || read(t, repairs[0].KeptAs) != content {
			t.Errorf("%s: repaired %+v, %v", name, repairs, err)
		}
		acquire(t, dir, "s")
	}
}

// A sign of life that is there and tells nothing must not pass for a death.
func TestAnOwnerWhoseSignOfLifeCannotBeReadKeepsItsRunUntilForced(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"not a file": func(path string) error { return os.MkdirAll(path, 0o700) },
		"no sense":   func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
	} {
		dir := newRun(t)
		write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pid"] = deadPID(t) }))
		if err := os.MkdirAll(filepath.Join(dir.Dir, "pilothouse"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := spoil(filepath.Join(dir.Dir, "pilothouse/alive-"+strings.Repeat("f", 32)+".json")); err != nil {
			t.Fatal(err)
		}
		if _, state, err := dir.Owner(); state != store.OwnerUnverifiable || err != nil {
			t.Errorf("%s: got %s, %v", name, state, err)
		}
		refusedFor(t, dir, store.OwnedUnverifiable)
		lease, err := dir.TakeOver(t.Context(), "s")
		if err != nil || lease.Generation != 4 {
			t.Fatalf("%s: got %+v, %v", name, lease, err)
		}
		if released, err := lease.Release(); !released || err != nil {
			t.Errorf("%s: released %v, %v", name, released, err)
		}
	}
}

// The Pi extension makes the file and writes it then; whoever looks in between must
// not tell its user to remove it.
func TestARecordThatIsJustBeingWrittenIsNotCorrupt(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	write(t, ownerFile(dir), "")
	looked := make(chan error, 1)
	go func() {
		_, err := dir.Acquire(t.Context(), "s")
		looked <- err
	}()
	for held := false; !held; { // while it looks it holds the lock of the run
		select {
		case err := <-looked:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		lock := flock.New(filepath.Join(dir.Dir, "pilothouse/run.lock"))
		free, err := lock.TryLock()
		held = !free && err == nil
		_ = lock.Close()
	}
	write(t, ownerFile(dir), foreign(func(map[string]any) {}))
	var owned *store.OwnedError
	if err := <-looked; !errors.As(err, &owned) || owned.Reason != store.OwnedAlive {
		t.Errorf("got %v", err)
	}
}

func TestATakeoverLockLeftByACrashDoesNotBlockForEver(t *testing.T) {
	t.Parallel()
	dead := deadPID(t)
	for name, age := range map[string]time.Duration{"old": time.Hour, "of the future": -time.Hour} {
		dir := newRun(t)
		write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pid"] = dead }))
		write(t, ownerFile(dir)+".lock", "")
		at := time.Now().Add(-age)
		if err := os.Chtimes(ownerFile(dir)+".lock", at, at); err != nil {
			t.Fatal(err)
		}
		if lease := acquire(t, dir, "s"); lease.Generation != 4 {
			t.Errorf("%s: got %+v", name, lease)
		}
	}
}

func TestATakeoverInFlightIsRespected(t *testing.T) {
	t.Parallel()
	dir, dead := newRun(t), deadPID(t)
	write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pid"] = dead }))
	write(t, ownerFile(dir)+".lock", "")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var owned *store.OwnedError
	if _, err := dir.Acquire(ctx, "s"); !errors.As(err, &owned) || owned.Reason != store.OwnedTakeover {
		t.Errorf("got %v", err)
	}
	if read(t, ownerFile(dir)+".lock") != "" {
		t.Error("the lock of another was changed")
	}
}

func TestOfManySessionsExactlyOneAcquires(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	var mu sync.Mutex
	var won []*store.Lease
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			lease, err := dir.Acquire(t.Context(), fmt.Sprint("s", i))
			var owned *store.OwnedError
			if err != nil && !errors.As(err, &owned) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, lease)
			}
		})
	}
	group.Wait()
	if len(won) != 1 || won[0].Assert() != nil {
		t.Fatalf("%d won", len(won))
	}
	if released, err := won[0].Release(); !released || err != nil {
		t.Errorf("got %v, %v", released, err)
	}
}

func TestARunThatIsGoneCannotBeAcquired(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	lease := acquire(t, dir, "s")
	if err := os.RemoveAll(dir.Dir); err != nil {
		t.Fatal(err)
	}
	if released, err := lease.Release(); released || err != nil {
		t.Errorf("got %v, %v", released, err)
	}
	if _, err := dir.Acquire(t.Context(), "s"); !errors.Is(err, store.ErrNoRun) {
		t.Errorf("got %v", err)
	}
}
