package supervisor

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/store"
)

// PlansAction is one call of the `plans` tool, in the tool's own JSON (spec:
// state 1.4). Which fields count depends on Action.
type PlansAction struct {
	Action             string            `json:"action"`
	Workdir            string            `json:"workdir,omitempty"`
	Topic              string            `json:"topic,omitempty"`
	Skill              string            `json:"skill,omitempty"`
	RequestText        string            `json:"requestText,omitempty"`
	Tag                string            `json:"tag,omitempty"`
	LanguageSource     string            `json:"languageSource,omitempty"`
	ArtifactRoot       string            `json:"artifactRoot,omitempty"`
	ArtifactRootSource string            `json:"artifactRootSource,omitempty"`
	RefsRoot           string            `json:"refsRoot,omitempty"`
	RefsRootSource     string            `json:"refsRootSource,omitempty"`
	Enabled            *bool             `json:"enabled,omitempty"`
	Role               string            `json:"role,omitempty"`
	Mode               string            `json:"mode,omitempty"`
	ModelSelector      string            `json:"modelSelector,omitempty"`
	Confirmed          *bool             `json:"confirmed,omitempty"`
	ResetConfirmation  *bool             `json:"resetConfirmation,omitempty"`
	RunID              string            `json:"runId,omitempty"`
	Status             string            `json:"status,omitempty"`
	Decision           *DecisionParams   `json:"decision,omitempty"`
	Ref                *RefParams        `json:"ref,omitempty"`
	Subagent           *SubagentParams   `json:"subagent,omitempty"`
	Checkpoint         *CheckpointParams `json:"checkpoint,omitempty"`
}

// DecisionParams is what record-decision records.
type DecisionParams struct {
	Question     string   `json:"question"`
	Options      []string `json:"options"`
	Answer       string   `json:"answer"`
	AnswerSource string   `json:"answerSource"`
	Artifact     string   `json:"artifact,omitempty"`
}

// RefParams is what record-ref records.
type RefParams struct {
	Title     string `json:"title"`
	URL       string `json:"url"`
	Kind      string `json:"kind"`
	Retrieval string `json:"retrieval"`
	LocalPath string `json:"localPath,omitempty"`
	Coverage  string `json:"coverage,omitempty"`
	Gaps      string `json:"gaps,omitempty"`
}

// SubagentParams is what record-subagent records.
type SubagentParams struct {
	Role       string  `json:"role"`
	Name       string  `json:"name"`
	Model      *string `json:"model,omitempty"`
	SessionDir string  `json:"sessionDir,omitempty"`
}

// CheckpointParams is a step that record-checkpoint records.
type CheckpointParams struct {
	Transition           string `json:"transition"`
	PlanPath             string `json:"planPath,omitempty"`
	RoundID              string `json:"roundId,omitempty"`
	DispositionArtifact  string `json:"dispositionArtifact,omitempty"`
	TerminationCondition string `json:"terminationCondition,omitempty"`
	Evidence             string `json:"evidence,omitempty"`
}

// ConfigResult is the result of the actions that read or set the workspace's
// settings.
type ConfigResult struct {
	Config    store.Config `json:"config"`
	StateRoot string       `json:"stateRoot"`
	Notices   []string     `json:"notices,omitzero"` // show gives none
	Hint      string       `json:"hint,omitempty"`
}

// StartRunResult is the result of start-run.
type StartRunResult struct {
	Run     store.Run `json:"run"`
	Notices []string  `json:"notices"`
}

// graphHint is given while the question was never asked (spec: state 1.4).
const graphHint = "the code graph was never decided on: ask the user once whether to enable it (recommended: yes), then `plans set-graph-enabled --enabled true|false`"

// Plans does one action and returns its result object. Errors: *InputError for
// wrong parameters; for actions on a run also *store.OwnedError and
// *store.StateError.
func (s *System) Plans(ctx context.Context, session Session, action PlansAction) (any, error) {
	return s.ask(ctx, nil, func(caller *actor.PID) prepare {
		return func(work context.Context) (destination, error) { return s.preparePlans(work, caller, session, action) }
	})
}

