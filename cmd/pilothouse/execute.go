package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pilothouse/supervisor"
	"pilothouse/supervisor/execution"
)

func (a *app) executeCommand() *cobra.Command {
	var req supervisor.ExecuteRequest
	var model, reviewer, review string
	c := &cobra.Command{
		Use:   "execute [PLAN.md]",
		Short: "Carry an approved plan out, without a Pi session",
		Long: `execute carries a plan out with a pi child that may change the workspace: it works
off the plan's verifier checklist, is woken up while checks are left, and stops
after three rounds without progress. Then reviewers look at the implementation and
their findings go back to the child, as often as --review says.

Only a person may let a plan be executed: asked at a terminal, or with --approve
and the SHA-256 of the plan as it was read. Without one nothing is changed (exit
status 3). An approval stands for this version of the plan in this work tree, so an
execution that was stopped, interrupted or killed goes on with the same command.

Without PLAN.md the plan of the active run is meant, or that of --run. The command
works in this process; Ctrl-C ends the child and leaves the run stopped.`,
		Example: `  pilothouse execute docs/PLAN_v2.md --approve "$(sha256sum < docs/PLAN_v2.md | cut -c1-64)"
  pilothouse execute --run 20260501T120000Z-things --review 2
  pilothouse execute --json > report.json`,
		Args: atMostOne("execute", "plan file"),
		RunE: func(c *cobra.Command, args []string) error {
			session := a.session()
			var err error
			if session.Model, err = selector(model); err != nil {
				return err
			}
			if req.Review.Model, err = modelAnswerOf(c, "reviewer-model", reviewer); err != nil {
				return err
			}
			if req.Review.Condition, err = terminationOf(review); err != nil {
				return err
			}
			req.PlanPath = strings.Join(args, "")
			req.Session = session
			return a.execute(c.Context(), req)
		},
	}
	flags := c.Flags()
	flags.StringVar(&req.RunID, "run", "", "`id` of the run to go on with")
	flags.StringVar(&req.Approve, "approve", "", "approve the plan whose `SHA-256` this is")
	flags.StringVar(&model, "model", "", "`provider/model` of the executor (default what pi chooses)")
	flags.StringVar(&review, "review", "", "when the review of the implementation ends: 1, 2 or 3 `rounds`, high (no finding of high severity is left) or goal")
	flags.IntVar(&req.Review.Reviewers, "reviewers", 1, "`number` of reviewers of the implementation, 1 to 3")
	flags.StringVar(&reviewer, "reviewer-model", "", "answer the model question for the reviewers: inherit or provider/model")
	addExecutionLimits(flags, &req)
	return c
}

// addExecutionLimits adds the flags that bound an executor. Zero is the default.
func addExecutionLimits(flags *pflag.FlagSet, req *supervisor.ExecuteRequest) {
	flags.DurationVar(&req.Limits.Lane, "time-limit", 0, "time for the execution (default 12h)")
	flags.DurationVar(&req.Limits.Silence, "silence-timeout", 0, "longest time without an event of the executor (default 1h)")
	flags.IntVar(&req.Limits.Turns, "max-turns", 0, "messages of the executor before it is ended (default 1000)")
	flags.Int64Var(&req.Limits.Tokens, "max-tokens", 0, "tokens, cache reads included, before the executor is ended; -1 for no limit (default 20000000)")
	flags.Float64Var(&req.Limits.Cost, "max-cost", 0, "dollars before the executor is ended; -1 for no limit (default 20)")
}

func selector(model string) (string, error) {
	if model == "" {
		return "", nil
	}
	if err := supervisor.CheckSelector(model); err != nil {
		return "", &usageError{fmt.Errorf("--model %q: %w", model, err)}
	}
	return model, nil
}

// terminationOf is the condition that a short word stands for.
func terminationOf(review string) (string, error) {
	words := []string{"goal", "high", "1", "2", "3"} // in the order of the options
	for i, word := range words {
		if review == word {
			return execution.TerminationOptions[i], nil
		}
	}
	if review == "" {
		return "", nil
	}
	return "", &usageError{fmt.Errorf("--review %q is none of %s", review, strings.Join(words, ", "))}
}

func (a *app) execute(ctx context.Context, req supervisor.ExecuteRequest) error {
	if a.terminal && !a.json {
		req.Ask = func(_ context.Context, question string) (bool, error) {
			err := a.confirm(question)
			var refused *refusedError
			if errors.As(err, &refused) {
				return false, nil
			}
			return err == nil, err
		}
	}
	return a.withSystem(func(s *supervisor.System) error {
		view := &executionView{app: a, round: noProgress{}}
		result, err := s.Execute(ctx, req, view.Watch)
		view.Close()
		if err != nil {
			return err
		}
		if a.json {
			if err := a.printJSON(result); err != nil {
				return err
			}
		} else {
			printExecution(a.out, result)
		}
		return a.executionStatus(ctx, result)
	})
}

// executionStatus is 0 when every check has passed and, if that was asked for, the
// review is over.
func (a *app) executionStatus(ctx context.Context, result supervisor.ExecuteResult) error {
	switch result.Outcome {
	case supervisor.ExecutionCompleted, supervisor.ExecutionReviewPending:
		return nil
	case supervisor.ExecutionInterrupted:
		fmt.Fprintf(a.err, "pilothouse: interrupted; go on with `%s`\n", result.WayOut)
		if status := interruptStatus(ctx); status != 0 {
			return &statusError{status}
		}
		return &statusError{exitInterrupted}
	}
	fmt.Fprintf(a.err, "pilothouse: the execution stopped: %s; go on with `%s`\n", oneLine(result.Reason), result.WayOut)
	return &statusError{exitFailed}
}
