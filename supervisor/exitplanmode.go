package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// The choices at the end of a review of a plan.
const (
	choiceApprove  = "Approve this plan and leave plan mode"
	choiceKeep     = "Keep planning"
	choiceFeedback = "Keep planning, with feedback"
)

// exitPlanMode is the tool exit_plan_mode: the review of a plan by the user. Plan mode
// ends only when the user approves the very revision that was shown; whatever else
// happens, it stays on (spec: plan mode, order of checks).
func exitPlanMode(ctx context.Context, s *System, session Session, ui UI, args json.RawMessage) (Reply, error) {
	var params struct {
		Plan string `json:"plan"`
	}
	if err := json.Unmarshal(args, &params); err != nil {
		return Reply{}, inputErrorf("the parameters of exit_plan_mode are not what it takes: %v", err)
	}
	reviewed, err := s.planModes.get(session.ID)
	if err != nil {
		return Reply{}, err
	}
	if !reviewed.Active {
		return refusal("Plan mode is not on, so there is nothing to leave. Work on, or let the user start it with /plan."), nil
	}
	plan := trimPlan(params.Plan)
	if why := planFault(plan); why != "" {
		return stay("The plan %s. Submit the complete plan as Markdown that begins with a # heading.", why), nil
	}
	if !ui.Has() {
		return stay("Nobody can review the plan here, so it is not approved. Show the plan as your answer and ask the user to leave plan mode with /plan off."), nil
	}
	title := "Approve this plan?"
	if ui.Editor() {
		edited, ok, err := ui.Edit(ctx, "The plan. Send it unchanged to decide on it; an edit goes back to the agent.", plan)
		if err != nil {
			return Reply{}, fmt.Errorf("show the plan: %w", err)
		}
		if !ok {
			return stay("The user cancelled the review of the plan."), nil
		}
		if !sameRevision(plan, edited) {
			return revise(edited), nil
		}
	} else {
		title = plan + "\n\n" + title
	}
	return decide(ctx, s, session, ui, title, plan, reviewed)
}

func decide(ctx context.Context, s *System, session Session, ui UI, title, plan string, reviewed planMode) (Reply, error) {
	options := []string{choiceApprove, choiceKeep, choiceFeedback}
	choice, ok, err := ui.Select(ctx, title, options)
	if err != nil {
		return Reply{}, fmt.Errorf("ask for the decision: %w", err)
	}
	switch {
	case !ok:
		return stay("The user dismissed the question about the plan."), nil
	case options[choice] == choiceFeedback:
		feedback, ok, err := ui.Input(ctx, "What should be different?", "")
		if err != nil {
			return Reply{}, fmt.Errorf("ask for feedback: %w", err)
		}
		if feedback = strings.TrimSpace(feedback); !ok || feedback == "" {
			return stay("The user wants to keep planning and gave no feedback."), nil
		}
		return stay("The user does not approve the plan yet and says:\n\n%s\n\nRevise the plan and submit it again with exit_plan_mode.", feedback), nil
	case options[choice] != choiceApprove:
		return stay("The user wants to keep planning."), nil
	}
	digest := planDigest(plan)
	before, after, err := s.planModes.change(session.ID, func(m planMode) (planMode, bool) { return m.approve(reviewed, digest) })
	if err != nil {
		return Reply{}, fmt.Errorf("record the approval: %w", err)
	}
	if before == after {
		return stay("Plan mode was left or entered again during the review, so the approval does not count."), nil
	}
	details, err := json.Marshal(approvedPlan{Approved: true, SHA256: digest, Plan: plan})
	if err != nil {
		return Reply{}, fmt.Errorf("encode the approved plan: %w", err)
	}
	return Reply{
		Actions: []Action{planStatus(after), notice(LevelInfo, "The plan is approved and plan mode is off.")},
		Result:  &ToolResult{Text: "The user approved the plan as submitted, and plan mode is off. Carry it out now.", Details: details},
	}, nil
}

// approvedPlan are the details of the result of an approved plan.
type approvedPlan struct {
	Approved bool   `json:"approved"`
	SHA256   string `json:"sha256"` // of the plan, to the byte
	Plan     string `json:"plan"`
}

// planFault says what a plan lacks, "" for nothing.
func planFault(plan string) string {
	switch {
	case plan == "":
		return "is empty"
	case !beginsWithHeading(plan):
		return "does not begin with a # heading"
	}
	return ""
}

// beginsWithHeading tells whether the first line is hashes, a space and text.
func beginsWithHeading(plan string) bool {
	line, _, _ := strings.Cut(plan, "\n")
	text := strings.TrimLeft(line, "#")
	words := strings.TrimLeft(text, " \t")
	return text != line && words != text && strings.TrimSpace(words) != ""
}

// trimPlan takes away what surrounds a plan, as editors do.
func trimPlan(plan string) string { return strings.Trim(plan, " \t\r\n\f\v\u00a0\ufeff") }

// asEdited is how Pi's editor gives a text back that nobody touched: with its own line
// ends, and spaces for tabs.
var asEdited = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ")

// sameRevision tells whether an editor gave back the plan that it was given.
func sameRevision(shown, edited string) bool {
	return edited == shown || trimPlan(edited) == trimPlan(asEdited.Replace(shown))
}

// revise hands an edited plan back: it was not what the agent had submitted, so nobody
// has approved it as a whole.
func revise(edited string) Reply {
	edited = trimPlan(edited)
	if why := planFault(edited); why != "" {
		return stay("The user edited the plan in the review, and the result %s. Ask what is meant, or submit a revised plan with exit_plan_mode.", why)
	}
	return stay("The user edited the plan in the review. An edited plan is not approved: take the edit as feedback and submit the revised plan with exit_plan_mode.\n\n%s", edited)
}

// stay is a result after which plan mode is on.
func stay(format string, args ...any) Reply {
	return refusal(fmt.Sprintf(format, args...) + "\n\nPlan mode stays on: do not change anything.")
}

func refusal(text string) Reply {
	return Reply{Result: &ToolResult{Text: text, IsError: true}}
}
