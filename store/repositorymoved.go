package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// MovedError tells that the state somebody works in is not where it was: the
// repository was moved, replaced by another clone, or removed. Nothing is written and
// no directory is made at the old place (faults F91). For a run it is a
// *LostOwnerError too, because whoever held it must stop, and matches ErrNoRun.
type MovedError struct {
	RunID string // "" for rounds that belong to no run
	// Dir is the directory that is gone or another one now.
	Dir string
}

func (e *MovedError) Error() string {
	if e.RunID == "" {
		return e.reason()
	}
	return e.lost().Error()
}

func (e *MovedError) reason() string {
	return fmt.Sprintf("the repository was moved, replaced or removed (%s is gone or another directory now); "+
		"start again in the repository where it is now", e.Dir)
}

func (e *MovedError) lost() *LostOwnerError {
	return &LostOwnerError{RunID: e.RunID, Reason: e.reason()}
}

// Unwrap makes the error one of a lease that is lost and of a run that is not there.
func (e *MovedError) Unwrap() []error { return []error{e.lost(), ErrNoRun} }

// here tells whether the run is still in the directory where the lease was taken: a
// moved repository or a new clone in its place has no such directory, and a copy has
// another file as the sign of life than the one that is open here. A sign of life
// that somebody deleted proves nothing; then the owner record decides.
func (l *Lease) here() error {
	if l.alive == nil { // adopted from a program that shows no sign of life
		return nil
	}
	taken, err := l.alive.Stat()
	if err != nil {
		return nil // given back; the owner record decides
	}
	found, err := os.Stat(l.alive.Path())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(l.run.Dir)
		found = taken
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open run: %w", err)
	case err != nil || !os.SameFile(taken, found):
		return &MovedError{RunID: l.run.ID, Dir: l.run.Dir}
	}
	return nil
}
