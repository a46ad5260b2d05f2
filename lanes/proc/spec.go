package proc

import (
	"log/slog"
	"time"
)

// Options of a Spawner.
type Options struct {
	// NoCgroup keeps children out of cgroups of their own even where one is writable.
	NoCgroup bool
	// StateDir is the folder that holds one record for each live child, for
	// Sweep. It is made when missing. Empty means that nothing is recorded.
	StateDir string
	// Turn is called before the tree of a child that has ended is swept, and before its
	// group and record are removed, what it returns after that. It may wait, so that many
	// children that end at the same moment leave the machine to others. Nil does not.
	Turn func() (end func())
	// Logger gets warnings about safety nets that could not be set up or that
	// found something. Nil discards them.
	Logger *slog.Logger
}

// Defaults of a Spec.
const (
	DefaultGrace      = 5 * time.Second
	DefaultStderrTail = 64 << 10
)

// Spec says what to start.
type Spec struct {
	// Path of the program. A name without a slash is looked up on the PATH of
	// Env; a relative path is taken from Dir.
	Path string
	// Args are the arguments after the program's own name.
	Args []string
	// Dir is the working directory; empty means the orchestrator's.
	Dir string
	// Env is the whole environment of the child, "KEY=value" each; nothing is
	// inherited from the orchestrator. The Spawner adds or replaces
	// PILOTHOUSE_LANE, PILOTHOUSE_DEPTH, GIT_TERMINAL_PROMPT and, when Dir is set, PWD.
	Env []string
	// Label names the child in its environment marker and its record, for people.
	Label string
	// Grace is the time between TERM and KILL; 0 means DefaultGrace.
	Grace time.Duration
	// StderrTail is how many of the last bytes of stderr are kept; 0 means DefaultStderrTail.
	StderrTail int
}

func (s Spec) withDefaults() Spec {
	if s.Grace <= 0 {
		s.Grace = DefaultGrace
	}
	if s.StderrTail <= 0 {
		s.StderrTail = DefaultStderrTail
	}
	return s
}

// Steps that appear in Exit.Ladder.
const (
	StepTerm  = "term"  // SIGTERM went to the process group
	StepKill  = "kill"  // the whole tree was killed while the child was still running
	StepSweep = "sweep" // something of the tree outlived the child and was killed
)

// Exit is how a child ended.
type Exit struct {
	// Code is the exit status, 128 plus the signal's number for a child ended by
	// a signal (as a shell shows it), and -1 when it is not known. A child ended
	// by a signal never reads as success.
	Code int
	// Signal is the name of the signal that ended the child ("SIGKILL"), or empty.
	Signal string
	// Ladder holds the steps that were taken to end the tree, in order.
	Ladder []string
	// Stderr is the tail of what the child wrote to stderr, as valid UTF-8.
	Stderr string
	// StderrBytes counts all bytes that came on stderr.
	StderrBytes int64
	// Swept counts the processes that outlived the child and were ended.
	Swept int
	// Leaked is true when something of the tree could not be ended: the child
	// itself did not die of SIGKILL in time, or a process that could not be
	// found still holds its output.
	Leaked bool
	// Started and Ended carry monotonic readings; Ended is taken when the child
	// itself was seen to have exited.
	Started, Ended time.Time
}

// Identity names a process beyond reuse of its number.
type Identity struct {
	// PID is the process number, 0 while it is not known yet.
	PID int `json:"pid"`
	// StartTicks is the start time in the kernel's own unit: clock ticks since
	// boot on Linux, microseconds since the epoch on macOS.
	StartTicks uint64 `json:"startTicks"`
	// BootID names the boot; numbers of another boot mean nothing.
	BootID string `json:"bootId"`
	// PIDNamespace names the namespace that PID belongs to.
	PIDNamespace string `json:"pidNamespace"`
	// Nonce is the random part of the child's environment marker.
	Nonce string `json:"nonce,omitempty"`
	// Cgroup is the folder of the child's own cgroup, empty without one.
	Cgroup string `json:"cgroup,omitempty"`
}
