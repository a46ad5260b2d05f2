package main

import (
	"fmt"
	"io"
	"strings"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// printRound prints a round for a person: the findings of all lanes, worst
// first, or the questions, or what each reference offers; then where the full
// answers are.
func printRound(out io.Writer, r supervisor.RoundResult) {
	if len(r.Lanes) == 0 { // current-session mode: the brief is the result
		fmt.Fprintln(out, r.Text)
		return
	}
	switch r.Role {
	case actors.Criticizer:
		printQuestions(out, r)
	case actors.RefAnalyst:
		printAnalyses(out, r)
	default:
		printFindings(out, r)
	}
	for _, lane := range r.Lanes {
		if lane.WellFormed != nil && !*lane.WellFormed {
			fmt.Fprintf(out, "\n%s answered outside the grammar (%s); its answer in full:\n\n%s\n",
				lane.LaneID, strings.Join(lane.Problems, "; "), indent(strings.TrimSpace(lane.Output)))
		}
		if lane.Error != nil {
			fmt.Fprintf(out, "\n%s %s: %s\n", lane.LaneID, lane.Status, lane.Error.Message)
		}
	}
	fmt.Fprintln(out)
	for _, lane := range r.Lanes {
		if lane.ResultFile != nil {
			fmt.Fprintf(out, "%s: %s\n", lane.LaneID, *lane.ResultFile)
		}
	}
	fmt.Fprintf(out, "run %s, round %s: %d of %d lanes complete\n", r.RunID, r.RoundID, r.Complete(), len(r.Lanes))
}

func printFindings(out io.Writer, r supervisor.RoundResult) {
	total := 0
	for _, severity := range []string{"high", "medium", "low"} {
		for _, lane := range r.Lanes {
			for _, f := range lane.Findings {
				if f.Severity != severity {
					continue
				}
				total++
				fmt.Fprintf(out, "%-6s %s/%s  %s\n", strings.ToUpper(f.Severity), lane.LaneID, f.ID, f.Title)
				field(out, "affects", strings.Join(f.Affects, ", "))
				for _, e := range f.Evidence {
					field(out, "evidence", e.Raw)
				}
				field(out, "fix", f.Fix)
			}
		}
	}
	if total == 0 && r.Complete() > 0 {
		fmt.Fprintln(out, "No findings.")
	}
}

func printQuestions(out io.Writer, r supervisor.RoundResult) {
	for _, lane := range r.Lanes {
		if lane.Summary != "" {
			fmt.Fprintln(out, lane.Summary)
		}
		for _, q := range lane.Questions {
			fmt.Fprintf(out, "%d. %s\n", q.Number, q.Text)
			field(out, "why", q.Why)
		}
	}
}

func printAnalyses(out io.Writer, r supervisor.RoundResult) {
	for i, lane := range r.Lanes {
		if lane.Status != lanes.Complete || lane.Sections == nil {
			continue
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s (%s, batch %d)\n", lane.RefID, lane.LaneID, lane.Batch)
		field(out, "adoptable", lane.Sections.Adoptable)
		field(out, "pitfalls", lane.Sections.Pitfalls)
		field(out, "gaps", lane.Sections.Gaps)
	}
}

// field prints a labelled text, its further lines lined up under the first.
func field(out io.Writer, label, text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	fmt.Fprintf(out, "       %-10s %s\n", label+":", strings.ReplaceAll(text, "\n", "\n                  "))
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
