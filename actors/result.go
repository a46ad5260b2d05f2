package actors

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pilothouse/lanes"
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

// truncate keeps the head of a text within the limits and says what is missing
// and where all of it is. It cuts inside a line only when the bytes run out, and
// never inside a character.
func truncate(text, stored string) string {
	head := text
	if end := lineStart(text, maxTextLines); end < len(text) {
		head = text[:end]
	}
	if len(head) > maxTextBytes {
		end := maxTextBytes
		for !utf8.RuneStart(head[end]) {
			end--
		}
		head = head[:end]
	}
	if len(head) == len(text) {
		return text
	}
	head = strings.TrimRight(head, "\n")
	note := fmt.Sprintf("[Truncated: %d of %d lines, %d of %d bytes shown.", lineCount(head), lineCount(text), len(head), len(text))
	if stored != "" {
		note += " The full answers are in " + stored + "."
	}
	return head + "\n\n" + note + "]"
}

func lineCount(text string) int { return strings.Count(text, "\n") + 1 }

// lineStart returns where the line with the given number, from 0, starts; the
// length of the text when there is none.
func lineStart(text string, number int) int {
	start := 0
	for range number {
		end := strings.IndexByte(text[start:], '\n')
		if end < 0 {
			return len(text)
		}
		start += end + 1
	}
	return start
}

// next tells the asking agent how the workflow goes on (spec: subagents 4.1, 4.2).
func next(s Summary) string {
	switch {
	case !slices.ContainsFunc(s.Outcomes, func(o Outcome) bool { return o.Result.Status == lanes.Complete }):
		return "Next: no lane has answered, so there is nothing to work with. Remove the cause named above and make the call again. " +
			"If the model is not available, choose another: `plans set-role --modelSelector inherit|provider/model`, or --model for one call."
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
