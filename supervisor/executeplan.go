package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// executeParams are the parameters of the tool execute_plan (spec: execution 5.2).
type executeParams struct {
	PlanPath string `json:"planPath"`
	Workdir  string `json:"workdir"`

	byAgent bool // it is not the user who asks
}

// The values of status in the details of execute_plan.
const (
	executeStarted  = "executing"
	executeDeclined = "declined"
)

// executePlan is the tool execute_plan.
func executePlan(ctx context.Context, s *System, session Session, ui UI, args json.RawMessage) (Reply, error) {
	var p executeParams
	if err := json.Unmarshal(args, &p); err != nil {
		return Reply{}, inputErrorf("execute_plan: the parameters cannot be read: %v", err)
	}
	p.byAgent = true
	h, err := s.handoff(ctx, session, ui, p)
	if err != nil {
		return Reply{}, err
	}
	status, text := executeStarted, fmt.Sprintf("The user approved the plan; write access is on. Carry out %s.\n\n%s", h.plan.path, h.context)
	switch {
	case h.declined:
		status, text = executeDeclined, "The user declined to let the plan be executed. Stay in planning: nothing may be changed outside planning artifacts. Ask what should be different."
	case h.resumed:
		text = fmt.Sprintf("The plan is being executed already, with the user's approval; go on with %s.\n\n%s", h.plan.path, h.context)
	}
	details, err := json.Marshal(map[string]any{"status": status, "planPath": h.plan.path, "itemCount": len(h.parsed.Checks), "message": text})
	if err != nil {
		return Reply{}, fmt.Errorf("encode the result of execute_plan: %w", err)
	}
	return Reply{Actions: h.actions, Result: &ToolResult{Text: text, Details: details}}, nil
}

// executePlanCommand is /plans-execute [path].
func executePlanCommand(ctx context.Context, s *System, session Session, ui UI, args json.RawMessage) (Reply, error) {
	path, err := commandArgs(args)
	if err != nil {
		return Reply{}, err
	}
	h, err := s.handoff(ctx, session, ui, executeParams{PlanPath: path})
	switch {
	case err != nil:
		return Reply{}, err
	case h.declined:
		return Reply{Actions: append(h.actions, notice(LevelInfo, "The plan was not approved; planning goes on."))}, nil
	case ui.Idle():
		wake, err := s.wakeOnce(ctx, session)
		return Reply{Actions: append(h.actions, wake...)}, err
	}
	return Reply{Actions: h.actions}, nil
}

// commandArgs is what follows the name of a command, on one line.
func commandArgs(args json.RawMessage) (string, error) {
	text, err := commandText(args)
	return oneLine(text), err
}

// handoff is the way of a plan from planning to its execution.
type handoff struct {
	s       *System
	session Session
	plan    planFile
	parsed  execution.Plan
	run     store.RunDir

	declined, resumed bool
	context           string // what the agent is told, once it may begin
	actions           []Action
}

// handoff asks the user for an approval of exactly this plan, in this work tree and at
// this commit, and starts its execution. Nobody else can give it: no option is
// recommended, nothing answers itself, and without a user interface it is an error. A
// plan that is being executed with an approval goes on without a question, unless the
// user has stopped it and it is the agent who wants to go on.
func (s *System) handoff(ctx context.Context, session Session, ui UI, p executeParams) (*handoff, error) {
	h := &handoff{s: s, session: session}
	if err := h.find(ctx, p); err != nil {
		return nil, err
	}
	approved, err := h.approved()
	if err != nil {
		return nil, err
	}
	if approved {
		return h, h.resume(ctx, ui, p.byAgent)
	}
	actions, err := s.stopAutoComplete(ctx, h.session, &h.run, "handed off for execution")
	if err != nil {
		return nil, err
	}
	h.actions = append(h.actions, actions...)
	if !ui.Has() {
		return nil, inputErrorf("No UI available: only the user may let a plan be executed, and nobody sits before this session; `pilothouse execute` does it with --approve")
	}
	if err := h.rehearse(); err != nil {
		return nil, err
	}
	yes, err := ui.Confirm(ctx, "Let this plan be executed?", h.question())
	if err != nil {
		return nil, err
	}
	if !yes {
		h.declined = true
		return h, nil
	}
	return h, h.start(context.WithoutCancel(ctx))
}

// find finds the plan and the run that it belongs to.
func (h *handoff) find(ctx context.Context, p executeParams) (err error) {
	if p.Workdir != "" {
		if h.session.Workdir, err = h.session.within(p.Workdir); err != nil {
			return inputErrorf("workdir %s: %v", p.Workdir, err)
		}
	}
	m, err := h.s.meant(ctx, h.session)
	if err != nil {
		return err
	}
	path := p.PlanPath
	switch {
	case path != "":
	case m.run == nil:
		return inputErrorf("there is no active run; name the plan file to execute")
	case m.run.Status == store.StatusAbandoned:
		return inputErrorf("run %s is abandoned; start a new run, or name the plan file to execute in one of its own", m.run.RunID)
	default:
		if path, _, err = store.LatestPlan(m.run.ArtifactDir); errors.Is(err, store.ErrNoPlan) {
			return inputErrorf("run %s has no PLAN_v<N>.md in %s; write the plan first", m.run.RunID, m.run.ArtifactDir)
		} else if err != nil {
			return err
		}
	}
	if h.plan, err = readPlan(RefineRequest{Session: h.session, PlanPath: path}); err != nil {
		return err
	}
	h.parsed = execution.Parse(h.plan.text)
	if err := h.parsed.Executable(); err != nil {
		return inputErrorf("%s cannot be executed: %v", h.plan.path, err)
	}
	return h.findRun(ctx, m)
}

// readExecutable reads the plan at a path that has something to verify.
func readExecutable(path string) (execution.Plan, error) {
	file, err := readPlan(RefineRequest{PlanPath: path})
	if err != nil {
		return execution.Plan{}, err
	}
	plan := execution.Parse(file.text)
	return plan, plan.Executable()
}

// findRun is the session's run when the plan is its, else the open run that the plan
// belongs to, else a new one: nothing is executed unrecorded, and what was given up stays
// that way.
func (h *handoff) findRun(ctx context.Context, m meantRun) error {
	if m.run != nil && m.run.Status != store.StatusAbandoned && belongs(store.RunSummary{Dir: m.dir, Run: *m.run}, "", h.plan.path) {
		h.run = m.dir
		return nil
	}
	root, notices, err := store.Ensure(ctx, h.session.Workdir)
	if err != nil {
		return err
	}
	run, err := findRun(root, RefineRequest{}, h.plan.path)
	if err != nil {
		return err
	}
	if run == nil {
		started, more, err := h.s.startRun(root, h.plan)
		if err != nil {
			return err
		}
		run, notices = &started, append(notices, more...)
	}
	h.run = *run
	for _, text := range notices {
		h.actions = append(h.actions, notice(LevelInfo, text))
	}
	return nil
}
