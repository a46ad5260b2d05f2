package actors_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/agents"
)

// exampleOf takes the worked example out of a role's prompt.
func exampleOf(t *testing.T, role string) string {
	t.Helper()
	prompt, err := agents.Prompt(role)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n```markdown\n(.*?)```\n").FindAllStringSubmatch(prompt, -1)
	if len(found) != 1 {
		t.Fatalf("the prompt of %s has %d examples, want one", role, len(found))
	}
	return found[0][1]
}

func TestTheReviewersExampleIsWellFormed(t *testing.T) {
	t.Parallel()
	want := actors.Review{
		Findings: []actors.Finding{
			{
				ID: "F-001", Severity: "high", Title: "The oven is lit before the flue is open", Affects: []string{"I-002", "VC-001"},
				Evidence: []actors.Evidence{
					{Path: "bakery/oven.txt", Line: 14, Quote: "light() refuses while the flue is closed", Raw: `bakery/oven.txt:14 — "light() refuses while the flue is closed"`},
					{Path: "bakery/PLAN_v1.md", Line: 31, Quote: "light the oven, then open the flue", Raw: `bakery/PLAN_v1.md:31 — "light the oven, then open the flue"`},
				},
				Impact:      "Every first bake of the day stops at the second step.",
				Fix:         "Move the opening of the flue from I-003 to the front of I-002.",
				Disposition: "accept",
			},
			{
				ID: "F-002", Severity: "medium", Title: "Nothing checks that the dough has risen", Affects: []string{"VC-003"},
				Evidence:    []actors.Evidence{{Path: "bakery/checks/", Raw: `bakery/checks/ — no match for "risen"`}},
				Impact:      "VC-003 passes with flat bread, because it only counts loaves.",
				Fix:         "Let VC-003 measure the height of one loaf of each batch.",
				Disposition: "needs-discussion",
			},
		},
		Checked:    []string{"The amounts of flour in I-001 against bakery/recipe.txt:3", "The order of I-001 to I-005, step by step"},
		WellFormed: true, Problems: []string{},
	}
	if diff := cmp.Diff(want, actors.ParseReview(exampleOf(t, "reviewer"))); diff != "" {
		t.Error(diff)
	}
}

func TestTheCriticizersExampleIsWellFormed(t *testing.T) {
	t.Parallel()
	want := actors.Criticism{
		Summary: "The plan assumes that the new oven heats as evenly as the old one, and every baking time in I-002 to I-005 rests on that. Nothing in the plan measures it.",
		Questions: []actors.Question{
			{
				Number: 1, Text: `Which part of I-002 changes if the new oven turns out 20 degrees cooler at the back (bakery/oven.txt:22 — "rear sensor not calibrated")?`,
				Why: "All baking times are copied from the old oven, and VC-001 only looks at the front row.",
			},
			{
				Number: 2, Text: "Who decides on the morning itself that a batch is too pale to be sold?",
				Why: "I-004 names nobody, so the check in VC-002 can be skipped without anyone noticing.",
			},
		},
		WellFormed: true, Problems: []string{},
	}
	if diff := cmp.Diff(want, actors.ParseCriticism(exampleOf(t, "criticizer"))); diff != "" {
		t.Error(diff)
	}
}

func TestTheRefAnalystsExampleIsWellFormed(t *testing.T) {
	t.Parallel()
	got := actors.ParseRefAnalysis(exampleOf(t, "ref-analyst"))
	if !got.WellFormed {
		t.Fatalf("problems: %q", got.Problems)
	}
	if want := "In full: handbook/. By searching: checks/. Not opened: photos/."; got.Coverage != want {
		t.Errorf("coverage is %q, want %q", got.Coverage, want)
	}
	if want := "The photos could not be read, so the layout of the shelves is inferred from the text."; got.Gaps != want {
		t.Errorf("gaps are %q, want %q", got.Gaps, want)
	}
}

func TestWhatAPlanThatHoldsIsToldToLookLikeIsWellFormedAndHolds(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"reviewer", "criticizer"} {
		prompt, err := agents.Prompt(role)
		if err != nil {
			t.Fatal(err)
		}
		statement := map[string]string{"reviewer": "No findings.", "criticizer": "No questions."}[role]
		if !strings.Contains(prompt, "`"+statement+"`") {
			t.Errorf("the prompt of %s does not set the words %q", role, statement)
		}
	}
	if r := actors.ParseReview("## Findings\nNo findings.\n\n## Checked\n- I-001 against src/a.go:1\n"); !r.Holds || !r.WellFormed {
		t.Errorf("the review does not hold: %q", r.Problems)
	}
	if c := actors.ParseCriticism("## Summary\nI tried the order and the data format; both are checked by VC-001.\n\n## Questions\nNo questions.\n"); !c.Holds || !c.WellFormed {
		t.Errorf("the criticism does not hold: %q", c.Problems)
	}
}

func TestAPromptThatIsEchoedIsNoReport(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"reviewer", "criticizer", "ref-analyst"} {
		prompt, err := agents.Prompt(role)
		if err != nil {
			t.Fatal(err)
		}
		if r := actors.ParseReview(prompt); len(r.Findings) > 0 || r.Holds || r.WellFormed {
			t.Errorf("the prompt of %s reads as a review: %+v", role, r)
		}
		if c := actors.ParseCriticism(prompt); c.Holds || c.WellFormed {
			t.Errorf("the prompt of %s reads as a criticism: %+v", role, c)
		}
		if a := actors.ParseRefAnalysis(prompt); a.WellFormed {
			t.Errorf("the prompt of %s reads as an analysis", role)
		}
	}
}

// The short form in a brief and the full form in the prompt have to agree, for
// a child gets both.
func TestBriefAndPromptSetTheSameForm(t *testing.T) {
	t.Parallel()
	for role, test := range map[string]struct {
		brief string
		parts []string
	}{
		"reviewer": {
			actors.ReviewBrief{Role: "reviewer"}.Text(),
			[]string{"## Findings", "## Checked", "No findings.", "- Affects: ", "- Evidence: ", "- Impact: ", "- Fix: ", "- Disposition: ", " · "},
		},
		"criticizer": {
			actors.ReviewBrief{Role: "criticizer"}.Text(),
			[]string{"## Summary", "## Questions", "No questions.", "Why: ", "at most three sentences"},
		},
		"ref-analyst": {
			actors.RefBrief{}.Text(),
			[]string{
				"## Overview", "## Key Mechanisms And Design Tradeoffs", "## Adoptable Ideas For The Target Repo", "## Pitfalls And Anti-Patterns",
				"## Evidence Citations", "## Coverage", "## Evidence Gaps", "exactly", "seven sections",
			},
		},
	} {
		prompt, err := agents.Prompt(role)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range test.parts {
			if !strings.Contains(prompt, part) {
				t.Errorf("the prompt of %s does not set %q", role, part)
			}
			if !strings.Contains(test.brief, part) {
				t.Errorf("the brief of %s does not set %q", role, part)
			}
		}
	}
}
