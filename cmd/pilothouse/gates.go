package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"pilothouse/actors"
	"pilothouse/supervisor"
)

// answeringGates runs f; when a role's question stands in the way and a person
// sits at the terminal, it asks once, stores the answer and runs f again. A
// round has three gates at most, so it does not go round for ever.
func (a *app) answeringGates(ctx context.Context, b backend, f func() error) error {
	for {
		err := f()
		var gate *actors.GateError
		if !errors.As(err, &gate) || !a.terminal || a.json {
			return err
		}
		answer, asked := a.askGate(gate)
		if asked != nil {
			return errors.Join(err, asked)
		}
		if _, err := b.Plans(ctx, a.session(), answer); err != nil {
			return err
		}
	}
}

// askGate puts a gate's question to the person at the terminal.
func (a *app) askGate(gate *actors.GateError) (supervisor.PlansAction, error) {
	action := supervisor.PlansAction{Action: "set-role", Role: string(gate.Role)}
	if gate.Gate != actors.GateModel {
		fmt.Fprintf(a.err, "How should the %s work?\n  1. As a delegated subagent (recommended)\n  2. In the current session\n", gate.Role)
		choice, err := a.readLine("1")
		if err != nil {
			return action, err
		}
		action.Mode = actors.ModeDelegated
		if choice == "2" {
			action.Mode = actors.ModeCurrentSession
		}
		return action, nil
	}
	fmt.Fprintf(a.err, "Which model should the %s use? Asked once for this workspace.\n  1. Inherit the main model (recommended)\n  or type an exact provider/model\n", gate.Role)
	choice, err := a.readLine("1")
	if err != nil {
		return action, err
	}
	yes := true
	action.Confirmed, action.ModelSelector = &yes, choice
	if choice == "1" {
		action.ModelSelector = "inherit"
	} else if err := supervisor.CheckSelector(choice); err != nil {
		return action, &usageError{fmt.Errorf("model %q: %w", choice, err)}
	}
	return action, nil
}

// readLine reads an answer; an empty line stands for preset.
func (a *app) readLine(preset string) (string, error) {
	fmt.Fprintf(a.err, "[%s] > ", preset)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return preset, nil
	}
	return line, nil
}
