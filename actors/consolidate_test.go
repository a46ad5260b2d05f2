package actors_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/actors"
)

func finding(id, severity string, affects []string, evidence ...actors.Evidence) actors.Finding {
	return actors.Finding{ID: id, Severity: severity, Title: severity + " " + id, Affects: affects, Evidence: evidence}
}

func at(path string, line int) actors.Evidence {
	return actors.Evidence{Path: path, Line: line, Raw: fmt.Sprintf("%s:%d", path, line)}
}

// told is what a merged finding says in short.
func told(merged []actors.MergedFinding) []string {
	var all []string
	for _, m := range merged {
		text := fmt.Sprintf("%d %s", m.Agreement, m.Severity)
		for _, s := range m.Sources {
			text += " " + s.LaneID + "/" + s.ID
		}
		all = append(all, text)
	}
	return all
}

func TestReviewersWhoReportTheSameFaultAgree(t *testing.T) {
	t.Parallel()
	got := actors.Consolidate([]actors.LaneFindings{
		{"reviewer-2", []actors.Finding{
			finding("F-001", "low", []string{"I-9"}, at("b.go", 1)),
			finding("F-002", "high", []string{"I-1", "VC-3"}, at("./a.go", 14), at("c.go", 7)),
		}},
		{"reviewer-1", []actors.Finding{
			finding("F-001", "medium", []string{"I-1"}, at("a.go", 10)),
			finding("F-002", "medium", []string{"I-2"}, at("a.go", 10)),
		}},
		{"reviewer-3", []actors.Finding{finding("F-001", "low", []string{"VC-3"}, at("c.go", 9))}},
	})
	want := []string{
		"3 high reviewer-1/F-001 reviewer-2/F-002 reviewer-3/F-001",
		"1 medium reviewer-1/F-002",
		"1 low reviewer-2/F-001",
	}
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Fatal(diff)
	}
	first := got[0]
	if first.Title != "high F-002" || !slices.Equal(first.Affects, []string{"I-1", "VC-3"}) {
		t.Errorf("got %+v", first)
	}
	if diff := cmp.Diff([]actors.Evidence{at("a.go", 10), at("c.go", 7)}, first.Evidence); diff != "" {
		t.Error(diff)
	}
}

func TestWhatMakesTwoFindingsTheSame(t *testing.T) {
	t.Parallel()
	quote := func(path, words string) actors.Evidence {
		return actors.Evidence{Path: path, Quote: words, Raw: path + " " + words}
	}
	for name, c := range map[string]struct {
		a, b actors.Finding
		same bool
	}{
		"one id and one place":     {finding("", "", []string{"I-1"}, at("a.go", 1)), finding("", "", []string{"I-2", "I-1"}, at("a.go", 6)), true},
		"lines too far apart":      {finding("", "", []string{"I-1"}, at("a.go", 1)), finding("", "", []string{"I-1"}, at("a.go", 7)), false},
		"another file":             {finding("", "", []string{"I-1"}, at("a.go", 1)), finding("", "", []string{"I-1"}, at("b.go", 1)), false},
		"another id":               {finding("", "", []string{"I-1"}, at("a.go", 1)), finding("", "", []string{"I-2"}, at("a.go", 1)), false},
		"the plan as a whole":      {finding("", "", []string{"plan"}, at("a.go", 1)), finding("", "", []string{"plan"}, at("a.go", 1)), true},
		"the same words":           {finding("", "", []string{"I-1"}, quote("a.go", "if  x {")), finding("", "", []string{"I-1"}, quote("a.go", "IF x {")), true},
		"other words":              {finding("", "", []string{"I-1"}, quote("a.go", "if x {")), finding("", "", []string{"I-1"}, quote("a.go", "if y {")), false},
		"words, and a line":        {finding("", "", []string{"I-1"}, quote("a.go", "if x {")), finding("", "", []string{"I-1"}, at("a.go", 3)), false},
		"a file as a whole":        {finding("", "", []string{"I-1"}, quote("a.go", "")), finding("", "", []string{"I-1"}, quote("a.go", "")), true},
		"words without a file":     {finding("", "", []string{"I-1"}, actors.Evidence{Raw: "the README"}), finding("", "", []string{"I-1"}, actors.Evidence{Raw: "The  readme"}), true},
		"no evidence":              {finding("", "", []string{"I-1"}), finding("", "", []string{"I-1"}), false},
		"nothing affected":         {finding("", "", nil, at("a.go", 1)), finding("", "", nil, at("a.go", 1)), false},
		"evidence without content": {finding("", "", []string{"I-1"}, actors.Evidence{}), finding("", "", []string{"I-1"}, actors.Evidence{}), false},
	} {
		got := actors.Consolidate([]actors.LaneFindings{{"r1", []actors.Finding{c.a}}, {"r2", []actors.Finding{c.b}}})
		if same := len(got) == 1; same != c.same {
			t.Errorf("%s: %v", name, told(got))
		}
		alone := actors.Consolidate([]actors.LaneFindings{{"r1", []actors.Finding{c.a, c.b}}})
		if len(alone) != 2 {
			t.Errorf("%s: one reviewer agrees with itself: %v", name, told(alone))
		}
	}
	if got := actors.Consolidate(nil); got == nil || len(got) != 0 {
		t.Errorf("without reviews: %v", got)
	}
}

// Every finding ends in exactly one merged one, whatever the order of the lanes; none
// counts a reviewer twice or is less severe than what it stands for.
func TestNoFindingIsLostOrCountedTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lanes []actors.LaneFindings
		given := map[actors.FindingSource]string{}
		for l := range rapid.IntRange(0, 4).Draw(t, "lanes") {
			lane := actors.LaneFindings{LaneID: fmt.Sprintf("r%d", l)}
			for f := range rapid.IntRange(0, 4).Draw(t, "findings") {
				one := finding(fmt.Sprintf("F-%03d", f), rapid.SampledFrom([]string{"high", "medium", "low", ""}).Draw(t, "severity"),
					rapid.SliceOfN(rapid.SampledFrom([]string{"I-1", "I-2", "plan"}), 0, 2).Draw(t, "affects"),
					at(rapid.SampledFrom([]string{"a.go", "b.go", ""}).Draw(t, "path"), rapid.IntRange(0, 20).Draw(t, "line")))
				lane.Findings = append(lane.Findings, one)
				given[actors.FindingSource{LaneID: lane.LaneID, ID: one.ID}] = one.Severity
			}
			lanes = append(lanes, lane)
		}
		merged := actors.Consolidate(lanes)
		slices.Reverse(lanes)
		if diff := cmp.Diff(merged, actors.Consolidate(lanes)); diff != "" {
			t.Fatalf("the order of the lanes counts: %s", diff)
		}
		rank := func(severity string) int { return slices.Index([]string{"high", "medium", "low", ""}, severity) }
		seen := 0
		for i, m := range merged {
			reviewers := map[string]bool{}
			for _, s := range m.Sources {
				severity, known := given[s]
				if !known || reviewers[s.LaneID] || rank(severity) < rank(m.Severity) {
					t.Fatalf("%+v", m)
				}
				reviewers[s.LaneID] = true
				seen++
			}
			if m.Agreement != len(m.Sources) || m.Agreement == 0 || i > 0 && rank(merged[i-1].Severity) > rank(m.Severity) {
				t.Fatalf("%+v", merged)
			}
		}
		if seen != len(given) {
			t.Fatalf("%d of %d findings", seen, len(given))
		}
	})
}
