package execution

import (
	"strconv"
	"strings"
)

// MaxRounds is how many rounds the review of an implementation may have, whatever its
// condition says (spec: execution 5.5).
const MaxRounds = 5

// Termination is when the review of an implementation ends.
type Termination struct {
	// Rounds is how many rounds there may be, from 1 to MaxRounds.
	Rounds int
	// All tells that there have to be as many.
	All bool
	// UntilClean tells that the review ends with a round without a finding of high
	// severity.
	UntilClean bool
}

var roundWords = map[string]int{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}

// ParseTermination reads a condition: one of [TerminationOptions], or another text that
// says a number of rounds or speaks of high severity. Of any other only MaxRounds is known.
func ParseTermination(condition string) Termination {
	lower := strings.ToLower(condition)
	if strings.Contains(lower, "high") {
		return Termination{Rounds: MaxRounds, UntilClean: true}
	}
	words := strings.Fields(lower)
	for i, word := range words {
		alone := len(words) == 1
		counted := i+1 < len(words) && strings.HasPrefix(words[i+1], "round")
		n, err := strconv.Atoi(word)
		if err != nil {
			n = roundWords[word]
		}
		if n >= 1 && (alone || counted) {
			return Termination{Rounds: min(n, MaxRounds), All: true}
		}
	}
	return Termination{Rounds: MaxRounds}
}
