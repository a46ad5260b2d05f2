package proc

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrClosed is returned by Start after Close.
var ErrClosed = errors.New("the process spawner is closed")

// MaxDepth is how deep children that start pilothouse again may be nested.
const MaxDepth = 3

// DepthError refuses a start below MaxDepth children of children, so that an
// agent which starts pilothouse again cannot recurse without end.
type DepthError struct {
	// Depth is the value of PILOTHOUSE_DEPTH that the child would have been started from.
	Depth string
}

func (e *DepthError) Error() string {
	return fmt.Sprintf("pilothouse runs inside itself too deep (PILOTHOUSE_DEPTH=%s, at most %d): start this work from outside the agent", e.Depth, MaxDepth)
}

// StartError says in one sentence why a program could not be started.
type StartError struct {
	// Path is the program as asked for.
	Path string
	// Reason is the cause in plain words.
	Reason string
	// Err is the underlying error, usually a syscall.Errno.
	Err error
}

func (e *StartError) Error() string {
	return fmt.Sprintf("cannot start %s: %s", e.Path, e.Reason)
}

func (e *StartError) Unwrap() error { return e.Err }

// Temporary reports whether the cause lies with the machine and not with the
// program, so that the same start may work later: no process, memory,
// descriptor or space to be had, or a program file that is being written.
func (e *StartError) Temporary() bool {
	for _, errno := range []syscall.Errno{
		syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EDQUOT, syscall.ETXTBSY,
	} {
		if errors.Is(e.Err, errno) {
			return true
		}
	}
	return false
}
