package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"

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
	printStored(out, r)
	fmt.Fprintf(out, "\nrun %s, round %s: %d of %d lanes complete\n", r.RunID, r.RoundID, r.Complete(), len(r.Lanes))
}

// printStored tells where the answers in full are. Those of a round lie in one
// directory, which is long enough to be named once.
func printStored(out io.Writer, r supervisor.RoundResult) {
	dir := ""
	for _, lane := range r.Lanes {
		if lane.ResultFile == nil {
			continue
		}
		if in := filepath.Dir(*lane.ResultFile); in != dir {
			dir = in
			fmt.Fprintf(out, "\nanswers in %s\n", dir)
		}
		fmt.Fprintf(out, "  %-14s %s\n", lane.LaneID, filepath.Base(*lane.ResultFile))
	}
}

func printFindings(out io.Writer, r supervisor.RoundResult) {
	for _, f := range r.Findings {
		if f.Severity == "" { // not read well enough; its lane is printed in full
			continue
		}
		printFinding(out, f)
		field(out, "affects", strings.Join(f.Affects, ", "))
		for _, e := range f.Evidence {
			field(out, "evidence", e.Raw)
		}
		field(out, "fix", f.Fix)
	}
	if len(r.Findings) == 0 && r.Complete() > 0 {
		fmt.Fprintln(out, "No findings.")
	}
}

// printFinding prints how bad a finding is, who reports it, and what it is.
func printFinding(out io.Writer, f actors.MergedFinding) {
	var sources []string
	for _, source := range f.Sources {
		sources = append(sources, source.LaneID+"/"+source.ID)
	}
	hanging(out, fmt.Sprintf("%-6s ", strings.ToUpper(f.Severity)), fmt.Sprintf("%s  %s", strings.Join(sources, ", "), f.Title))
}

func printQuestions(out io.Writer, r supervisor.RoundResult) {
	for _, lane := range r.Lanes {
		if lane.Summary != "" {
			hanging(out, "", lane.Summary)
		}
		for _, q := range lane.Questions {
			hanging(out, fmt.Sprintf("%d. ", q.Number), q.Text)
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
	if text = strings.TrimSpace(text); text != "" {
		hanging(out, fmt.Sprintf("       %-10s ", label+":"), text)
	}
}

// hanging prints a text behind a head, its further lines lined up under the
// first. At a terminal, lines that are too long for it are broken between words;
// elsewhere they stay whole, for they may be searched.
func hanging(out io.Writer, head, text string) {
	if file, ok := out.(*os.File); ok {
		columns, _, err := term.GetSize(int(file.Fd()))
		if room := columns - lipgloss.Width(head); err == nil && room > 20 {
			text = wrap(text, room)
		}
	}
	fmt.Fprintf(out, "%s%s\n", head, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", lipgloss.Width(head))))
}

// wrap breaks lines at blanks only, so that ids and paths stay in one piece. What
// belongs to an item of a list stays behind its dash.
func wrap(text string, room int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		column, margin := 0, ""
		if strings.HasPrefix(line, "- ") {
			margin = "  "
		}
		for i, word := range strings.Split(line, " ") {
			width := lipgloss.Width(word)
			switch {
			case i == 0:
			case column+1+width > room:
				out.WriteString("\n" + margin)
				column = len(margin)
			default:
				out.WriteByte(' ')
				column++
			}
			out.WriteString(word)
			column += width
		}
	}
	return out.String()
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(text, "\n", "\n    ")
}
