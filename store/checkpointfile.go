package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

var (
	// ErrNoCheckpoint tells that a run has no checkpoint.
	ErrNoCheckpoint = errors.New("the run has no checkpoint")
	// ErrCheckpointExists tells that a run has its checkpoint already.
	ErrCheckpointExists = errors.New("the run has a checkpoint already")
	// ErrStale tells that the checkpoint is at another revision than expected.
	ErrStale = errors.New("the checkpoint was changed meanwhile")
)

func (d RunDir) checkpointPath() string { return d.path("checkpoint.json") }

// LoadCheckpoint reads the checkpoint. Errors: ErrNoCheckpoint, *CorruptError.
func (d RunDir) LoadCheckpoint() (Checkpoint, error) {
	var checkpoint Checkpoint
	err := readDocument(d.checkpointPath(), &checkpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, fmt.Errorf("%w: %s", ErrNoCheckpoint, d.ID)
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	if checkpoint.RunID != d.ID {
		return Checkpoint{}, &CorruptError{Path: d.checkpointPath(), Reason: "runId names another run, " + checkpoint.RunID}
	}
	return checkpoint, nil
}

// CreateCheckpoint writes the first checkpoint of a run: revision 1, planning.
// Errors: ErrCheckpointExists, ErrNoRun.
func (d RunDir) CreateCheckpoint(now time.Time) (Checkpoint, error) {
	checkpoint := Checkpoint{
		Schema: 1, RunID: d.ID, Revision: 1, Generation: 1, UpdatedAt: Stamp(now),
		Phase: PhasePlanning, NextAction: ActionContinuePlanning,
		OriginWorkdir: d.Root.Workdir, Workdir: d.Root.Workdir,
		WorktreeRoot: d.Root.Worktree, CommonDir: d.Root.CommonDir,
		AnsweredQuestions: []AnsweredQuestion{}, ReviewRounds: []ReviewRound{},
	}
	if err := checkpoint.Validate(); err != nil {
		return Checkpoint{}, fmt.Errorf("create checkpoint: %w", err)
	}
	data, err := encodeDocument(checkpoint)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("create checkpoint: %w", err)
	}
	err = CreateFile(d.checkpointPath(), data)
	switch {
	case errors.Is(err, fs.ErrExist):
		return Checkpoint{}, fmt.Errorf("%w: %s", ErrCheckpointExists, d.ID)
	case errors.Is(err, fs.ErrNotExist):
		return Checkpoint{}, d.missing()
	case err != nil:
		return Checkpoint{}, fmt.Errorf("create checkpoint: %w", err)
	}
	return checkpoint, nil
}

// MutateCheckpoint applies the changes to the checkpoint in order and makes them
// durable in one write, all or none. It holds the lock of the run, so that neither
// another writer nor a takeover comes between the check of the owner and the write.
//
// The lease fences the write; with nil the lease this process holds, if any, does.
// A nil revision expects none. The result is what is on disk: when every change
// returned ErrNoChange that is what was there, at its old revision.
//
// Errors: the first of a change, ErrNoCheckpoint, *CorruptError, ErrStale,
// *LostOwnerError, *InvalidError when the result breaks a rule of the format.
func (d RunDir) MutateCheckpoint(lease *Lease, expectRevision *int, now time.Time, changes ...Change) (Checkpoint, error) {
	var result Checkpoint
	err := d.locked(context.Background(), func() error {
		checkpoint, err := d.LoadCheckpoint()
		if err != nil {
			return err
		}
		if expectRevision != nil && checkpoint.Revision != *expectRevision {
			return fmt.Errorf("%w: revision %d, expected %d", ErrStale, checkpoint.Revision, *expectRevision)
		}
		generation, err := d.fence(lease, checkpoint.Generation)
		if err != nil {
			return err
		}
		next := checkpoint.Clone()
		changed := false
		for _, change := range changes {
			err := change(&next)
			if err != nil && !errors.Is(err, ErrNoChange) {
				return err
			}
			changed = changed || err == nil
		}
		if result = checkpoint; !changed {
			return nil
		}
		next.Revision = checkpoint.Revision + 1
		next.Generation = max(generation, next.Generation)
		next.UpdatedAt = Stamp(now)
		if err := d.writeCheckpoint(next); err != nil {
			return err
		}
		result = next
		return nil
	})
	if err != nil {
		return Checkpoint{}, err
	}
	return result, nil
}

// fence checks that the lease still counts, and returns the generation to write: it
// never goes down.
func (d RunDir) fence(lease *Lease, generation int) (int, error) {
	if lease == nil {
		lease = heldLease(d)
	}
	if lease == nil {
		return generation, nil
	}
	if lease.place != d.place() {
		return 0, &LostOwnerError{RunID: d.ID, Reason: "the lease is of run " + lease.run.ID}
	}
	if err := lease.Assert(); err != nil {
		return 0, err
	}
	return max(generation, lease.Generation), nil
}

// assertHeld refuses a write when this process held the run and has lost it.
func (d RunDir) assertHeld() error {
	_, err := d.fence(nil, 1)
	return err
}

func (d RunDir) writeCheckpoint(checkpoint Checkpoint) error {
	if err := checkpoint.Validate(); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if checkpoint.RunID != d.ID {
		return fmt.Errorf("write checkpoint: %w", invalid("runId", "names another run"))
	}
	if err := writeDocument(d.checkpointPath(), checkpoint); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}
