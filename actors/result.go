package actors

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of a tool result's text, those of pi's own tools (spec: subagents 4.1).
const (
	maxTextLines = 2000
	maxTextBytes = 50 << 10
)

// Summary is what [Text] puts into words.
type Summary struct {
	Role     Role
	Target   string
	RunID    string
	RoundID  string
	Outcomes []Outcome // in lane order
	// Stored names the directory of the full answers, "" when there is none.
	Stored string
}

// Text is the result of a round for the model or person who asked: every lane's
// answer under a heading, cut to the limits of a tool result, then what to do
// with it. Reused answers come first and failed lanes say why.
func Text(s Summary) string {
	var sections []string
	for _, reused := range []bool{true, false} {
		for _, outcome := range s.Outcomes {
			if outcome.Reused == reused {
				sections = append(sections, section(s.Role, outcome))
			}
		}
	}
	answers := truncate(strings.Join(sections, "\n\n---\n\n"), s.Stored)
	return answers + "\n\n---\n\n" + next(s)
}

func section(role Role, o Outcome) string {
	title := "### " + o.Lane.Spec.Name
	switch {
	case o.Lane.Ref != nil && o.Lane.Ref.Title != "":
		title += " — " + o.Lane.Ref.Title
	case o.Lane.Ref != nil:
		title += " — " + o.Lane.Ref.ID
	case o.Lane.Lens != "":
		title += " (" + o.Lane.Lens + ")"
	}
	if o.Reused {
		title += " [REUSED]"
	}
	if o.Result.Error != nil {
		return fmt.Sprintf("%s — FAILED\n\n%s (%s)", title, o.Result.Error.Message, o.Result.Error.Class)
	}
	body := strings.TrimSpace(o.Result.Output)
	if !o.Report.WellFormed {
		body += fmt.Sprintf("\n\n_This answer does not follow the %s's output grammar (%s); read it as prose._", role, strings.Join(o.Report.Problems, "; "))
	}
	return title + "\n\n" + body
}

// truncate keeps the head of a text within the limits, at a line's end, and says
// what is missing and where all of it is.
func truncate(text, stored string) string {
	lines := strings.SplitAfter(text, "\n")
	kept, size := 0, 0
	for kept < len(lines) && kept < maxTextLines && size+len(lines[kept]) <= maxTextBytes {
		size += len(lines[kept])
		kept++
	}
	if kept == len(lines) {
		return text
	}
	head := text[:size]
	if kept == 0 { // one line longer than all we may show
		end := maxTextBytes
		for !utf8.RuneStart(text[end]) {
			end--
		}
		head = text[:end]
	}
	note := fmt.Sprintf("[Truncated: %d of %d lines, %d of %d bytes shown.", kept, len(lines), len(head), len(text))
	if stored != "" {
		note += " The full answers are in " + stored + "."
	}
	return strings.TrimRight(head, "\n") + "\n\n" + note + "]"
}

// next tells the asking agent how the workflow goes on (spec: subagents 4.1, 4.2).
func next(s Summary) string {
	switch {
	case s.Role == RefAnalyst:
		return "Next: write REF_ANALYSIS.md in the run's artifact directory from these sections. " +
			"Record coverage and gaps of every reference with `plans record-ref`. " +
			"Then ask the user at least three adoption questions for each reference with ask_choice."
	case s.Role == Criticizer:
		return fmt.Sprintf("Next: ask the user each question above with ask_choice, one at a time and with a stable questionId. "+
			"When all are answered, revise the plan, then record it: `plans record-checkpoint` with transition review-consolidated and roundId %s.", s.RoundID)
	case s.Target == TargetImplementation:
		return fmt.Sprintf("Next: accept or reject each finding on its evidence and write the decisions to <plan>_implementation_review.md in the artifact directory. "+
			"Fix what is accepted and verify again. Then `plans record-checkpoint`: review-consolidated with roundId %s and dispositionArtifact, "+
			"implementation-round-finished, and, when the termination condition holds, completed with evidence.", s.RoundID)
	default:
		return fmt.Sprintf("Next: accept or reject each finding on its evidence and write the decisions to <plan>_reviewer_comments.md in the artifact directory. "+
			"Show the user at most five high-priority findings and revise the plan. "+
			"Then `plans record-checkpoint` with transition review-consolidated, roundId %s and dispositionArtifact, and ask the next question.", s.RoundID)
	}
}
