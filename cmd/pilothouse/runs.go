package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pilothouse/supervisor"
)

func (a *app) runsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "runs",
		Short: "List the runs of the workspace, newest first",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withSystem(func(system *supervisor.System) error {
				runs, err := system.Runs(c.Context(), a.session())
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(runs)
				}
				return a.printRuns(runs)
			})
		},
	}
}

func (a *app) printRuns(runs []supervisor.RunInfo) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(a.out, "There are no runs yet; `pilothouse refine PLAN.md` starts one.")
		return err
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tRUN\tSTATUS\tPHASE\tUPDATED\tOWNER")
	for _, run := range runs {
		mark := ""
		if run.Active {
			mark = "*"
		}
		status := string(run.Status)
		if run.Problem != "" {
			status = "unreadable"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", mark, run.RunID, status, run.Phase, run.UpdatedAt, run.Owner)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, run := range runs {
		if run.Problem != "" {
			fmt.Fprintf(a.err, "pilothouse: run %s: %s\n", run.RunID, oneLine(run.Problem))
		}
	}
	return nil
}
