package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// KeptError tells why a run that is old enough is not removed.
type KeptError struct {
	RunID  string
	Reason string
}

func (e *KeptError) Error() string { return fmt.Sprintf("run %s is kept: %s", e.RunID, e.Reason) }

// Prunable tells whether the run is finished and has not changed since then. Finished
// is done or abandoned, but not a run that is done and whose implementation is still
// under review (spec: checkpoint 2.6). An error tells why it must be kept although it
// may be due: *KeptError, *OwnedError for an owner who lives or cannot be judged,
// *CorruptError for a file that cannot be understood.
func (d RunDir) Prunable(since time.Time) (bool, error) {
	due, err := d.finished(since)
	if !due || err != nil {
		return false, err
	}
	record, state, err := d.Owner()
	switch {
	case err != nil:
		return false, err
	case state == OwnerAlive:
		return false, d.owned(record, OwnedAlive)
	case state == OwnerElsewhere:
		return false, d.owned(record, OwnedElsewhere)
	case state == OwnerUnverifiable:
		return false, d.owned(record, OwnedUnverifiable)
	}
	return true, nil
}

func (d RunDir) finished(since time.Time) (bool, error) {
	run, err := d.Load()
	if err != nil {
		return false, err
	}
	cp, err := d.LoadCheckpoint()
	if err != nil && !errors.Is(err, ErrNoCheckpoint) {
		return false, err
	}
	if !run.Status.Terminal() || run.Status == StatusDone && cp.Phase == PhaseImplementationReview {
		return false, nil
	}
	changed, known := ParseStamp(max(run.UpdatedAt, cp.UpdatedAt)) // of one form, so the later one is the larger
	switch {
	case !known:
		return false, &KeptError{d.ID, "it does not tell when it was changed last"}
	case !changed.Before(since):
		return false, nil
	}
	if active, found, err := d.Root.Active(); err != nil {
		return false, err
	} else if found && active.ID == d.ID {
		return false, &KeptError{d.ID, "it is the active run"}
	}
	if info, err := os.Lstat(d.Dir); err != nil || !info.IsDir() {
		return false, &KeptError{d.ID, "its directory is a link"}
	}
	if holds(d.Dir, run.ArtifactDir) || cp.Plan != nil && holds(d.Dir, cp.Plan.Path) {
		return false, &KeptError{d.ID, "its plans lie inside it"}
	}
	return true, nil
}

func holds(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func (r Root) trash() string { return filepath.Join(r.Dir, privateName, "trash") }

// Prune removes the run if it is [RunDir.Prunable] still when it is ours: its
// directory and its transcripts, never its artifact directory. The directory gets
// another name first, which is durable before anything in it is removed: after a
// crash the run is there whole, or gone and what is left of it lies in the trash. It
// is false when there was nothing to do. Errors: those of Prunable and ErrLocked,
// with the run untouched; others when the run is gone and something of it is left.
func (d RunDir) Prune(ctx context.Context, since time.Time) (removed bool, err error) {
	if due, err := d.Prunable(since); !due || err != nil {
		return false, err
	}
	// Whoever removes a run owns it. The session is like no other, so that a run which
	// this process is at work on is refused like that of another.
	lease, err := d.Acquire(ctx, "prune-"+randomHex(8))
	if err != nil {
		return false, err
	}
	due, err := d.finished(since)
	if !due || err != nil {
		_, releaseErr := lease.Release()
		return false, errors.Join(err, releaseErr)
	}
	trashed, err := d.discard()
	if err != nil {
		_, releaseErr := lease.Release()
		return false, fmt.Errorf("remove run %s: %w", d.ID, errors.Join(err, releaseErr))
	}
	if err := errors.Join(lease.drop(), os.RemoveAll(trashed)); err != nil {
		return true, fmt.Errorf("remove what is left of run %s: %w", d.ID, err)
	}
	return true, nil
}

// discard moves the run to the trash and returns where it is there.
func (d RunDir) discard() (string, error) {
	if err := makeBelow(d.Root.Dir, d.Root.trash(), privateDir); err != nil {
		return "", err
	}
	// A cache: it may go though the run stays.
	if err := os.RemoveAll(d.Root.TranscriptDir(d.ID)); err != nil {
		return "", err
	}
	to := filepath.Join(d.Root.trash(), d.ID+"~"+randomHex(4))
	if err := os.Rename(d.Dir, to); err != nil {
		return "", err
	}
	return to, errors.Join(syncDirectory(filepath.Dir(d.Dir)), syncDirectory(d.Root.trash()))
}

// EmptyTrash removes what a crash left of runs that were being removed.
func (r Root) EmptyTrash() error {
	entries, err := os.ReadDir(r.trash())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("empty the trash: %w", err)
	}
	var failures []error
	for _, entry := range entries {
		if id, _, ok := strings.Cut(entry.Name(), "~"); ok && ValidRunID(id) {
			failures = append(failures, os.RemoveAll(filepath.Join(r.trash(), entry.Name())))
		}
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("empty the trash: %w", err)
	}
	return nil
}
