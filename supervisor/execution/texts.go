package execution

import (
	"fmt"
	"strings"
)

// TerminationQuestionID is the id of the question when the review of the implementation
// ends (spec: execution 5.5).
const TerminationQuestionID = "termination-condition"

// TerminationOptions are the answers to that question, the recommended one first.
// [ParseTermination] knows them.
var TerminationOptions = []string{
	"Goal wait: until no check is left unpassed",
	"Until no finding of high severity is left (at most 5 rounds)",
	"1 round",
	"2 rounds",
	"3 rounds",
}

// TerminationInstructions tell an agent to ask the question, and what to do with the
// answer.
func TerminationInstructions() string {
	var text strings.Builder
	text.WriteString("Ask with ask_choice when the review of the implementation ends: questionId \"" + TerminationQuestionID + "\", autoComplete false, and these options in this order, the first recommended:\n")
	for i, option := range TerminationOptions {
		fmt.Fprintf(&text, "%d. %s\n", i+1, option)
	}
	text.WriteString("Record the answer with plans record-checkpoint, transition implementation-review-configured. " +
		"Then, for each round: refine with role reviewer and target implementation, mend the findings you accept and test again, " +
		"record review-consolidated, then implementation-round-finished. When the condition is met, record completed with the evidence.")
	return text.String()
}

// Started tells that an execution has begun.
func (s *State) Started(planPath string) string {
	checks := "1 check"
	if n := len(s.plan.Checks); n != 1 {
		checks = fmt.Sprintf("%d checks", n)
	}
	return fmt.Sprintf("**pi-plans: executing** `%s`, %s. Progress is shown in the status line; a check counts with its marker, such as `[DONE:%s]`.",
		planPath, checks, s.plan.Checks[0].ID)
}

// Completed sums up an execution whose checks have all passed.
func (s *State) Completed(planPath string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "**pi-plans: every check of** `%s` **has passed.**\n", planPath)
	for _, check := range s.plan.Checks {
		fmt.Fprintf(&text, "\n- ✓ %s", Shorten(check.Text))
	}
	return text.String()
}

// Items lists the checks of a plan for whoever is asked to let it be executed.
func (s *State) Items() string {
	var text strings.Builder
	for _, check := range s.plan.Checks {
		mark := " "
		if s.done[check.ID] {
			mark = "x"
		}
		fmt.Fprintf(&text, "[%s] %s\n", mark, Shorten(check.Text))
	}
	for _, problem := range s.plan.Problems {
		fmt.Fprintf(&text, "! %s\n", problem.Error())
	}
	return text.String()
}
