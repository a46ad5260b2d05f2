package execution_test

import (
	"strings"
	"testing"

	"pilothouse/supervisor/execution"
)

func TestWhenAReviewEnds(t *testing.T) {
	t.Parallel()
	const most = execution.MaxRounds
	for condition, want := range map[string]execution.Termination{
		execution.TerminationOptions[0]: {Rounds: most},
		execution.TerminationOptions[1]: {Rounds: most, UntilClean: true},
		execution.TerminationOptions[2]: {Rounds: 1, All: true},
		execution.TerminationOptions[3]: {Rounds: 2, All: true},
		execution.TerminationOptions[4]: {Rounds: 3, All: true},
		"Two rounds, please":            {Rounds: 2, All: true},
		"3":                             {Rounds: 3, All: true},
		"9 rounds":                      {Rounds: most, All: true},
		"0 rounds":                      {Rounds: most},
		"-1 rounds":                     {Rounds: most},
		"stop after 2 rounds or when nothing is HIGH": {Rounds: most, UntilClean: true},
		"until 3 people are happy":                    {Rounds: most},
		"":                                            {Rounds: most},
	} {
		if got := execution.ParseTermination(condition); got != want {
			t.Errorf("%q: %+v, want %+v", condition, got, want)
		}
	}
}

func TestTheQuestionOffersItsOptionsInOrder(t *testing.T) {
	t.Parallel()
	text := execution.TerminationInstructions()
	last := 0
	for i, option := range execution.TerminationOptions {
		at := strings.Index(text, option)
		if at < last {
			t.Errorf("option %d is at %d, the one before at %d", i, at, last)
		}
		last = at
	}
	if !strings.Contains(text, execution.TerminationQuestionID) || !strings.Contains(text, "implementation-review-configured") {
		t.Errorf("got %q", text)
	}
}
