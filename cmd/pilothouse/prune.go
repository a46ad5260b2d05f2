package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"pilothouse/supervisor"
)

// pruneRuns removes finished runs, or tells which would go.
func (a *app) pruneRuns(ctx context.Context, age string, yes bool) error {
	atLeast, err := parseAge(age)
	if err != nil {
		return &usageError{err}
	}
	return a.withSystem(func(system *supervisor.System) error {
		result, err := system.Prune(ctx, supervisor.PruneRequest{Session: a.session(), Age: atLeast, Confirmed: yes})
		if err != nil {
			return err
		}
		if a.json {
			err = a.printJSON(result)
		} else {
			err = a.printPruned(result, age)
		}
		for _, run := range result.Runs {
			if run.Problem != "" && err == nil {
				err = &statusError{exitFailed}
			}
		}
		return err
	})
}

func (a *app) printPruned(result supervisor.PruneResult, age string) error {
	switch {
	case len(result.Runs) == 0:
		fmt.Fprintf(a.out, "No finished run has been unchanged for %s.\n", age)
	case result.Removed:
		fmt.Fprintf(a.out, "Removed, finished and unchanged for %s:\n", age)
	default:
		fmt.Fprintf(a.out, "Finished and unchanged for %s; add --yes to remove:\n", age)
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, run := range result.Runs {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", run.RunID, run.Status, run.UpdatedAt)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, run := range result.Runs {
		if run.Problem != "" {
			fmt.Fprintf(a.err, "pilothouse: %s\n", oneLine(run.Problem))
		}
	}
	for _, run := range result.Kept {
		fmt.Fprintf(a.err, "pilothouse: %s\n", oneLine(run.Reason))
	}
	return nil
}

// parseAge reads a whole number of hours, days or weeks.
func parseAge(text string) (time.Duration, error) {
	units := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if text != "" {
		unit, known := units[text[len(text)-1]]
		n, err := strconv.ParseUint(strings.TrimSpace(text[:len(text)-1]), 10, 32)
		if known && err == nil && n <= uint64(math.MaxInt64/unit) {
			return time.Duration(n) * unit, nil
		}
	}
	return 0, fmt.Errorf("--prune %q is not an age; write it like 30d, 12w or 36h", text)
}
