package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [RUN]",
		Short: "Show one run with its rounds, the active one by default",
		Long: `show tells what is on record of a run and of each lane of its rounds. Rounds of
references that belong to no run are shown by "show adhoc".`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{fmt.Errorf("show takes one run, %d were given", len(args))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var runID string
			if len(args) == 1 {
				runID = args[0]
			}
			return a.withBackend(c.Context(), func(b backend) error {
				detail, err := b.Show(c.Context(), a.session(), runID)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(detail)
				}
				a.printRun(detail)
				return nil
			})
		},
	}
}

func (a *app) printRun(d supervisor.RunDetail) {
	for _, line := range []struct{ label, value string }{
		{"run", d.RunID}, {"status", string(d.Status)}, {"phase", string(d.Phase)}, {"next", string(d.NextAction)}, {"request", d.RequestText},
		{"workdir", d.Workdir}, {"artifacts", d.ArtifactDir}, {"owner", d.Owner}, {"problem", d.Problem},
	} {
		if line.value != "" {
			fmt.Fprintf(a.out, "%-10s %s\n", line.label, line.value)
		}
	}
	if d.Plan != nil {
		fmt.Fprintf(a.out, "%-10s %s (version %d, sha256 %.12s)\n", "plan", d.Plan.Path, d.Plan.Version, d.Plan.SHA256)
	}
	if d.Resumable && d.Owner == "" {
		fmt.Fprintf(a.out, "%-10s `pilothouse resume %s`\n", "resume", d.RunID)
	}
	printLost(a.out, d.RunInfo)
	for _, round := range d.Rounds {
		model := round.Model
		if model == "" {
			model = "inherit"
		}
		fmt.Fprintf(a.out, "\nround %s (%s, %s)\n", round.RoundID, round.Role, model)
		table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		for _, lane := range round.Lanes {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", laneName(lane), lane.Status, laneNote(d, lane))
		}
		_ = table.Flush() // as good as the other writes to stdout here
		for _, findings := range d.Findings {
			if findings.RoundID != round.RoundID {
				continue
			}
			for _, f := range findings.Findings {
				printFinding(a.out, f)
			}
		}
	}
}

// printLost tells of lanes that are to be run again.
func printLost(out io.Writer, run supervisor.RunInfo) {
	for _, round := range run.Lost {
		fmt.Fprintf(out, "%s: pilothouse ended before round %s had ended (%s); %s\n",
			run.RunID, round.RoundID, strings.Join(round.Lanes, ", "), round.WayOut)
	}
}

func laneName(lane store.LaneRecord) string {
	if lane.RefID != "" {
		return lane.LaneID + " " + lane.RefID
	}
	return lane.LaneID
}

func laneNote(d supervisor.RunDetail, lane store.LaneRecord) string {
	if lane.Error.Message != "" {
		return lane.Error.Class + ": " + oneLine(lane.Error.Message)
	}
	if lane.ResultFile != "" {
		return filepath.Join(d.Reviews, filepath.FromSlash(lane.ResultFile))
	}
	return ""
}
