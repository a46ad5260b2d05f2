package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func (a *app) abandonCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "abandon RUN",
		Short: "Give a run up",
		Long: `abandon marks a run as abandoned: it is not offered to be resumed any more. Its
files stay until "pilothouse runs --prune" removes them. It asks at a terminal;
elsewhere it needs --yes.`,
		Args: exactlyOneRun("abandon"),
		RunE: func(c *cobra.Command, args []string) error {
			if !yes {
				if err := a.confirm(fmt.Sprintf("Abandon run %s? It cannot be resumed after that.", args[0])); err != nil {
					return err
				}
			}
			return a.endRun(c.Context(), func(ctx context.Context, s *supervisor.System) (store.Run, error) {
				return s.AbandonRun(ctx, a.session(), args[0])
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do it without asking")
	return c
}
