package main

import (
	"errors"

	"pilothouse/actors"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// Exit status of every command (design: the command line).
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitOwned       = 4
	exitInterrupted = 130
)

// usageError is a mistake in the words of a command line.
type usageError struct{ error }

// refusedError tells that only a person may decide, and that none has.
type refusedError struct{ error }

// statusError ends a command with a status of its own; its text has been shown.
type statusError struct{ status int }

func (*statusError) Error() string { return "" }

// exitStatus maps what went wrong to the status that scripts decide on.
func exitStatus(err error) int {
	var (
		status  *statusError
		usage   *usageError
		input   *supervisor.InputError
		gate    *actors.GateError
		phase   *store.StateError
		owned   *store.OwnedError
		stopped *supervisor.CancelledError
		refused *refusedError
		handoff *supervisor.ApprovalError
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return status.status
	case errors.As(err, &stopped):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &input):
		return exitUsage
	case errors.As(err, &gate), errors.As(err, &phase), errors.As(err, &refused), errors.As(err, &handoff):
		return exitRefused
	case errors.As(err, &owned):
		return exitOwned
	default:
		return exitFailed
	}
}
