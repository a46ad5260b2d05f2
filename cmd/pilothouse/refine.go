package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pilothouse/actors"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

func (a *app) refineCommand() *cobra.Command {
	var req supervisor.RefineRequest
	var role, model string
	c := &cobra.Command{
		Use:   "refine PLAN.md",
		Short: "Have a plan reviewed or criticised",
		Long: `refine has a plan reviewed by one to three reviewers, or questioned by a
criticizer. Each is a read-only pi child with a lens of its own. Every answer
is stored in the run that the plan belongs to; a plan without a run starts one.

The model is asked for once at a terminal; elsewhere --model answers for this
call. An interrupted round is continued with --resume-round: lanes that are
complete are not run again.`,
		Example: `  pilothouse refine docs/PLAN_v1.md --reviewers 3 --model inherit
  pilothouse refine docs/PLAN_v1.md --role criticizer --json
  pilothouse refine docs/PLAN_v1.md --resume-round plan-reviewer-rabc123`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("refine takes one plan file, %d were given; see `pilothouse refine --help`", len(args))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkLimits(req.Limits); err != nil {
				return err
			}
			req.Session = a.session()
			req.PlanPath = args[0]
			req.Role = actors.Role(role)
			if c.Flags().Changed("reviewers") && req.Reviewers == 0 { // to a request, 0 is the default
				return &usageError{errors.New("--reviewers 0 is out of range: 1 to 3 reviewers can look at a plan")}
			}
			var err error
			if req.Model, err = modelAnswer(c, model); err != nil {
				return err
			}
			return a.refine(c.Context(), req)
		},
	}
	flags := c.Flags()
	flags.StringVar(&role, "role", "", "`role` of the lanes: reviewer or criticizer (default reviewer)")
	flags.IntVar(&req.Reviewers, "reviewers", 0, "`number` of reviewers, 1 to 3 (default 1)")
	flags.StringVar(&req.Target, "target", "", "what is reviewed: plan or implementation (default plan)")
	flags.StringVar(&req.Focus, "focus", "", "`concern` the lanes should look at first")
	flags.StringVar(&req.Context, "context", "", "background `text` for the lanes")
	flags.StringVar(&model, "model", "", "answer the model question for this call: inherit or provider/model")
	flags.StringVar(&req.RunID, "run", "", "`id` of the run to work in")
	addLimits(flags, &req.Limits)
	flags.StringVar(&req.ResumeRoundID, "resume-round", "", "continue the round with this `id`")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"reviewer", "criticizer"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("target", cobra.FixedCompletions([]string{"plan", "implementation"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) refine(ctx context.Context, req supervisor.RefineRequest) error {
	return a.withBackend(ctx, func(b backend) error {
		return a.answeringGates(ctx, b, func() error {
			return a.round(ctx, "pilothouse refine "+req.PlanPath+" --resume-round ", func(watch supervisor.Watch) (supervisor.RoundResult, error) {
				return b.Refine(ctx, req, watch)
			})
		})
	})
}

// round shows a round at work, prints its result and decides the exit status.
// resume is the command that continues it, short of the round's id.
func (a *app) round(ctx context.Context, resume string, start func(supervisor.Watch) (supervisor.RoundResult, error)) error {
	view := a.newProgress()
	result, err := start(view.Watch)
	view.Close()
	if lost, ok := errors.AsType[*api.LostCallError](err); ok && lost.RoundID != "" {
		return fmt.Errorf("%w; %s", err, resumeHint(resume, supervisor.RoundResult{RoundID: lost.RoundID}))
	}
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(result); err != nil {
			return err
		}
	} else {
		printRound(a.out, result)
	}
	return a.roundStatus(ctx, resume, result)
}

// roundStatus is 0 when at least one lane is complete: its answer can be used,
// and the others are named. It is 1 when none is (spec: subagents 4.1).
func (a *app) roundStatus(ctx context.Context, resume string, result supervisor.RoundResult) error {
	complete := result.Complete()
	if complete == len(result.Lanes) {
		return nil
	}
	hint := resumeHint(resume, result)
	if status := interruptStatus(ctx); status != 0 {
		fmt.Fprintf(a.err, "pilothouse: interrupted with %d of %d lanes complete; %s\n", complete, len(result.Lanes), hint)
		return &statusError{status}
	}
	for _, lane := range result.Lanes {
		if lane.Error != nil {
			fmt.Fprintf(a.err, "pilothouse: lane %s %s: %s\n", lane.LaneID, lane.Status, firstLine(lane.Error.Message))
		}
	}
	fmt.Fprintf(a.err, "pilothouse: %d of %d lanes complete; %s\n", complete, len(result.Lanes), hint)
	if complete == 0 {
		return &statusError{exitFailed}
	}
	return nil
}

func resumeHint(resume string, result supervisor.RoundResult) string {
	return fmt.Sprintf("continue with `%s%s`", resume, result.RoundID)
}

// modelAnswer reads --model.
func modelAnswer(c *cobra.Command, model string) (supervisor.ModelAnswer, error) {
	return modelAnswerOf(c, "model", model)
}

// modelAnswerOf reads a flag that answers the model question.
func modelAnswerOf(c *cobra.Command, flag, model string) (supervisor.ModelAnswer, error) {
	if !c.Flags().Changed(flag) {
		return supervisor.ModelAnswer{}, nil
	}
	if model == "inherit" {
		return supervisor.ModelAnswer{Answered: true}, nil
	}
	if err := supervisor.CheckSelector(model); err != nil {
		return supervisor.ModelAnswer{}, &usageError{fmt.Errorf("--%s %q: %w", flag, model, err)}
	}
	return supervisor.ModelAnswer{Answered: true, Selector: model}, nil
}

// interruptStatus is 128+n when signal n ended ctx, 0 when none did.
func interruptStatus(ctx context.Context) int {
	var interrupt *interruptError
	if errors.As(context.Cause(ctx), &interrupt) {
		return interrupt.status()
	}
	return 0
}
