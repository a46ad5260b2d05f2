package actors_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
)

// answered is a lane that has answered in good form.
func answered(name, output string) actors.Outcome {
	return actors.Outcome{
		Lane:   actors.Lane{Spec: lanes.Spec{ID: name, Name: name}},
		Result: lanes.Result{LaneID: name, Status: lanes.Complete, Output: output}, Report: actors.Report{WellFormed: true},
	}
}

// ended is a lane that has not.
func ended(name string, status lanes.Status, class pijson.Class, message string) actors.Outcome {
	return actors.Outcome{
		Lane:   actors.Lane{Spec: lanes.Spec{ID: name, Name: name}},
		Result: lanes.Result{LaneID: name, Status: status, Error: &lanes.Failure{Class: class, Message: message}},
	}
}

// parts cuts a result text at its rules.
func parts(text string) []string { return strings.Split(text, "\n\n---\n\n") }

func TestTheResultHasASectionForEachLane(t *testing.T) {
	t.Parallel()
	lens := answered("pp-r-ordering", "second\n")
	lens.Lane.Lens = "ordering"
	reused := answered("pp-r-verification", "third")
	reused.Lane.Lens, reused.Reused = "verification", true
	loose := answered("pp-r-loose", "LGTM")
	loose.Report = actors.Report{Problems: []string{"no Findings", "no Checked"}}
	titled := answered("refs-1", "a")
	titled.Lane.Ref = &actors.Reference{ID: "r1", Title: "The Title"}
	untitled := ended("refs-2", lanes.Failed, pijson.ClassStartFailure, "reference directory not found: /x")
	untitled.Lane.Ref = &actors.Reference{ID: "r2"}
	got := parts(actors.Text(actors.Summary{Role: actors.Reviewer, RoundID: "r9", Outcomes: []actors.Outcome{
		answered("pp-r-general", "first"), lens, reused, loose, titled, untitled,
		ended("pp-r-late", lanes.Cancelled, pijson.ClassCancelled, "the user has had enough"),
	}}))
	want := []string{
		"### pp-r-verification (verification) [REUSED]\n\nthird",
		"### pp-r-general\n\nfirst",
		"### pp-r-ordering (ordering)\n\nsecond",
		"### pp-r-loose\n\nLGTM\n\n_This answer does not follow the reviewer's output grammar (no Findings; no Checked); read it as prose._",
		"### refs-1 — The Title\n\na",
		"### refs-2 — r2 — FAILED\n\nreference directory not found: /x (start_failure)",
		"### pp-r-late — FAILED\n\nthe user has had enough (cancelled)",
	}
	if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" {
		t.Error(diff)
	}
}

func TestTheResultSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	fine := []actors.Outcome{answered("a", "x"), ended("b", lanes.Failed, pijson.ClassAuth, "no")}
	tests := []struct {
		name    string
		summary actors.Summary
		says    []string
		not     []string
	}{
		{"a review of a plan", actors.Summary{Role: actors.Reviewer, Target: actors.TargetPlan, RoundID: "rd-1", Outcomes: fine},
			[]string{"<plan>_reviewer_comments.md", "five high-priority", "review-consolidated, roundId rd-1", "dispositionArtifact"}, []string{"implementation"}},
		{"a review of an implementation", actors.Summary{Role: actors.Reviewer, Target: actors.TargetImplementation, RoundID: "rd-1", Outcomes: fine},
			[]string{"<plan>_implementation_review.md", "review-consolidated with roundId rd-1", "implementation-round-finished", "completed"}, []string{"five high-priority"}},
		{"a criticism", actors.Summary{Role: actors.Criticizer, Target: actors.TargetPlan, RoundID: "rd-1", Outcomes: fine},
			[]string{"ask_choice", "stable questionId", "review-consolidated and roundId rd-1"}, []string{"dispositionArtifact"}},
		{"an analysis", actors.Summary{Role: actors.RefAnalyst, RoundID: "rd-1", Outcomes: fine},
			[]string{"REF_ANALYSIS.md", "record-ref", "coverage and gaps", "at least three adoption questions"}, []string{"roundId"}},
		{"nothing but failures", actors.Summary{Role: actors.Reviewer, RoundID: "rd-1", Outcomes: fine[1:]},
			[]string{"no lane has answered", "--model"}, []string{"review-consolidated"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			all := parts(actors.Text(test.summary))
			last := all[len(all)-1]
			for _, word := range test.says {
				if !strings.Contains(last, word) {
					t.Errorf("%q is missing: %s", word, last)
				}
			}
			for _, word := range test.not {
				if strings.Contains(last, word) {
					t.Errorf("%q does not belong here: %s", word, last)
				}
			}
		})
	}
}

func TestALongResultIsCut(t *testing.T) {
	t.Parallel()
	const heading = "### a\n\n" // two lines, seven bytes
	tests := []struct {
		name, output string
		kept         string // the end of what is shown; "" when all is
		note         string
	}{
		{"exactly as many lines as allowed", strings.Repeat("x\n", 1997) + "end", "", ""},
		{"a line too many", strings.Repeat("x\n", 1997) + "end\nmore", "\nend", "[Truncated: 2000 of 2001 lines, 4004 of 4009 bytes shown. The full answers are in /w/reviews.]"},
		{"exactly as many bytes as allowed", strings.Repeat("x", 50<<10-len(heading)), "", ""},
		{"a byte too many", strings.Repeat("x", 50<<10-len(heading)) + "y", "x", "[Truncated: 3 of 3 lines, 51200 of 51201 bytes shown. The full answers are in /w/reviews.]"},
		{"a character across the border", strings.Repeat("x", 50<<10-len(heading)-2) + "€uro", "x", "[Truncated: 3 of 3 lines, 51198 of 51204 bytes shown. The full answers are in /w/reviews.]"},
		{"one endless line", "ab" + strings.Repeat("€", 50<<10), "€", "[Truncated: 3 of 3 lines, 51198 of 153609 bytes shown. The full answers are in /w/reviews.]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text := actors.Text(actors.Summary{Role: actors.Reviewer, Stored: "/w/reviews", Outcomes: []actors.Outcome{answered("a", test.output)}})
			all := parts(text)
			if len(all) != 2 || !strings.HasPrefix(all[1], "Next: ") || !utf8.ValidString(text) {
				t.Fatalf("the text is not an answer and what to do: %.200q", text)
			}
			if test.note == "" {
				if all[0] != heading+test.output {
					t.Error("it was cut")
				}
				return
			}
			head, ok := strings.CutSuffix(all[0], "\n\n"+test.note)
			if !ok || !strings.HasPrefix(heading+test.output, head) || !strings.HasSuffix(head, test.kept) {
				t.Errorf("it ends with %q, want %q and the note %q", all[0][max(0, len(all[0])-150):], test.kept, test.note)
			}
		})
	}
}
