package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pilothouse/supervisor"
	"pilothouse/supervisor/guard"
)

func (a *app) guardCommand() *cobra.Command {
	var tool, arguments, sideEffect string
	command := &cobra.Command{
		Use:   "guard 'shell command'",
		Short: "Tell whether plan mode allows a shell command or a tool call",
		Long: `guard judges one shell command, or with --tool one call of a tool, as plan mode
does: reads pass, writes never, and what is not understood is blocked. The reason
is printed. Exit status: 0 allow, 3 block.

It is a guardrail against mistakes, not a sandbox. PowerShell is out of scope.

A project adds names of commands that only read in pi_plans/pilothouse/guard.json
in its git directory: {"allow": ["mytool"]}. They never override the built-in table.`,
		Example: `  pilothouse guard 'git log --oneline | head'
  pilothouse guard --tool write --args '{"path":"docs/PLAN_v1.md","content":""}'`,
		Args: func(c *cobra.Command, args []string) error {
			switch byTool := c.Flags().Changed("tool"); {
			case byTool && len(args) > 0:
				return &usageError{errors.New("guard judges a shell command or a tool, not both; leave out --tool or the command")}
			case !byTool && (c.Flags().Changed("args") || c.Flags().Changed("side-effect")):
				return &usageError{errors.New("--args and --side-effect describe a tool; name it with --tool")}
			case !byTool && len(args) != 1:
				return &usageError{fmt.Errorf("guard takes one shell command, %d were given; quote it: pilothouse guard 'git status | head'", len(args))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			call := guard.ToolCall{Name: tool, SideEffect: guard.SideEffect(sideEffect)}
			if err := json.Unmarshal([]byte(arguments), &call.Args); err != nil {
				return &usageError{fmt.Errorf("--args is no JSON object: %w", err)}
			}
			policy, notices := supervisor.GuardPolicy(c.Context(), a.workdir)
			for _, notice := range notices {
				fmt.Fprintln(a.err, notice)
			}
			if c.Flags().Changed("tool") {
				return a.showVerdict(policy.Tool(call))
			}
			return a.showVerdict(policy.Shell(args[0]))
		},
	}
	flags := command.Flags()
	flags.StringVar(&tool, "tool", "", "judge a call of this `tool`")
	flags.StringVar(&arguments, "args", "{}", "arguments of the tool, a `JSON` object")
	flags.StringVar(&sideEffect, "side-effect", "", "side `effect` that the tool declares: none, workspace or external")
	return command
}

func (a *app) showVerdict(verdict guard.Verdict) error {
	if verdict.Segments == nil {
		verdict.Segments = []guard.Segment{}
	}
	var err error
	if a.json {
		err = a.printJSON(verdict)
	} else {
		_, err = fmt.Fprintf(a.out, "%s: %s\n", verdict.Decision, verdict.Reason)
	}
	if err != nil {
		return fmt.Errorf("print verdict: %w", err)
	}
	if !verdict.Allowed() {
		return &statusError{exitRefused}
	}
	return nil
}