func (s *services) preparePlans(ctx context.Context, caller *actor.PID, session Session, p PlansAction) (destination, error) {
	workdir := session.Workdir
	if p.Workdir != "" {
		var err error
		if workdir, err = session.within(p.Workdir); err != nil {
			return destination{}, inputErrorf("workdir %s: %v", p.Workdir, err)
		}
		session.Workdir = workdir
	}
	if change, known := configActions[p.Action]; known {
		apply, err := change(p, store.Stamp(s.now()))
		if err != nil {
			return destination{}, err
		}
		value, err := configure(ctx, workdir, p, apply)
		return destination{value: value}, err
	}
	switch p.Action {
	case "show":
		value, err := showConfig(ctx, workdir)
		return destination{value: value}, err
	case "start-run":
		return s.startRunAction(ctx, caller, session, p)
	}
	prepareChange, known := runActions[p.Action]
	if !known {
		return destination{}, inputErrorf("there is no plans action %q; `pilothouse plans --help` lists them", p.Action)
	}
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return destination{}, err
	}
	run, err := s.runOf(session.ID, root, p)
	if err != nil {
		return destination{}, err
	}
	change, err := prepareChange(session, run, p)
	if err != nil {
		return destination{}, err
	}
	change.caller, change.session = caller, session.ID
	return destination{
		run: runKey{root.Dir, run.ID}, session: session.ID, message: planCommit{caller, change},
		spawn: newRun(s, &run, run.RoundDir()),
	}, nil
}

// runOf finds the run of an action: the one named, else, for record-checkpoint,
// the one that the session works on.
func (s *services) runOf(sessionID string, root store.Root, p PlansAction) (store.RunDir, error) {
	if p.RunID != "" {
		run, err := root.Run(p.RunID)
		if err != nil {
			return store.RunDir{}, noRunError("runId", p.RunID, err)
		}
		return run, nil
	}
	if p.Action != "record-checkpoint" {
		return store.RunDir{}, inputErrorf("%s needs runId", p.Action)
	}
	run, found, err := s.bindings.current(sessionID, root)
	if err != nil {
		return store.RunDir{}, err
	}
	if !found {
		return store.RunDir{}, inputErrorf("there is no active run; name one with runId")
	}
	return run, nil
}

func configure(ctx context.Context, workdir string, p PlansAction, apply func(*store.Config) error) (ConfigResult, error) {
	root, notices, err := store.Ensure(ctx, workdir)
	if err != nil {
		return ConfigResult{}, err
	}
	config, err := root.UpdateConfig(apply)
	if err != nil {
		return ConfigResult{}, err
	}
	if notices == nil {
		notices = []string{}
	}
	result := ConfigResult{Config: config, StateRoot: root.Dir, Notices: notices}
	if p.Action == "init" {
		result.Hint = hint(config)
	}
	return result, nil
}

func showConfig(ctx context.Context, workdir string) (ConfigResult, error) {
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return ConfigResult{}, err
	}
	config, err := root.LoadConfig()
	if err != nil {
		return ConfigResult{}, err
	}
	return ConfigResult{Config: config, StateRoot: root.Dir, Hint: hint(config)}, nil
}

func hint(config store.Config) string {
	if config.GraphEnabled == nil {
		return graphHint
	}
	return ""
}

// configActions turn parameters into a change of the settings. They check the
// parameters before anything is made or written.
var configActions = map[string]func(p PlansAction, now string) (func(*store.Config) error, error){
	"init": func(PlansAction, string) (func(*store.Config) error, error) {
		return func(*store.Config) error { return nil }, nil
	},
	"set-language": func(p PlansAction, now string) (func(*store.Config) error, error) {
		if err := needs(p.Action, param{"tag", p.Tag}, param{"languageSource", p.LanguageSource}); err != nil {
			return nil, err
		}
		if err := checkSource("languageSource", p.LanguageSource); err != nil {
			return nil, err
		}
		return func(c *store.Config) error {
			c.Language.Tag, c.Language.Source, c.Language.UpdatedAt = &p.Tag, p.LanguageSource, &now
			return nil
		}, nil
	},
	"set-artifact-root": func(p PlansAction, now string) (func(*store.Config) error, error) {
		if err := needs(p.Action, param{"artifactRoot", p.ArtifactRoot}, param{"artifactRootSource", p.ArtifactRootSource}); err != nil {
			return nil, err
		}
		if err := checkSource("artifactRootSource", p.ArtifactRootSource); err != nil {
			return nil, err
		}
		return func(c *store.Config) error {
			c.ArtifactRoot, c.ArtifactRootSource, c.ArtifactRootUpdatedAt = p.ArtifactRoot, p.ArtifactRootSource, &now
			return nil
		}, nil
	},
	"set-refs-root": func(p PlansAction, now string) (func(*store.Config) error, error) {
		if err := needs(p.Action, param{"refsRoot", p.RefsRoot}, param{"refsRootSource", p.RefsRootSource}); err != nil {
			return nil, err
		}
		if err := checkSource("refsRootSource", p.RefsRootSource); err != nil {
			return nil, err
		}
		return func(c *store.Config) error {
			c.RefsRoot, c.RefsRootSource, c.RefsRootUpdatedAt = &p.RefsRoot, p.RefsRootSource, &now
			return nil
		}, nil
	},
	"set-graph-enabled": func(p PlansAction, now string) (func(*store.Config) error, error) {
		if p.Enabled == nil {
			return nil, inputErrorf("set-graph-enabled needs enabled: true or false")
		}
		return func(c *store.Config) error {
			c.GraphEnabled, c.GraphEnabledUpdatedAt = p.Enabled, &now
			return nil
		}, nil
	},
	"set-role": setRole,
}

