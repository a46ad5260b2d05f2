package compaction

import (
	"math"
	"unicode/utf8"
)

// Limits of what stays, in tokens (spec: compaction 6.3).
const (
	smartSmall  = 5_000              // a tail as small as this may grow
	tailBudget  = 25_000             // what it may grow to, and what is kept of a turn that is cut
	tailCeiling = tailBudget * 5 / 2 // a tail larger than this is cut inside the turn
)

// gauge turns characters into tokens. It goes by what Pi says that the whole context
// takes, never by the usage of a single answer: that may be from before an earlier
// compaction.
type gauge struct{ charsPerToken float64 }

func newGauge(chars int, tokens int64) gauge {
	if tokens <= 0 || chars == 0 {
		return gauge{4}
	}
	return gauge{min(max(float64(chars)/float64(tokens), 2), 6)}
}

func (g gauge) tokens(chars int) int64 {
	return int64(math.Ceil(float64(chars) / g.charsPerToken))
}

func (g gauge) chars(tokens int) int { return int(float64(tokens) * g.charsPerToken) }

// sizes are the characters of messages, so that those of any tail are at hand.
type sizes []int // of the messages from this one on

func newSizes(messages []message) sizes {
	s := make(sizes, len(messages)+1)
	for i := len(messages) - 1; i >= 0; i-- {
		s[i] = s[i+1] + messages[i].chars
	}
	return s
}

func (s sizes) tail(from int) int { return s[from] }

// longText is more than any summary has.
const longText = 100_000

// textChars is how much text messages have, counted up to longText. It is less than
// their sizes, in which the form of a result counts too.
func textChars(messages []message) (chars int) {
	for i := 0; i < len(messages) && chars < longText; i++ {
		chars += contentChars(messages[i].content)
	}
	return chars
}

func length(s string) int { return utf8.RuneCountInString(s) }
