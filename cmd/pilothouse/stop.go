package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func (a *app) stopCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "stop RUN",
		Short: "Stop a run, to be resumed later",
		Long: `stop marks a run as stopped. An execution keeps its approval and what is verified,
and "pilothouse resume" or "pilothouse execute" goes on with it. A run that somebody
works on is not touched (exit status 4): stop it there, an execution at its terminal
with Ctrl-C.`,
		Args: exactlyOneRun("stop"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.endRun(c.Context(), func(ctx context.Context, s *supervisor.System) (store.Run, error) {
				return s.StopRun(ctx, a.session(), args[0], reason)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "stopped from the command line", "`text` to keep with a stopped execution")
	return c
}

func exactlyOneRun(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return &usageError{fmt.Errorf("%s takes the id of one run, %d were given; `pilothouse runs` lists them", command, len(args))}
		}
		return nil
	}
}

// endRun changes the status of a run and tells what it is now.
func (a *app) endRun(ctx context.Context, end func(context.Context, *supervisor.System) (store.Run, error)) error {
	return a.withSystem(func(s *supervisor.System) error {
		run, err := end(ctx, s)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(run)
		}
		_, err = fmt.Fprintf(a.out, "run %s is %s\n", run.RunID, run.Status)
		return err
	})
}