// setRole changes a role's mode, model or confirmation. A mode-only edit neither
// forges nor discards a confirmation (seed: /config-pi-plans).
func setRole(p PlansAction, now string) (func(*store.Config) error, error) {
	role := actors.Role(p.Role)
	confirmed := p.Confirmed != nil && *p.Confirmed
	reset := p.ResetConfirmation != nil && *p.ResetConfirmation
	switch {
	case role != actors.Reviewer && role != actors.Criticizer:
		return nil, inputErrorf("set-role needs role: reviewer or criticizer, not %q", p.Role)
	case p.Mode != "" && p.Mode != actors.ModeDelegated && p.Mode != actors.ModeCurrentSession:
		return nil, inputErrorf("mode %q is neither delegated-subagent nor current-session", p.Mode)
	case confirmed && reset:
		return nil, inputErrorf("confirmed and resetConfirmation exclude each other")
	}
	if p.ModelSelector != "" && p.ModelSelector != "inherit" {
		if err := CheckSelector(p.ModelSelector); err != nil {
			return nil, inputErrorf("modelSelector %q: %v", p.ModelSelector, err)
		}
	}
	return func(c *store.Config) error {
		setting := &c.Reviewer
		if role == actors.Criticizer {
			setting = &c.Criticizer
		}
		if p.Mode != "" {
			setting.Mode = p.Mode
		}
		switch p.ModelSelector {
		case "":
		case "inherit":
			setting.ModelSelector = nil
		default:
			setting.ModelSelector = &p.ModelSelector
		}
		switch {
		case confirmed:
			setting.ConfirmedAt = &now
		case reset:
			setting.ConfirmedAt = nil
		}
		return nil
	}, nil
}

// startRunAction makes a run, which a session holds from then on.
func (s *services) startRunAction(ctx context.Context, caller *actor.PID, session Session, p PlansAction) (destination, error) {
	if err := needs(p.Action, param{"topic", p.Topic}, param{"skill", p.Skill}, param{"requestText", p.RequestText}); err != nil {
		return destination{}, err
	}
	root, notices, err := store.Ensure(ctx, session.Workdir)
	if err != nil {
		return destination{}, err
	}
	run, more, err := store.StartRun(root, store.StartRunRequest{Topic: p.Topic, Skill: p.Skill, RequestText: p.RequestText}, s.now())
	if err != nil {
		return destination{}, err
	}
	dir, err := root.Run(run.RunID)
	if err != nil {
		return destination{}, err
	}
	if _, err := dir.CreateCheckpoint(s.now()); err != nil {
		return destination{}, err
	}
	result := StartRunResult{Run: run, Notices: append(append([]string{}, notices...), more...)}
	if session.ID == "" { // a command line, which is over now
		return destination{value: result}, nil
	}
	s.bindings.bind(session.ID, dir)
	taken := &planChange{caller: caller, session: session.ID, files: func(*files) (any, error) { return result, nil }}
	return destination{
		run: runKey{root.Dir, dir.ID}, session: session.ID, message: planCommit{caller, taken},
		spawn: newRun(s, &dir, dir.RoundDir()),
	}, nil
}

// planCommit asks a run for a change that a `plans` action makes: registry → run.
type planCommit struct {
	caller *actor.PID
	change *planChange
}

// planChange is the change of one `plans` action. Its result becomes the reply.
type planChange struct {
	caller  *actor.PID
	session string
	files   func(f *files) (any, error) // nil when the checkpoint is all that changes
	step    func(now time.Time) store.Change
	result  any
}

func (c *planChange) store(f *files) (err error) {
	if c.files != nil {
		c.result, err = c.files(f)
	}
	return err
}

// reply is the result object: the stored entry, or the checkpoint as written.
func (c *planChange) reply(cp *store.Checkpoint) any {
	if c.step != nil && cp != nil {
		return *cp
	}
	return c.result
}

