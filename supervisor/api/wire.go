package api

import (
	"encoding/json"
	"path/filepath"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// Protocol counts incompatible changes of what travels over the socket. Client and
// server must have the same.
const Protocol = 1

// Tools that a call can be of.
const (
	ToolRefine      = "refine"
	ToolAnalyzeRefs = "analyze_refs"
	ToolPlans       = "plans"
)

// Health is what a daemon says of itself.
type Health struct {
	Version  string    `json:"version"`
	Protocol int       `json:"protocol"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Stopping bool      `json:"stopping"`
	Calls    CallCount `json:"calls"`
	Lanes    LaneCount `json:"lanes"`
}

// CallCount counts calls by what they wait for.
type CallCount struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"` // for an acknowledgement of their result
}

// LaneCount counts the lanes of running calls that have not ended.
type LaneCount struct {
	Running int `json:"running"`
	Queued  int `json:"queued"`
}

// Session is who makes a call. Environ, the environment that children get, stays in
// the daemon's memory: it is in no file, log or listing.
type Session struct {
	ID      string   `json:"id,omitempty"`
	Workdir string   `json:"workdir"` // absolute
	Environ []string `json:"environ"`
	Pi      string   `json:"pi,omitempty"`
	Model   string   `json:"model,omitempty"` // the session's own, as a selector: what roles inherit
}

// CallRequest starts a call, or joins the one of that id.
type CallRequest struct {
	// ID is the client's choice; "" lets the daemon choose.
	ID      string          `json:"id,omitempty"`
	Tool    string          `json:"tool"`
	Session Session         `json:"session"`
	Params  json.RawMessage `json:"params"`
}

// RefineParams are the parameters of the refine tool (spec: subagents 4.1).
type RefineParams struct {
	PlanPath      string       `json:"planPath"`
	Role          actors.Role  `json:"role,omitempty"`
	Target        string       `json:"target,omitempty"`
	Reviewers     int          `json:"reviewers,omitempty"`
	Focus         string       `json:"focus,omitempty"`
	Context       string       `json:"context,omitempty"`
	Model         *string      `json:"model,omitempty"` // "inherit" or provider/model; absent leaves it to the workspace
	RunID         string       `json:"runId,omitempty"`
	ResumeRoundID string       `json:"resumeRoundId,omitempty"`
	Limits        lanes.Limits `json:"limits,omitzero"`
}

// AnalyzeParams are the parameters of the analyze_refs tool (spec: subagents 4.2).
type AnalyzeParams struct {
	Refs          []actors.Reference `json:"refs,omitempty"`
	Context       string             `json:"context,omitempty"`
	Model         *string            `json:"model,omitempty"`
	ResumeRoundID string             `json:"resumeRoundId,omitempty"`
	Limits        lanes.Limits       `json:"limits,omitzero"`
}

// inherit is how the model question is answered without a selector.
const inherit = "inherit"

func modelOf(answer supervisor.ModelAnswer) *string {
	if !answer.Answered {
		return nil
	}
	selector := answer.Selector
	if selector == "" {
		selector = inherit
	}
	return &selector
}

func answerOf(model *string) (supervisor.ModelAnswer, error) {
	switch {
	case model == nil:
		return supervisor.ModelAnswer{}, nil
	case *model == inherit:
		return supervisor.ModelAnswer{Answered: true}, nil
	}
	if err := supervisor.CheckSelector(*model); err != nil {
		return supervisor.ModelAnswer{}, inputErrorf("model %q: %v", *model, err)
	}
	return supervisor.ModelAnswer{Answered: true, Selector: *model}, nil
}

func refineParams(req supervisor.RefineRequest) RefineParams {
	return RefineParams{
		PlanPath: req.PlanPath, Role: req.Role, Target: req.Target, Reviewers: req.Reviewers, Focus: req.Focus, Context: req.Context,
		Model: modelOf(req.Model), RunID: req.RunID, ResumeRoundID: req.ResumeRoundID, Limits: req.Limits,
	}
}

func (p RefineParams) request(session supervisor.Session) (supervisor.RefineRequest, error) {
	model, err := answerOf(p.Model)
	return supervisor.RefineRequest{
		Session: session, PlanPath: p.PlanPath, Role: p.Role, Target: p.Target, Reviewers: p.Reviewers, Focus: p.Focus, Context: p.Context,
		Model: model, RunID: p.RunID, ResumeRoundID: p.ResumeRoundID, Limits: p.Limits,
	}, err
}

func (p AnalyzeParams) request(session supervisor.Session) (supervisor.AnalyzeRequest, error) {
	model, err := answerOf(p.Model)
	return supervisor.AnalyzeRequest{Session: session, Refs: p.Refs, Context: p.Context, Model: model, ResumeRoundID: p.ResumeRoundID, Limits: p.Limits}, err
}

// sessionOf is a session as the daemon needs it. What a relative path in the command
// for pi means depends on where the client was started, so it is resolved here; words
// that cannot be are sent as they are, and refused there as they would be here.
func sessionOf(s supervisor.Session) Session {
	wire := Session{ID: s.ID, Workdir: s.Workdir, Environ: s.Environ, Pi: s.Pi, Model: s.Model}
	if abs, err := filepath.Abs(s.Workdir); err == nil {
		wire.Workdir = abs
	}
	if s.Pi == "" {
		return wire
	}
	command, err := lanes.ParseCommand(s.Pi, s.Environ)
	if err != nil {
		return wire
	}
	words, err := syntax.Quote(command.Path, syntax.LangBash)
	for _, arg := range command.Args {
		quoted, failed := syntax.Quote(arg, syntax.LangBash)
		if failed != nil {
			err = failed
		}
		words += " " + quoted
	}
	if err == nil { // only a NUL byte cannot be quoted, and no command has one
		wire.Pi = words
	}
	return wire
}

func (s Session) session() supervisor.Session {
	return supervisor.Session{ID: s.ID, Workdir: s.Workdir, Environ: s.Environ, Pi: s.Pi, Model: s.Model}
}

func (s Session) check() error {
	switch {
	case s.ID != "" && !store.ValidID(s.ID):
		return inputErrorf("session.id %.80q is no id: up to 128 letters, digits, dots, dashes and underscores, the first a letter or digit", s.ID)
	case !filepath.IsAbs(s.Workdir):
		return inputErrorf("session.workdir %.200q is not an absolute path", s.Workdir)
	}
	if s.Model != "" {
		if err := supervisor.CheckSelector(s.Model); err != nil {
			return inputErrorf("session.model %.200q: %v", s.Model, err)
		}
	}
	return nil
}

// State is where a call stands.
type State string

// The states of a call. A finished or lost call waits for its acknowledgement.
const (
	StateRunning   State = "running"
	StateFinished  State = "finished"  // with a result or a problem
	StateLost      State = "lost"      // the daemon died while it worked on it
	StateDelivered State = "delivered" // acknowledged
)

// Call describes a call.
type Call struct {
	ID      string `json:"id"`
	Tool    string `json:"tool"`
	Session string `json:"session"` // id, "" for a command line
	Workdir string `json:"workdir"`
	State   State  `json:"state"`
	// RunID and RoundID of the round, once it has started.
	RunID     string    `json:"runId,omitempty"`
	RoundID   string    `json:"roundId,omitempty"`
	Created   time.Time `json:"created"`
	Ended     time.Time `json:"ended,omitzero"`
	Delivered time.Time `json:"delivered,omitzero"`
}

// CallDetail is a call with what came of it while it waits for its acknowledgement.
type CallDetail struct {
	Call
	Result  json.RawMessage `json:"result,omitempty"`
	Problem *Problem        `json:"problem,omitempty"`
}

// Types of an [Event], in the order in which they can come.
const (
	EventAccepted = "accepted"
	EventStarted  = "started"
	EventProgress = "progress" // superseded ones are left out
	EventLane     = "lane"     // the end of a lane, once it is durable
	EventResult   = "result"   // the last
	EventProblem  = "problem"  // the last
)

// Event is a line of the stream of a call.
type Event struct {
	Seq      int64                  `json:"seq"` // rises within a call, with gaps
	Call     string                 `json:"call"`
	Type     string                 `json:"type"`
	Started  *Started               `json:"started,omitempty"`
	Progress *Progress              `json:"progress,omitempty"`
	Lane     *supervisor.LaneResult `json:"lane,omitempty"`
	Result   json.RawMessage        `json:"result,omitempty"` // the tool's result object
	Problem  *Problem               `json:"problem,omitempty"`
}

// last tells that nothing follows an event.
func (e Event) last() bool { return e.Type == EventResult || e.Type == EventProblem }

// Started announces a round.
type Started struct {
	RunID   string        `json:"runId"`
	RoundID string        `json:"roundId"`
	Role    actors.Role   `json:"role"`
	Model   string        `json:"model,omitempty"` // requested; absent inherits
	Lanes   []PlannedLane `json:"lanes"`
	Reused  []string      `json:"reused,omitempty"`
	Notices []string      `json:"notices,omitempty"`
}

// PlannedLane is a lane of a round that has started.
type PlannedLane struct {
	LaneID string `json:"laneId"`
	Name   string `json:"name"`
	Lens   string `json:"lens,omitempty"`
	RefID  string `json:"refId,omitempty"`
	Batch  int    `json:"batch"`
}

func startedOf(m supervisor.RoundStarted) *Started {
	s := &Started{RunID: m.RunID, RoundID: m.RoundID, Role: m.Role, Model: m.Model, Reused: m.Reused, Notices: m.Notices, Lanes: []PlannedLane{}}
	for _, lane := range m.Lanes {
		planned := PlannedLane{LaneID: lane.Spec.ID, Name: lane.Spec.Name, Lens: lane.Lens, Batch: lane.Batch}
		if lane.Ref != nil {
			planned.RefID = lane.Ref.ID
		}
		s.Lanes = append(s.Lanes, planned)
	}
	return s
}

// watched is the announcement as a [supervisor.Watch] gets it. Briefs and limits of
// the lanes stay in the daemon.
func (s *Started) watched() supervisor.RoundStarted {
	m := supervisor.RoundStarted{RunID: s.RunID, RoundID: s.RoundID, Role: s.Role, Model: s.Model, Reused: s.Reused, Notices: s.Notices}
	for _, planned := range s.Lanes {
		lane := actors.Lane{Spec: lanes.Spec{ID: planned.LaneID, Name: planned.Name}, Lens: planned.Lens, Batch: planned.Batch}
		if planned.RefID != "" {
			lane.Ref = &actors.Reference{ID: planned.RefID}
		}
		m.Lanes = append(m.Lanes, lane)
	}
	return m
}

// Progress is a snapshot of a lane at work.
type Progress struct {
	LaneID    string       `json:"laneId"`
	Status    lanes.Status `json:"status"`
	Phase     string       `json:"phase"`
	Tool      string       `json:"tool,omitempty"` // at work
	Attempt   int          `json:"attempt"`
	Turns     int          `json:"turns"`
	Usage     pijson.Usage `json:"usage"`
	Model     string       `json:"model,omitempty"`
	ElapsedMs int64        `json:"elapsedMs"`
	Warning   string       `json:"warning,omitempty"`
}

func progressOf(p lanes.Progress) *Progress {
	return &Progress{
		LaneID: p.LaneID, Status: p.Status, Phase: p.Phase, Tool: p.Tool, Attempt: p.Attempt, Turns: p.Turns,
		Usage: p.Usage, Model: p.Model, ElapsedMs: p.Elapsed.Milliseconds(), Warning: p.Warning,
	}
}

func (p *Progress) watched() lanes.Progress {
	return lanes.Progress{
		LaneID: p.LaneID, Status: p.Status, Phase: p.Phase, Tool: p.Tool, Attempt: p.Attempt, Turns: p.Turns,
		Usage: p.Usage, Model: p.Model, Elapsed: time.Duration(p.ElapsedMs) * time.Millisecond, Warning: p.Warning,
	}
}

// Lane is a lane of a call.
type Lane struct {
	Call    string      `json:"call"`
	RunID   string      `json:"runId"`
	RoundID string      `json:"roundId"`
	Role    actors.Role `json:"role"`
	Name    string      `json:"name"`
	Lens    string      `json:"lens,omitempty"`
	RefID   string      `json:"refId,omitempty"`
	Batch   int         `json:"batch"`
	Progress
	Error *lanes.Failure `json:"error,omitempty"` // why it is not complete
}

// Lists, as objects so that they can grow.
type (
	// Calls is the answer to GET /v1/calls.
	Calls struct {
		Calls []Call `json:"calls"`
	}
	// Lanes is the answer to GET /v1/lanes.
	Lanes struct {
		Lanes []Lane `json:"lanes"`
	}
	// Runs is the answer to GET /v1/runs.
	Runs struct {
		Runs []supervisor.RunInfo `json:"runs"`
		More int                  `json:"more"` // that the limit left out
	}
)
