package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/supervisor"
)

// progress shows a round at work on stderr. Close leaves the last state on the
// screen and gives the terminal back.
type progress interface {
	Watch(event any)
	Close()
}

// newProgress chooses the view: live lanes at a terminal, plain lines elsewhere.
func (a *app) newProgress() progress {
	mode := a.progress
	if mode == "auto" {
		mode = "plain"
		if file, ok := a.err.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
			mode = "tty"
		}
	}
	switch mode {
	case "tty":
		return newLiveProgress(a.err)
	case "plain":
		return &plainProgress{out: a.err, phase: map[string]string{}, title: map[string]string{}, warned: map[string]bool{}}
	default:
		return noProgress{}
	}
}

type noProgress struct{}

func (noProgress) Watch(any) {}
func (noProgress) Close()    {}

// headline names a round: what works on what.
func headline(m supervisor.RoundStarted) string {
	what := map[actors.Role]string{
		actors.Reviewer: "Reviewer", actors.Criticizer: "Criticizer", actors.RefAnalyst: "Refs",
	}[m.Role]
	model := m.Model
	if model == "" {
		model = "inherit"
	}
	return fmt.Sprintf("%s (%s) · run %s · round %s", what, model, m.RunID, m.RoundID)
}

// laneTitle is what a person calls a lane: the reference it reads, or its lens.
func laneTitle(lane actors.Lane) string {
	if lane.Ref != nil {
		return lane.Spec.ID + " " + lane.Ref.ID
	}
	return lane.Spec.ID
}

func tokens(u pijson.Usage) string {
	n := u.Tokens()
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM tok", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1fk tok", float64(n)/1e3)
	default:
		return fmt.Sprintf("%d tok", n)
	}
}

func elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// laneSummary is the last line about a lane.
func laneSummary(lane supervisor.LaneResult) string {
	took := time.Duration(lane.DurationMs) * time.Millisecond
	switch {
	case lane.Status == lanes.Cancelled:
		return "after " + elapsed(took)
	case lane.Status == lanes.Failed && lane.Error != nil:
		return fmt.Sprintf("%s: %s", lane.Error.Class, firstLine(lane.Error.Message))
	case lane.Reused:
		return "answer of an earlier call reused"
	}
	summary := fmt.Sprintf("%s · %s", tokens(lane.Usage), elapsed(took))
	switch {
	case lane.WellFormed != nil && !*lane.WellFormed:
		summary += " · answer does not follow the grammar"
	case lane.Sections != nil:
		summary += " · 7 sections"
	case lane.Holds != nil && *lane.Holds:
		summary += " · the plan holds"
	case lane.Questions != nil:
		summary += " · " + count(len(lane.Questions), "question")
	default:
		summary += " · " + count(len(lane.Findings), "finding")
	}
	return summary
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// firstLine is enough of an error for a list; the whole of it stands in the result.
func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		line += " …"
	}
	return line
}
