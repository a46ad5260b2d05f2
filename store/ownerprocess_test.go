package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func TestAnOwnerInAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	owner := startProcess(t, "own", dir, "theirs")
	if got := owner.answer(t); got != "acquired 1" {
		t.Fatal(got)
	}
	refusedFor(t, dir, store.OwnedAlive, func(owned *store.OwnedError) {
		if owned.PID != owner.Process.Pid || owned.SessionID != "theirs" {
			t.Errorf("got %+v", owned)
		}
	})

	t.Log("its host gets another name")
	host, _ := os.Hostname()
	write(t, ownerFile(dir), strings.Replace(read(t, ownerFile(dir)), host, host+".example.org", 1))
	refusedFor(t, dir, store.OwnedAlive)

	t.Log("it is suspended")
	signal(t, owner, syscall.SIGSTOP)
	refusedFor(t, dir, store.OwnedAlive)

	t.Log("the user takes the run over by force, and it wakes up")
	lease, err := dir.TakeOver(t.Context(), "mine")
	if err != nil || lease.Generation != 2 {
		t.Fatalf("got %+v, %v", lease, err)
	}
	signal(t, owner, syscall.SIGCONT)
	if got := owner.ask(t, "assert"); !strings.Contains(got, "no longer owns") {
		t.Errorf("got %s", got)
	}
	if got := owner.ask(t, "write"); !strings.Contains(got, "no longer owns") {
		t.Errorf("got %s", got)
	}
	if released, err := lease.Release(); !released || err != nil {
		t.Errorf("got %v, %v", released, err)
	}
}

func signal(t testing.TB, p *process, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestTheRunOfAKilledProcessIsTakenOverWithoutCleaning(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	for generation := 1; generation <= 3; generation++ {
		owner := startProcess(t, "own", dir, "theirs")
		if got := owner.answer(t); got != fmt.Sprint("acquired ", generation) {
			t.Fatal(got)
		}
		if _, state, err := dir.Owner(); state != store.OwnerAlive || err != nil {
			t.Errorf("got %s, %v", state, err)
		}
		signal(t, owner, syscall.SIGKILL)
		_ = owner.Wait()
		if _, state, err := dir.Owner(); state != store.OwnerDead || err != nil {
			t.Errorf("got %s, %v", state, err)
		}
	}
	if lease := acquire(t, dir, "mine"); lease.Generation != 4 {
		t.Errorf("got %+v", lease)
	}
	if left, _ := filepath.Glob(filepath.Join(dir.Dir, "pilothouse/alive-*")); len(left) != 1 {
		t.Errorf("signs of life: %v", left)
	}
}

func TestOfManyProcessesExactlyOneTakesOver(t *testing.T) {
	t.Parallel()
	dir, dead := newRun(t), deadPID(t)
	write(t, ownerFile(dir), foreign(func(r map[string]any) { r["pid"] = dead }))
	var processes []*process
	for i := range 6 {
		processes = append(processes, startProcess(t, "own", dir, fmt.Sprint("s", i)))
	}
	answers := map[string]int{}
	for _, p := range processes {
		answers[p.answer(t)]++
	}
	if diff := cmp.Diff(map[string]int{"acquired 4": 1, "refused actively owned": 5}, answers); diff != "" {
		t.Error(diff)
	}
}
