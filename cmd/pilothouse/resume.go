package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func (a *app) resumeCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Take up a run that was left unfinished",
		Long: `resume takes up a run that was left unfinished and prints what an agent has to
know to go on with it: what is decided, what is pending, which reviews are not
complete, whether the approval of the plan still stands. Without RUN it takes
the active run, else the only one, and asks at a terminal.

A run of another work tree of the repository moves here: its documents are
copied, none is overwritten, and its approval does not move. That is asked at a
terminal; elsewhere --yes allows it. The command works in this process, for the
call; whoever has the run keeps it (exit status 4).`,
		Example: `  pilothouse resume
  pi "$(pilothouse resume 20260501T120000Z-things)"
  pilothouse resume --json`,
		Args: atMostOne("resume", "run"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withSystem(func(s *supervisor.System) error {
				return a.resume(c.Context(), s, strings.Join(args, ""), yes)
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "answer yes to what would be asked, but for the choice of a run")
	return c
}

// atMostOne accepts one argument or none.
func atMostOne(command, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return &usageError{fmt.Errorf("%s takes one %s, %d were given", command, what, len(args))}
		}
		return nil
	}
}

func (a *app) resume(ctx context.Context, s *supervisor.System, runID string, yes bool) error {
	chosen, err := a.chooseRun(ctx, s, runID)
	if err != nil {
		return err
	}
	for _, question := range []string{chosen.MoveQuestion(a.workdir), chosen.LegacyQuestion()} {
		if question == "" || yes {
			continue
		}
		if err := a.confirm(question); err != nil {
			return err
		}
	}
	resumed, err := s.Resume(ctx, supervisor.ResumeRequest{Session: a.session(), RunID: chosen.RunID, Move: true, Legacy: true})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(resumed)
	}
	if _, err := fmt.Fprint(a.out, resumed.Brief); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "pilothouse: resumed run %s; %s\n", resumed.RunID, nextStep(resumed))
	return nil
}

// nextStep says what goes on with a run that was taken up.
func nextStep(resumed supervisor.Resumption) string {
	const session = "give this text to a Pi session"
	if resumed.Phase == store.PhaseExecuting || resumed.Phase == store.PhaseImplementationReview {
		return session + ", or go on without one with `pilothouse execute --run " + resumed.RunID + "`"
	}
	return session
}

// chooseRun is the run that is named, else the active one, else the only one, else what
// a person at the terminal chooses.
func (a *app) chooseRun(ctx context.Context, s *supervisor.System, runID string) (supervisor.Candidate, error) {
	candidates, err := s.Candidates(ctx, a.session())
	if err != nil {
		return supervisor.Candidate{}, err
	}
	if runID != "" {
		for _, candidate := range candidates {
			if candidate.RunID == runID {
				return candidate, nil
			}
		}
		return supervisor.Candidate{RunID: runID}, nil // Resume says what is wrong with it
	}
	if len(candidates) == 0 {
		return supervisor.Candidate{}, &supervisor.InputError{Message: "there is no run to resume; `pilothouse runs` lists what there is"}
	}
	if chosen, found := supervisor.DefaultCandidate(candidates); found {
		return chosen, nil
	}
	if !a.terminal || a.json {
		var ids []string
		for _, candidate := range candidates {
			ids = append(ids, candidate.RunID)
		}
		return supervisor.Candidate{}, &usageError{fmt.Errorf("several runs can be resumed, name one: %s", strings.Join(ids, ", "))}
	}
	fmt.Fprintln(a.err, "Which run should go on?")
	for i, candidate := range candidates {
		fmt.Fprintf(a.err, "  %d. %s\n", i+1, candidate.Label())
	}
	line, err := a.readLine("1")
	if err != nil {
		return supervisor.Candidate{}, err
	}
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(candidates) {
		return candidates[n-1], nil
	}
	return supervisor.Candidate{}, &usageError{fmt.Errorf("%q is none of 1 to %d", line, len(candidates))}
}

// errNotConfirmed ends a command that needs a yes which it does not get.
var errNotConfirmed = errors.New("nothing was changed: it was not confirmed")

// confirm puts a question to the person at the terminal. Anything but a clear yes is a
// no, and so is nobody to ask.
func (a *app) confirm(question string) error {
	if !a.terminal || a.json {
		return &refusedError{fmt.Errorf("only a person may decide this, and nobody can be asked here; allow it with --yes: %s", question)}
	}
	fmt.Fprintln(a.err, question)
	line, err := a.readLine("no")
	if err != nil {
		return err
	}
	switch strings.ToLower(line) {
	case "y", "yes":
		return nil
	}
	return &refusedError{errNotConfirmed}
}
