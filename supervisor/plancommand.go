package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// planStatusKey is the part of the status line that shows plan mode.
const planStatusKey = "pilothouse-plan"

// planCommand is /plan: it enters plan mode, with a request that it submits, or leaves
// it (seed: user journey). It tells of each transition once.
func planCommand(ctx context.Context, s *System, session Session, ui UI, args json.RawMessage) (Reply, error) {
	text, err := commandText(args)
	if err != nil {
		return Reply{}, err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "on":
		before, after, err := s.planModes.change(session.ID, planMode.enter)
		if err != nil {
			return Reply{}, fmt.Errorf("enter plan mode: %w", err)
		}
		if before == after {
			return Reply{Actions: []Action{planStatus(after), notice(LevelInfo, "Plan mode is on already.")}}, nil
		}
		return entered(after), nil
	case "off":
		before, after, err := s.planModes.change(session.ID, planMode.leave)
		if err != nil {
			return Reply{}, fmt.Errorf("leave plan mode: %w", err)
		}
		text := "Plan mode is off: the agent may change files again."
		if before == after {
			text = "Plan mode is off already."
		}
		return Reply{Actions: []Action{planStatus(after), notice(LevelInfo, text)}}, nil
	}
	return submitInPlanMode(ctx, s, session, ui, text)
}

// submitInPlanMode enters plan mode first, so that the guard holds before the agent has
// the request. When the request is not submitted, the state before comes back.
func submitInPlanMode(ctx context.Context, s *System, session Session, ui UI, text string) (Reply, error) {
	before, after, err := s.planModes.change(session.ID, planMode.enter)
	if err != nil {
		return Reply{}, fmt.Errorf("enter plan mode: %w", err)
	}
	request := Action{Kind: ActionUser, Text: text}
	if !ui.Idle() {
		request.DeliverAs = DeliverSteer
	}
	err = ui.Perform(ctx, request)
	var failed *PerformError
	switch {
	case err == nil && before == after:
		return Reply{Actions: []Action{planStatus(after)}}, nil
	case err == nil:
		return entered(after), nil
	case !errors.As(err, &failed):
		return Reply{}, fmt.Errorf("submit the request: %w", err) // whether it was is not known: plan mode stays on
	}
	_, now, err := s.planModes.change(session.ID, func(m planMode) (planMode, bool) { return m.restore(before, after) })
	if err != nil {
		return Reply{}, fmt.Errorf("the request was not submitted (%s), and plan mode stays on: %w", failed.Reason, err)
	}
	state := "off"
	if now.Active {
		state = "on"
	}
	return Reply{Actions: []Action{
		planStatus(now),
		notice(LevelError, fmt.Sprintf("The request was not submitted (%s). Plan mode is %s, as before.", failed.Reason, state)),
	}}, nil
}

func entered(m planMode) Reply {
	return Reply{Actions: []Action{
		planStatus(m),
		notice(LevelInfo, "Plan mode is on: the agent may look at everything and change nothing. /plan off leaves it."),
	}}
}

// planStatus shows plan mode in the status line.
func planStatus(m planMode) Action {
	if m.Active {
		return Action{Kind: ActionStatus, Key: planStatusKey, Text: "plan mode"}
	}
	return Action{Kind: ActionStatus, Key: planStatusKey}
}

// commandText is what follows the name of a command.
func commandText(args json.RawMessage) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	var text string
	if err := json.Unmarshal(args, &text); err != nil {
		return "", inputErrorf("the arguments of a command are text, not %.80s", args)
	}
	return text, nil
}
