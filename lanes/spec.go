package lanes

import (
	"time"

	"pilothouse/lanes/pijson"
)

// Spec says what one lane has to do. It is plain data: it can be written down,
// sent elsewhere and read back. Secrets (the environment) are not in it; they
// stay with the [Host].
type Spec struct {
	// ID is unique in its round: "general", "correctness", "ref-3", …
	ID string `json:"laneId"`
	// Name is the child's name in ledgers and logs.
	Name string `json:"name"`
	// Role is what the lane is for; it labels metrics and traces and decides nothing.
	Role string `json:"role,omitempty"`
	// Dir is the child's working directory, absolute.
	Dir string `json:"dir"`
	// Model is an exact provider/model selector; empty inherits what pi chooses.
	Model string `json:"model,omitempty"`
	// Tools the child may use. A tool outside the list fails the lane.
	Tools []string `json:"tools"`
	// SystemPrompt is appended to pi's own system prompt.
	SystemPrompt string `json:"systemPrompt"`
	// Task is the user message. It travels on stdin, never in argv.
	Task string `json:"task"`
	// Transcript is the file that what the lane says and does is appended to, as
	// JSON lines of [TranscriptEntry]; "" keeps none.
	Transcript string `json:"transcript,omitempty"`
	// Limits bound the lane; zero fields take the defaults.
	Limits Limits `json:"limits"`
}

// Status is where a lane stands. The last three are terminal and never change.
type Status string

// The states of a lane, in the order in which it can go through them.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Complete  Status = "complete"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Terminal reports whether s is an end state.
func (s Status) Terminal() bool {
	return s == Complete || s == Failed || s == Cancelled
}

// Failure says why a lane is not complete.
type Failure struct {
	// Class decides what can be done about it (see pijson.Class).
	Class pijson.Class `json:"class"`
	// Message is one plain sentence; a provider's own words are kept in it.
	Message string `json:"message"`
}

// Exit is how the last child of a lane ended. It is recorded beside the
// verdict, it does not make it: the event stream decides.
type Exit struct {
	// Code is nil when no child was started or a signal ended it.
	Code *int `json:"code"`
	// Signal is the name of the signal that ended the child, "" if none did.
	Signal string `json:"signal,omitempty"`
}

// Result is the one terminal record of a lane.
type Result struct {
	LaneID   string        `json:"laneId"`
	Status   Status        `json:"status"`
	Attempts int           `json:"attempts"`
	Model    string        `json:"model,omitempty"` // as the child reported it
	Usage    pijson.Usage  `json:"usage"`           // of all attempts, failed ones too
	Turns    int           `json:"turns"`
	Duration time.Duration `json:"duration"` // from the first start to the end, waits between attempts included, for places not
	Exit     Exit          `json:"exit"`
	Error    *Failure      `json:"error,omitempty"` // nil iff complete
	Output   string        `json:"output"`          // the answer; partial text when not complete
	Stderr   string        `json:"stderr,omitempty"`
	Notes    []string      `json:"notes,omitempty"`
	// Started is the wall-clock time of the first attempt; zero if none was made.
	Started time.Time `json:"started"`
}

// Phases that are not told by a child.
const (
	// PhaseQueued is the phase of a lane that waits for a place for its next child. It
	// is [Queued] meanwhile, before its first attempt and between two.
	PhaseQueued = "waiting for a free place"
	// PhaseStarting is the phase of a lane until the first event of its child.
	PhaseStarting = "starting"
)

// Progress is a snapshot of a lane at work, at most ten a second.
type Progress struct {
	LaneID  string        `json:"laneId"`
	Status  Status        `json:"status"`
	Phase   string        `json:"phase"` // starting, thinking, responding, "tool: read", …
	Tool    string        `json:"tool,omitempty"`
	Attempt int           `json:"attempt"`
	Turns   int           `json:"turns"`
	Usage   pijson.Usage  `json:"usage"`
	Model   string        `json:"model,omitempty"`
	Elapsed time.Duration `json:"elapsed"` // since the lane's first attempt, waits for places not counted
	// Warning says that a budget of the lane is nearly used up, "" while none is.
	Warning string `json:"warning,omitempty"`
}
