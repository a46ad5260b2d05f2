package actors

import "fmt"

// Modes of a role (seed: Config Schema).
const (
	ModeDelegated      = "delegated-subagent"
	ModeCurrentSession = "current-session"
)

// Setting is what the workspace has decided about a role.
type Setting struct {
	Role      Role // whose setting it is: Reviewer or Criticizer
	Mode      string
	Model     string // confirmed selector, "" inherits
	Confirmed bool   // the user has answered the model question once
}

// Gate names the question that must be answered before a round may run.
type Gate string

// The gates of refine and analyze_refs, in their order (spec: subagents 4.1).
const (
	GateMode           Gate = "mode"
	GateCurrentSession Gate = "current-session"
	GateModel          Gate = "model"
)

// GateError refuses a round. Its text tells a person or a model what to do.
type GateError struct {
	Gate Gate
	Role Role
}

func (e *GateError) Error() string {
	switch e.Gate {
	case GateMode:
		return fmt.Sprintf("the %[1]s mode is missing or invalid: ask once whether the %[1]s runs as a delegated subagent (recommended) or in the current session, "+
			"then set it with `plans set-role --role %[1]s --mode delegated-subagent|current-session`", e.Role)
	case GateCurrentSession:
		return fmt.Sprintf("references are analysed by spawned lanes only, but the %[1]s mode is current-session: "+
			"switch it with `plans set-role --role %[1]s --mode delegated-subagent`", e.Role)
	default:
		return fmt.Sprintf("the %[1]s model was never confirmed: ask once whether to inherit the main model (recommended) or to use an exact provider/model, "+
			"then set it with `plans set-role --role %[1]s --confirmed true --modelSelector inherit|provider/model`, or answer for this call with --model", e.Role)
	}
}

// CheckReview applies the gates of refine. answered is true when the call itself
// answers the model question.
func (s Setting) CheckReview(answered bool) error {
	switch {
	case s.Mode != ModeDelegated && s.Mode != ModeCurrentSession:
		return &GateError{GateMode, s.Role}
	case !s.Confirmed && !answered:
		return &GateError{GateModel, s.Role}
	}
	return nil
}

// CheckAnalysis applies the gates of analyze_refs, which borrows the reviewer's
// setting and cannot run in the current session.
func (s Setting) CheckAnalysis(answered bool) error {
	switch {
	case s.Mode == ModeCurrentSession:
		return &GateError{GateCurrentSession, s.Role}
	case s.Mode != ModeDelegated:
		return &GateError{GateMode, s.Role}
	case !s.Confirmed && !answered:
		return &GateError{GateModel, s.Role}
	}
	return nil
}