func (c *planChange) reduce(now time.Time) store.Change {
	if c.step == nil {
		return nil
	}
	return c.step(now)
}

// runActions turn parameters into a change of a run.
var runActions = map[string]func(Session, store.RunDir, PlansAction) (*planChange, error){
	"set-status": setStatus,
	"record-decision": func(_ Session, run store.RunDir, p PlansAction) (*planChange, error) {
		d := p.Decision
		if d == nil || d.Question == "" || d.Answer == "" {
			return nil, inputErrorf("record-decision needs decision with question, options, answer and answerSource")
		}
		entry := store.ToolDecision{Question: d.Question, Options: d.Options, Answer: d.Answer, AnswerSource: d.AnswerSource, Artifact: d.Artifact}
		return &planChange{files: func(f *files) (any, error) { return run.AppendToolDecision(entry, f.now()) }}, nil
	},
	"record-ref": func(_ Session, run store.RunDir, p PlansAction) (*planChange, error) {
		if p.Ref == nil || p.Ref.Title == "" || p.Ref.URL == "" {
			return nil, inputErrorf("record-ref needs ref with title, url, kind and retrieval")
		}
		entry := store.Reference{
			Title: p.Ref.Title, URL: p.Ref.URL, Kind: p.Ref.Kind, Retrieval: p.Ref.Retrieval,
			LocalPath: p.Ref.LocalPath, Coverage: p.Ref.Coverage, Gaps: p.Ref.Gaps,
		}
		return &planChange{files: func(f *files) (any, error) { return run.AppendRef(entry, f.now()) }}, nil
	},
	"record-subagent": func(_ Session, run store.RunDir, p PlansAction) (*planChange, error) {
		if p.Subagent == nil || p.Subagent.Role == "" || p.Subagent.Name == "" {
			return nil, inputErrorf("record-subagent needs subagent with role and name")
		}
		entry := store.Subagent{Role: p.Subagent.Role, Name: p.Subagent.Name, Model: p.Subagent.Model, SessionDir: p.Subagent.SessionDir}
		return &planChange{files: func(f *files) (any, error) { return run.AppendSubagent(entry, f.now()) }}, nil
	},
	"record-checkpoint": recordCheckpoint,
}

// recordCheckpoint is the boundary that a model may cross: a whitelist of
// transitions. Approval, verification progress and jumps between phases are not
// among them (seed: Workflow Checkpoints).
func recordCheckpoint(session Session, run store.RunDir, p PlansAction) (*planChange, error) {
	c := p.Checkpoint
	if c == nil || c.Transition == "" {
		return nil, inputErrorf("record-checkpoint needs checkpoint with a transition")
	}
	change := &planChange{}
	var step func(now time.Time) store.Change
	switch c.Transition {
	case "plan-written":
		if c.PlanPath == "" {
			return nil, inputErrorf("plan-written needs planPath")
		}
		path, err := session.within(c.PlanPath)
		if err != nil {
			return nil, inputErrorf("planPath %s: %v", c.PlanPath, err)
		}
		identity, err := store.IdentifyPlan(path)
		if err != nil {
			return nil, inputErrorf("planPath %s cannot be read: %v", c.PlanPath, err)
		}
		step = func(time.Time) store.Change { return store.PlanWritten(identity) }
	case "review-consolidated":
		if c.RoundID == "" {
			return nil, inputErrorf("review-consolidated needs roundId")
		}
		step = func(now time.Time) store.Change {
			return store.ReviewConsolidated(c.RoundID, c.DispositionArtifact, now)
		}
	case "implementation-review-configured":
		if c.TerminationCondition == "" {
			return nil, inputErrorf("implementation-review-configured needs terminationCondition")
		}
		step = func(time.Time) store.Change { return store.ReviewConfigured(c.TerminationCondition) }
	case "implementation-round-finished":
		step = func(time.Time) store.Change { return store.ReviewRoundFinished() }
	case "completed":
		step = func(time.Time) store.Change { return completed(run, c.Evidence) }
	default:
		return nil, inputErrorf("transition %q cannot be recorded; those that can are plan-written, review-consolidated, "+
			"implementation-review-configured, implementation-round-finished and completed", c.Transition)
	}
	change.step = step
	return change, nil
}

type param struct{ name, value string }

func needs(action string, params ...param) error {
	for _, p := range params {
		if p.value == "" {
			return inputErrorf("%s needs %s", action, p.name)
		}
	}
	return nil
}

func checkSource(name, value string) error {
	if value != "user" && value != "auto" {
		return inputErrorf("%s %q is neither user nor auto", name, value)
	}
	return nil
}
