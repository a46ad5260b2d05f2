package supervisor

import (
	"errors"
	"fmt"

	"pilothouse/store"
)

// InputError says what is wrong with a call's input: a flag, a path, an id. It
// is the caller's to mend; nothing was started.
type InputError struct{ Message string }

func (e *InputError) Error() string { return e.Message }

func inputErrorf(format string, args ...any) error {
	return &InputError{fmt.Sprintf(format, args...)}
}

// noRunError says what is wrong with the name of a run, as the caller spells it. It is
// the caller's to mend when there is no such run, and not when it cannot be looked up.
func noRunError(name, runID string, err error) error {
	if errors.Is(err, store.ErrNoRun) || errors.Is(err, store.ErrBadRunID) {
		return inputErrorf("%s %s: %v; `pilothouse runs` lists what there is", name, runID, err)
	}
	return fmt.Errorf("%s %s: %w", name, runID, err)
}

// CancelledError ends a call that was cancelled before its round started.
type CancelledError struct{ Reason string }

func (e *CancelledError) Error() string { return "cancelled before the round started: " + e.Reason }

// LostRunError ends a call whose run's supervisor died. What was acknowledged is
// on disk; the round can be resumed.
type LostRunError struct{ RunID, Reason string }

func (e *LostRunError) Error() string {
	return fmt.Sprintf("the supervisor of run %s is gone: %s; what was stored before is safe, `pilothouse show %s` lists it", e.RunID, e.Reason, e.RunID)
}

// ClosedError refuses a call while the system shuts down.
type ClosedError struct{}

func (*ClosedError) Error() string { return "pilothouse is shutting down; ask again later" }
