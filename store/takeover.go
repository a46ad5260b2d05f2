package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// takeoverStale is the age at which a takeover lock of the Pi extension is left
	// over from a crash: it holds one for milliseconds, and for its 5 s wait for ps at
	// most.
	takeoverStale = 10 * time.Second
	// takeoverPatience lets a lock that is fresh when we come grow stale.
	takeoverPatience = takeoverStale + 5*time.Second
	takeoverPause    = 50 * time.Millisecond
)

// takeoverNote is owner.json.lock.
type takeoverNote struct {
	PID     int    `json:"pid"`
	TakenAt string `json:"takenAt"`
}

func (d RunDir) takeoverPath() string { return d.ownerPath() + ".lock" }

// takeoverNotePath is where our own takeover lock is written before it is linked to
// its name. As long as both names lead to one file the lock is one of pilothouse.
func (d RunDir) takeoverNotePath() string { return filepath.Join(d.Dir, privateName, "takeover.json") }

// withTakeoverLock runs work while owner.json.lock is ours, which keeps the Pi
// extension from taking over at the same time. Among pilothouse processes the lock of
// the run, which is held already, does that. Ours is complete from the first moment,
// so that the extension can tell when its owner is dead.
func (d RunDir) withTakeoverLock(ctx context.Context, record OwnerRecord, work func() error) error {
	ctx, cancel := context.WithTimeout(ctx, takeoverPatience)
	defer cancel()
	if err := d.dropOwnTakeoverLock(); err != nil { // of one of us that was killed here
		return fmt.Errorf("remove left takeover lock: %w", err)
	}
	note, err := json.Marshal(takeoverNote{PID: os.Getpid(), TakenAt: Stamp(time.Now())})
	if err != nil {
		return fmt.Errorf("lock takeover: %w", err)
	}
	if err := WriteFile(d.takeoverNotePath(), append(note, '\n')); err != nil {
		return fmt.Errorf("lock takeover: %w", err)
	}
	for {
		err := os.Link(d.takeoverNotePath(), d.takeoverPath())
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lock takeover: %w", err)
		}
		broken, err := d.breakTakeoverLock()
		if err != nil {
			return fmt.Errorf("remove stale takeover lock: %w", err)
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
	// A lock that stays is known as ours by the next takeover: no reason to fail
	// one that has taken place.
	defer func() { _ = d.dropOwnTakeoverLock() }()
	return work()
}

// dropOwnTakeoverLock removes a takeover lock that a pilothouse made. Whoever made it
// held the lock of the run, which is ours now: it is dead, or it is this process.
func (d RunDir) dropOwnTakeoverLock() error {
	if !d.ownTakeoverLock() {
		return nil
	}
	if err := os.Remove(d.takeoverPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d RunDir) ownTakeoverLock() bool {
	note, noteErr := os.Lstat(d.takeoverNotePath())
	lock, lockErr := os.Lstat(d.takeoverPath())
	return noteErr == nil && lockErr == nil && os.SameFile(note, lock)
}

// breakTakeoverLock takes a stale lock of another program away; false tells that it
// is fresh. It is moved first and looked at again, because between the look and the
// move it may have become another, fresh one, which is then put back.
func (d RunDir) breakTakeoverLock() (bool, error) {
	seen, err := os.Lstat(d.takeoverPath())
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !staleTakeover(seen) {
		return false, nil
	}
	aside := filepath.Join(d.Dir, privateName, "takeover-"+randomHex(4)+".lock")
	if err := os.Rename(d.takeoverPath(), aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, err
	}
	stale, err := d.judgeMoved(aside)
	return stale, errors.Join(err, os.Remove(aside))
}

// judgeMoved looks at a lock that was moved aside by its own age: the number of a
// file that was deleted is given to the next one, so it proves nothing.
func (d RunDir) judgeMoved(aside string) (stale bool, err error) {
	moved, err := os.Lstat(aside)
	if err != nil || staleTakeover(moved) {
		return err == nil, err
	}
	if err := os.Link(aside, d.takeoverPath()); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	return false, nil
}

// staleTakeover tells whether a takeover lock is left over. A time in the future is
// of a clock that was wrong; it must not block for ever.
func staleTakeover(lock fs.FileInfo) bool { return time.Since(lock.ModTime()).Abs() >= takeoverStale }

// TakeoverLock is what is known of an owner.json.lock.
type TakeoverLock struct {
	Path string
	// PID is the process that made it, 0 when the lock does not tell.
	PID int
	// Left tells that nobody is at work under it any more; the next takeover removes it.
	Left bool
}

// TakeoverLock looks at the lock that guards a takeover, and changes nothing. It is
// false when there is none, as nearly always.
func (d RunDir) TakeoverLock() (TakeoverLock, bool, error) {
	info, err := os.Lstat(d.takeoverPath())
	if errors.Is(err, fs.ErrNotExist) {
		return TakeoverLock{}, false, nil
	}
	if err != nil {
		return TakeoverLock{}, false, fmt.Errorf("read takeover lock: %w", err)
	}
	lock := TakeoverLock{Path: d.takeoverPath(), Left: staleTakeover(info)}
	var note takeoverNote
	if data, err := os.ReadFile(lock.Path); err == nil && json.Unmarshal(data, &note) == nil {
		lock.PID = note.PID
		lock.Left = lock.Left || d.ownTakeoverLock() && !inspectProcess(note.PID).exists
	}
	return lock, true, nil
}
