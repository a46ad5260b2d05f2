package supervisor

import (
	"pilothouse/actors"
	"pilothouse/lanes"
)

// Session is who asks: what a call needs to know of the Pi session or command
// line it comes from.
type Session struct {
	// ID of the Pi session, "" for a command line.
	ID string
	// Workdir is the directory that relative paths of the call start from.
	Workdir string
	// Environ is the environment that children get. It stays in memory.
	Environ []string
	// Pi names the command that starts pi, "" for `pi` on the PATH.
	Pi string
	// Model is what the session itself works with, as a selector: what a role that
	// inherits gets (spec: subagents 4.1). "" leaves it to pi.
	Model string
	// PID is the process that asks in the name of the session, 0 when it is not known.
	PID int
}

// ModelAnswer answers the model question for one call. The zero value leaves
// it to the workspace's setting.
type ModelAnswer struct {
	Answered bool
	Selector string // provider/model; "" inherits
}

// RefineRequest asks for one refine round (spec: subagents 4.1).
type RefineRequest struct {
	Session
	PlanPath string // relative to Workdir; a leading @ is dropped
	// Role, Target, Reviewers, Focus and Context of a new round. A resumed
	// round keeps its own; fields that are set must agree with it.
	Role      actors.Role
	Target    string
	Reviewers int
	Focus     string
	Context   string
	Model     ModelAnswer
	// RunID names the run; "" finds the run that the plan belongs to or starts one.
	RunID string
	// ResumeRoundID continues a round: only lanes that are not complete run.
	ResumeRoundID string
	Limits        lanes.Limits
}

// AnalyzeRequest asks for one analyze_refs round (spec: subagents 4.2).
type AnalyzeRequest struct {
	Session
	// Refs have their LocalPath relative to Workdir. A resumed round keeps its own; those
	// that are named must be the same.
	Refs    []actors.Reference
	Context string
	Model   ModelAnswer
	// ResumeRoundID continues a round: only lanes that are not complete run.
	ResumeRoundID string
	Limits        lanes.Limits
}

// RoundStarted is the first thing that a caller hears of its round.
type RoundStarted struct {
	RunID   string
	RoundID string
	Role    actors.Role
	Model   string // requested, "" inherits
	Lanes   []actors.Lane
	Reused  []string // ids of lanes whose answers are taken over
	Notices []string
}

// LaneEnded reports one lane while others still work. The answer is durable.
type LaneEnded struct{ Lane LaneResult }

// Watch receives what happens during a call: RoundStarted, lanes.Progress and
// LaneEnded values, one at a time and in order.
type Watch func(event any)
