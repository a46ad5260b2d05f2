package supervisor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pilothouse/supervisor"
)

// longPlan is more than a screen; its last line counts as much as its first.
var longPlan = "# Move the bakery\n\n" + strings.Repeat("- one more step\n", 200) + "- the last step"

func TestApprovalOfTheUneditedPlanLeavesPlanMode(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.command("plan", "", p.nobody)
	result := p.tool("exit_plan_mode", object{"plan": "\n" + longPlan + "\n\n"}, p.inTurn(
		func(d supervisor.Dialog) supervisor.Answer {
			if d.Kind != supervisor.DialogEditor || d.Text != longPlan {
				t.Errorf("the whole plan is not in an editor: %+v", d)
			}
			return unchanged(d)
		},
		func(d supervisor.Dialog) supervisor.Answer {
			if len(d.Options) != 3 || strings.Contains(d.Title, "one more step") {
				t.Errorf("the decision is not one of three: %+v", d)
			}
			return choose("Approve")(d)
		},
	))
	if result.IsError || p.planning() {
		t.Fatalf("not approved, or plan mode holds still: %+v", result)
	}
	var details struct {
		Approved     bool
		SHA256, Plan string
	}
	if err := json.Unmarshal(result.Details, &details); err != nil {
		t.Fatal(err)
	}
	if !details.Approved || details.Plan != longPlan || len(details.SHA256) != 64 {
		t.Errorf("the approval does not say what was approved: %+v", details)
	}
}

func TestWithoutAnEditorTheSelectorCarriesTheWholePlan(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.screen.Editor = false
	p.command("plan", "", p.nobody)
	result := p.tool("exit_plan_mode", object{"plan": longPlan}, p.inTurn(func(d supervisor.Dialog) supervisor.Answer {
		if d.Kind != supervisor.DialogSelect || !strings.HasPrefix(d.Title, longPlan) {
			t.Errorf("the selector does not show the plan: %+v", d)
		}
		return choose("Approve")(d)
	}))
	if result.IsError || p.planning() {
		t.Errorf("not approved: %+v", result)
	}
}

func TestWhateverIsNotAnApprovalKeepsPlanMode(t *testing.T) {
	t.Parallel()
	type dialogs = []func(supervisor.Dialog) supervisor.Answer
	for name, test := range map[string]struct {
		plan    string
		screen  func(*supervisor.Screen)
		answers dialogs
		says    []string
	}{
		"an empty plan":              {plan: " \n\t", says: []string{"empty", "# heading"}},
		"a plan without a heading":   {plan: "First we bake.", says: []string{"heading"}},
		"a hash without a space":     {plan: "#Plan", says: []string{"heading"}},
		"nobody there":               {plan: "# Plan", screen: func(s *supervisor.Screen) { s.Has = false }, says: []string{"/plan off", "not approved"}},
		"a cancelled editor":         {plan: "# Plan", answers: dialogs{dismiss}, says: []string{"cancelled the review"}},
		"an edited plan":             {plan: "# Plan", answers: dialogs{write("# Plan B\n- other")}, says: []string{"edited", "# Plan B\n- other", "submit the revised plan"}},
		"an edit that is no plan":    {plan: "# Plan", answers: dialogs{write("no heading")}, says: []string{"edited", "does not begin with a # heading"}},
		"an edit that leaves none":   {plan: "# Plan", answers: dialogs{write("  ")}, says: []string{"edited", "is empty"}},
		"a dismissed decision":       {plan: "# Plan", answers: dialogs{unchanged, dismiss}, says: []string{"dismissed"}},
		"keep planning":              {plan: "# Plan", answers: dialogs{unchanged, choose("Keep planning")}, says: []string{"keep planning"}},
		"feedback":                   {plan: "# Plan", answers: dialogs{unchanged, choose("Keep planning, with"), write(" use rye ")}, says: []string{"use rye", "submit it again"}},
		"empty feedback":             {plan: "# Plan", answers: dialogs{unchanged, choose("Keep planning, with"), write(" ")}, says: []string{"no feedback"}},
		"dismissed feedback":         {plan: "# Plan", answers: dialogs{unchanged, choose("Keep planning, with"), dismiss}, says: []string{"no feedback"}},
		"a dismissed plain selector": {plan: "# Plan", screen: func(s *supervisor.Screen) { s.Editor = false }, answers: dialogs{dismiss}, says: []string{"dismissed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			p.command("plan", "", p.nobody)
			if test.screen != nil {
				test.screen(&p.screen)
			}
			result := p.tool("exit_plan_mode", object{"plan": test.plan}, p.inTurn(test.answers...))
			if !result.IsError {
				t.Errorf("no error: %+v", result)
			}
			says(t, result.Text, append(test.says, "Plan mode stays on")...)
			if !p.planning() {
				t.Error("plan mode was left")
			}
		})
	}
}

func TestExitPlanModeFailsWhilePlanModeIsOffAndShowsNothing(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	result := p.tool("exit_plan_mode", object{"plan": "no heading either"}, p.nobody)
	if !result.IsError {
		t.Errorf("no error: %+v", result)
	}
	says(t, result.Text, "not on", "/plan")
}

func TestAnApprovalOfAnEarlierPlanModeDoesNotCount(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.command("plan", "", p.nobody)
	result := p.tool("exit_plan_mode", object{"plan": "# Plan"}, p.inTurn(unchanged, func(d supervisor.Dialog) supervisor.Answer {
		p.command("plan", "off", p.nobody)
		p.command("plan", "on", p.nobody)
		return choose("Approve")(d)
	}))
	if !result.IsError || !p.planning() {
		t.Errorf("an approval that was asked for before counts now: %+v", result)
	}
	says(t, result.Text, "does not count")
}

func TestOfTwoReviewsAtOnceOneEndsPlanMode(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.command("plan", "", p.nobody)
	var inner supervisor.ToolResult
	outer := p.tool("exit_plan_mode", object{"plan": "# One"}, p.inTurn(unchanged, func(d supervisor.Dialog) supervisor.Answer {
		inner = p.tool("exit_plan_mode", object{"plan": "# Two"}, p.inTurn(unchanged, choose("Approve")))
		return choose("Approve")(d)
	}))
	if inner.IsError || !outer.IsError || p.planning() {
		t.Errorf("first %+v, second %+v", inner, outer)
	}
}
