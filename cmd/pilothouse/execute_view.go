package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// executionView tells on stderr what an executor does, in lines: it works for hours, and
// what it did stays to be read. Review rounds are shown as those of refine.
type executionView struct {
	app   *app
	phase string
	round progress // of the review round at work
}

// Watch takes the events of an execution, one at a time.
func (v *executionView) Watch(event any) {
	if v.app.progress == "none" {
		return
	}
	out := v.app.err
	switch m := event.(type) {
	case supervisor.ExecutionStarted:
		fmt.Fprintf(out, "Executor · run %s · %s\n", m.RunID, m.PlanPath)
	case supervisor.ExecutionTurn:
		if text := firstLine(m.Text); text != "" {
			fmt.Fprintf(out, "executor  %s\n", text)
		}
		for _, id := range m.Verified {
			fmt.Fprintf(out, "executor  reports %s as verified\n", id)
		}
	case supervisor.ExecutionNotice:
		fmt.Fprintf(out, "%s: %s\n", m.Level, firstLine(m.Text))
	case lanes.Progress:
		if m.LaneID != string(actors.Executor) {
			v.round.Watch(event)
			return
		}
		if m.Phase != v.phase && m.Tool != "" {
			fmt.Fprintf(out, "executor  %s (%s, %s)\n", m.Phase, tokens(m.Usage), elapsed(m.Elapsed))
		}
		v.phase = m.Phase
	case supervisor.RoundStarted:
		v.round.Close()
		v.round = v.app.newProgress()
		v.round.Watch(event)
	default:
		v.round.Watch(event)
	}
}

// Close gives the terminal back.
func (v *executionView) Close() { v.round.Close() }

// printExecution prints the report of an execution for a person.
func printExecution(out io.Writer, r supervisor.ExecuteResult) {
	fmt.Fprintf(out, "run %s: %s\n", r.RunID, r.Outcome)
	if r.Reason != "" {
		fmt.Fprintf(out, "reason: %s\n", oneLine(r.Reason))
	}
	fmt.Fprintf(out, "plan: %s (sha256 %.12s)\n\n", r.PlanPath, r.PlanSHA256)
	for _, check := range r.Checks {
		mark := " "
		if check.Passed {
			mark = "x"
		}
		hanging(out, fmt.Sprintf("[%s] %-8s ", mark, check.ID), check.Text)
		if check.Passed {
			field(out, "evidence", check.Evidence)
			field(out, "passed at", fmt.Sprintf("%.12s", check.Commit))
		}
	}
	for _, round := range r.Rounds {
		fmt.Fprintf(out, "\nreview %s: %d of %d reviewers, %d high, %d medium, %d low\n", round.RoundID, round.Complete, round.Lanes,
			round.Findings["high"], round.Findings["medium"], round.Findings["low"])
	}
	printChanges(out, r)
	fmt.Fprintf(out, "\n%d turns, %s, $%.2f, %s\n", r.Turns, tokens(r.Usage), r.Cost, elapsed(time.Duration(r.DurationMs)*time.Millisecond))
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", oneLine(note))
	}
	if r.Transcript != "" {
		fmt.Fprintln(out, "transcript:", r.Transcript)
	}
	if r.WayOut != "" && r.Outcome == supervisor.ExecutionReviewPending {
		fmt.Fprintf(out, "go on with `%s --review 1`, or in a Pi session with `/resume-plans`\n", r.WayOut)
	}
}

// printChanges lists what differs from the commit at the approval.
func printChanges(out io.Writer, r supervisor.ExecuteResult) {
	if r.From == "" {
		return
	}
	fmt.Fprintf(out, "\n%s changed since %.12s\n", count(len(r.Changes), "file"), r.From)
	for _, change := range r.Changes {
		size := fmt.Sprintf("+%d -%d", change.Added, change.Removed)
		if change.New {
			size = "new"
		}
		fmt.Fprintf(out, "  %-10s %s\n", size, strings.ToValidUTF8(change.Path, "?"))
	}
}
