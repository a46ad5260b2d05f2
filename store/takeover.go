package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// takeoverStale is the age at which a takeover lock is left over from a crash: the
	// other program holds it for milliseconds, and for its 5 s wait for ps at most.
	takeoverStale = 10 * time.Second
	// takeoverPatience lets a lock that is fresh when we come grow stale.
	takeoverPatience = takeoverStale + 5*time.Second
	takeoverPause    = 50 * time.Millisecond
)

// withTakeoverLock runs work while owner.json.lock is ours, which keeps the Pi
// extension from taking over at the same time. Among pilothouse processes the lock of
// the run, which is held already, does that. Ours is complete from the first moment,
// so that the extension can tell when its owner is dead.
func (d RunDir) withTakeoverLock(ctx context.Context, record OwnerRecord, work func() error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, takeoverPatience)
	defer cancel()
	path := d.ownerPath() + ".lock"
	for {
		err := CreateFile(path, newTakeoverNote())
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lock takeover: %w", err)
		}
		broken, err := d.breakTakeoverLock(path)
		if err != nil {
			return fmt.Errorf("remove stale takeover lock %s: %w", path, err)
		}
		if broken {
			continue
		}
		select {
		case <-ctx.Done():
			return d.owned(record, OwnedTakeover)
		case <-time.After(takeoverPause):
		}
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	return work()
}

// breakTakeoverLock takes a stale lock away. It is moved first and looked at again,
// because between the look and the move it may have become another, fresh one, which
// is then put back.
func (d RunDir) breakTakeoverLock(path string) (bool, error) {
	seen, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// A time in the future is of a clock that was wrong; it must not block for ever.
	if age := time.Since(seen.ModTime()); age.Abs() < takeoverStale {
		return false, nil
	}
	aside := filepath.Join(d.Dir, privateName, "takeover-"+randomHex(4)+".lock")
	if err := os.Rename(path, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, err
	}
	moved, err := os.Stat(aside)
	if err == nil && !os.SameFile(seen, moved) {
		err = os.Link(aside, path)
		return false, errors.Join(err, os.Remove(aside))
	}
	return true, errors.Join(err, os.Remove(aside))
}
