package compaction

import (
	"strconv"
	"strings"
)

// The instructions with which pi-plans itself asks for a compaction (spec:
// compaction 6.2).
const (
	ExecutionHint = "pi-plans execution auto compact"
	PlanningHint  = "pi-plans planning auto compact"
	PrePlanHint   = "pi-plans planning pre-plan compact"

	vccWord = "__pi_vcc__"
)

// Instructions are the words behind /compact, understood.
type Instructions struct {
	VCC      bool // this compiler was asked for by its word
	Internal bool // by pi-plans itself
	Keep     int  // user turns to keep
	Explicit bool // Keep was given with keep:N
	// FollowUp is what the user wants to be sent after the compaction; "" for nothing.
	FollowUp string
}

// ParseInstructions understands custom instructions: one of the hints, the compiler's
// word with a keep:N, or a text that follows the compaction, with a keep:N as its
// first or last word.
func ParseInstructions(text string) Instructions {
	text = strings.TrimSpace(text)
	in := Instructions{Keep: 1}
	switch text {
	case ExecutionHint, PlanningHint, PrePlanHint:
		in.Internal = true
		return in
	}
	words := strings.Fields(text)
	if len(words) > 0 && words[0] == vccWord {
		in.VCC = true
		for _, word := range words[1:] {
			in.keep(word)
		}
		return in
	}
	in.FollowUp = text
	if len(words) == 0 {
		return in
	}
	if first := words[0]; in.keep(first) {
		in.FollowUp = strings.TrimSpace(strings.TrimPrefix(text, first))
	} else if last := words[len(words)-1]; in.keep(last) {
		in.FollowUp = strings.TrimSpace(strings.TrimSuffix(text, last))
	}
	return in
}

// keep takes a word that says keep:N, the first of several. A number that is too
// large counts as the largest.
func (in *Instructions) keep(word string) bool {
	digits, ok := strings.CutPrefix(word, "keep:")
	if !ok || in.Explicit || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil { // out of range is all that is left
		n = maxSafeInteger
	}
	in.Keep, in.Explicit = int(min(n, maxSafeInteger)), true
	return true
}
