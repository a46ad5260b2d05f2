package store_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"pilothouse/store"
)

func TestARoundWithoutARunHasAnOwnerFromItsBeginningToItsEnd(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	rounds := dir.Root.AdHoc()
	if _, err := rounds.Occupy(t.Context(), "../x"); !errors.Is(err, store.ErrNoRound) {
		t.Errorf("got %v", err)
	}
	lease, err := rounds.Occupy(t.Context(), "refs-r1")
	if err != nil {
		t.Fatal(err)
	}
	if state, err := rounds.Occupant("refs-r1"); state != store.OwnerAlive || err != nil {
		t.Errorf("at work: %v, %v", state, err)
	}
	if all, err := rounds.Abandoned(); len(all) != 0 || err != nil {
		t.Errorf("at work: %v, %v", all, err)
	}
	if err := rounds.Vacate(lease); err != nil {
		t.Fatal(err)
	}
	if state, err := rounds.Occupant("refs-r1"); state != store.OwnerNone || err != nil {
		t.Errorf("at its end: %v, %v", state, err)
	}
	if left := list(t, filepath.Join(rounds.Dir, "working")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestARoundWithoutARunIsAbandonedWhenItsOwnerDies(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	rounds := dir.Root.AdHoc()
	for _, round := range []string{"refs-r1", "refs-r2"} {
		owner := startProcess(t, "occupy", dir, round)
		if got := owner.answer(t); got != "occupied" {
			t.Fatal(got)
		}
		if round == "refs-r2" {
			continue // lives on
		}
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = owner.Wait()
	}
	all, err := rounds.Abandoned()
	if !slices.Equal(all, []string{"refs-r1"}) || err != nil {
		t.Errorf("got %v, %v", all, err)
	}
	var owned *store.OwnedError
	if _, err := rounds.Occupy(t.Context(), "refs-r2"); !errors.As(err, &owned) {
		t.Errorf("a round at work was taken: %v", err)
	}
	lease, err := rounds.Occupy(t.Context(), "refs-r1")
	if err != nil || lease.Generation != 2 {
		t.Fatalf("got %+v, %v", lease, err)
	}
	if err := rounds.Vacate(lease); err != nil {
		t.Error(err)
	}
	if all, err := rounds.Abandoned(); len(all) != 0 || err != nil {
		t.Errorf("closed: %v, %v", all, err)
	}
}
