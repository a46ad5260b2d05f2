package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pilothouse/supervisor"
)

// recentRuns is how many runs a person is shown who did not say.
const recentRuns = 20

func (a *app) runsCommand() *cobra.Command {
	var limit int
	var all, yes bool
	var prune string
	c := &cobra.Command{
		Use:   "runs",
		Short: "List the runs of the workspace, newest first, or remove old ones",
		Long: fmt.Sprintf(`runs lists the runs of the workspace, newest first: the last %d, or all of them
with --all and with --json, unless --limit says otherwise.

With --prune AGE it removes what is private to finished runs (done or abandoned)
that have not changed for that long; plans and what else lies in their artifact
directories stay. Without --yes it only tells what would go. A run that somebody
works on, the active one, one whose implementation is still under review, and one
that cannot be read are never removed.`, recentRuns),
		Example: "  pilothouse runs --limit 5\n  pilothouse runs --prune 30d\n  pilothouse runs --prune 30d --yes",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			flags := c.Flags()
			switch {
			case limit < 1:
				return &usageError{fmt.Errorf("--limit %d shows nothing; use a number from 1, or --all", limit)}
			case all && flags.Changed("limit"):
				return &usageError{fmt.Errorf("--all and --limit exclude each other")}
			case yes && prune == "":
				return &usageError{fmt.Errorf("--yes only goes with --prune")}
			case prune != "":
				return a.pruneRuns(c.Context(), prune, yes)
			}
			if all || a.json && !flags.Changed("limit") {
				limit = 0
			}
			return a.listRuns(c.Context(), limit)
		},
	}
	c.Flags().IntVar(&limit, "limit", recentRuns, "list no more than this `number` of runs")
	c.Flags().BoolVar(&all, "all", false, "list all runs")
	c.Flags().StringVar(&prune, "prune", "", "remove finished runs that have not changed for this `age`, such as 30d, 12w or 36h")
	c.Flags().BoolVar(&yes, "yes", false, "with --prune: do it")
	return c
}

func (a *app) listRuns(ctx context.Context, limit int) error {
	return a.withBackend(ctx, func(b backend) error {
		runs, more, err := b.RecentRuns(ctx, a.session(), limit)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(runs)
		}
		return a.printRuns(runs, more)
	})
}

func (a *app) printRuns(runs []supervisor.RunInfo, more int) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(a.out, "There are no runs yet; `pilothouse refine PLAN.md` starts one.")
		return err
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tRUN\tSTATUS\tPHASE\tUPDATED\tRESUME\tOWNER")
	for _, run := range runs {
		mark := ""
		if run.Active {
			mark = "*"
		}
		status := string(run.Status)
		if run.Problem != "" {
			status = "unreadable"
		}
		resume := ""
		if run.Resumable {
			resume = "yes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", mark, run.RunID, status, run.Phase, run.UpdatedAt, resume, run.Owner)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, run := range runs {
		printLost(a.out, run)
	}
	if more > 0 {
		fmt.Fprintf(a.out, "%d older runs are not shown; `pilothouse runs --all` lists them.\n", more)
	}
	for _, run := range runs {
		if run.Problem != "" {
			fmt.Fprintf(a.err, "pilothouse: run %s: %s\n", run.RunID, oneLine(run.Problem))
		}
	}
	return nil
}
