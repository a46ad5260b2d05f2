package actors_test

import (
	"strings"
	"testing"

	"pilothouse/actors"
)

// A parser whose time grows with the square of the answer would take hours
// for these and run into the test's time limit.
func TestHostileAnswersAreReadInProportionateTime(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	for _, unit := range []string{
		"`", "` `` ``` ", "\"", "“", "\"a ", "(", "((a.go ", "[", "*", "a;", "a/b,", "a.go:1;", "a.go:1 \"x\" ", "`a.go`, ", "a.go lines ", ":", "#", "# ", " ", "-", "- ",
		"\n", "\n a", "\n- a", "\n> a", "\n```", "\n```a", "\n~~~\n", "\n1. a", "\n1. a? why: b", "\nWhy: a", "\n### F-1 high", "\n### F-1\n- Evidence: a.go:1",
		"\n- Evidence:\n```\na.go:1\n```\n", "\n## Overview", "\n## X", "\n**a**", "\n**", "why: ", "a. B", "。", "F-1 ", "\n- Affects: I-1", "I-1 ", "\xff", "\x00",
	} {
		body := strings.Repeat(unit, size/len(unit))
		for _, head := range []string{"", "### F-1 · high · t\n- Evidence: ", "## Checked\n- a", "## Summary\n", "1. ", "## Evidence Citations\n"} {
			actors.ParseReview(head + body)
			actors.ParseCriticism(head + body)
			actors.ParseRefAnalysis(head + body)
		}
	}
}
