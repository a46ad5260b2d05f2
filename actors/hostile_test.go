package actors_test

import (
	"strings"
	"testing"

	"pilothouse/actors"
)

// Answers that repeat one awkward thing thousands of times: whatever a parser
// makes of them, it comes to an end and takes none for a report.
func TestHostileAnswersAreRead(t *testing.T) {
	t.Parallel()
	const size = 4 << 10
	for _, unit := range []string{
		"`", "\"", "“", "((a.go ", "*", "a;", "a.go:1 \"x\" ", "\"x\" a.go:1 ", "`a.go`, ", "# ", "\n a", "\n- a", "\n```a", "\n1. a? why: b",
		"\n### F-1\n- Evidence: a.go:1", "\n## Overview", "。", "I-1 ", "\xff",
	} {
		body := strings.Repeat(unit, size/len(unit))
		for _, head := range []string{"", "### F-1 · high · t\n- Evidence: ", "## Checked\n- a"} {
			if actors.ParseReview(head+body).Holds || actors.ParseCriticism(head+body).Holds || actors.ParseRefAnalysis(head+body).WellFormed {
				t.Errorf("%q and many of %q pass as a report", head, unit)
			}
		}
	}
}
