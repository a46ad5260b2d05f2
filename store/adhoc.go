package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A round that belongs to no run has an owner of its own, who is judged like that of
// a run. Its directory is there from before the round's record to after its end, so
// the rounds at work, and those that a crash cut off, are found without reading all.

func (d RoundDir) working() string { return filepath.Join(d.Dir, "working") }

func (d RoundDir) ownedRound(roundID string) RunDir {
	return RunDir{ID: roundID, Dir: filepath.Join(d.working(), roundID)}
}

// Occupy makes this process the owner of a round that belongs to no run, until
// [RoundDir.Vacate]. Errors: *OwnedError when another process works on it.
func (d RoundDir) Occupy(ctx context.Context, roundID string) (*Lease, error) {
	if !ValidID(roundID) {
		return nil, fmt.Errorf("%w: %q", ErrNoRound, roundID)
	}
	round := d.ownedRound(roundID)
	if err := d.make(round.Dir); err != nil {
		return nil, fmt.Errorf("occupy round %s: %w", roundID, err)
	}
	return round.Acquire(ctx, roundID)
}

// Vacate gives an occupied round back; it is over.
func (d RoundDir) Vacate(lease *Lease) error {
	if _, err := lease.Release(); err != nil {
		return fmt.Errorf("vacate round %s: %w", lease.run.ID, err)
	}
	if err := os.RemoveAll(lease.run.Dir); err != nil {
		return fmt.Errorf("vacate round %s: %w", lease.run.ID, err)
	}
	return nil
}

// Occupant tells what can be said of the owner of a round that belongs to no run. A
// round that nobody works on has none.
func (d RoundDir) Occupant(roundID string) (OwnerState, error) {
	_, state, err := d.ownedRound(roundID).Owner()
	return state, err
}

// Abandoned lists the rounds whose owners died before they gave them back. Rounds
// with an owner that lives or cannot be judged are not among them.
func (d RoundDir) Abandoned() ([]string, error) {
	entries, err := os.ReadDir(d.working())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list rounds at work: %w", err)
	}
	var abandoned []string
	for _, entry := range entries {
		if !ValidID(entry.Name()) {
			continue
		}
		if state, err := d.Occupant(entry.Name()); err == nil && state == OwnerDead {
			abandoned = append(abandoned, entry.Name())
		}
	}
	return abandoned, nil
}
