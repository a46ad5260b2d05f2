package compaction

import (
	"fmt"
	"strings"
)

// Action is what is to become of a compaction.
type Action string

// The actions.
const (
	Compacted Action = "compaction" // Pi keeps Result.Compaction
	Cancel    Action = "cancel"     // there is nothing to gain; Reason says why
	Fallback  Action = "fallback"   // Pi is to do it its own way
)

// The reasons of a [Fallback].
const (
	OverrideDisabled = "override-disabled"
	NoLiveMessages   = "no_live_messages"
	TooFewMessages   = "too_few_live_messages"
)

// Result is the answer to a request.
type Result struct {
	Action Action `json:"action"`
	// Reason of a cancel is a sentence, that of a fallback one of the constants.
	Reason     string      `json:"reason,omitempty"`
	Compaction *Compaction `json:"compaction,omitempty"`
	// FollowUp is what the user wants to be sent after the compaction.
	FollowUp string `json:"followUp,omitempty"`
}

// Compaction is the entry that Pi writes into the session.
type Compaction struct {
	Summary string `json:"summary"`
	// FirstKeptEntryID is the entry that the context goes on with; "" keeps none.
	FirstKeptEntryID string `json:"firstKeptEntryId"`
	TokensBefore     int64  `json:"tokensBefore"`
	// EstimatedTokensAfter counts the summary and what stays.
	EstimatedTokensAfter int64   `json:"estimatedTokensAfter"`
	Details              Details `json:"details"`
}

// Details are kept with the entry, out of the model's sight.
type Details struct {
	Compactor           string   `json:"compactor"` // "pi-vcc"
	Version             int      `json:"version"`
	Sections            []string `json:"sections"`
	SourceMessageCount  int      `json:"sourceMessageCount"` // messages that were summarised
	PreviousSummaryUsed bool     `json:"previousSummaryUsed"`
	Reason              string   `json:"reason"`
	WillRetry           bool     `json:"willRetry"`
	Phase               string   `json:"phase,omitempty"`
	Stats               Stats    `json:"stats"`
}

// Stats tell what was cut where.
type Stats struct {
	RequestedKeepUserTurns int    `json:"requestedKeepUserTurns"` // after smart keep
	KeptUserTurns          int    `json:"keptUserTurns"`
	TotalUserTurns         int    `json:"totalUserTurns"`
	SummarizedMessages     int    `json:"summarizedMessages"`
	KeptMessages           int    `json:"keptMessages"`
	KeptTokens             int64  `json:"keptTokens"` // estimated
	CompactAll             bool   `json:"compactAll"`
	CompactAllFallback     bool   `json:"compactAllFallback"` // there were not as many turns as asked for
	SmartKeepAdjusted      bool   `json:"smartKeepAdjusted"`
	SmartFromKeep          int    `json:"smartFromKeep,omitempty"`
	BudgetCut              string `json:"budgetCut,omitempty"` // no_anchor or oversized_tail
	// MovedForTools: the cut is not where it was to be, so that no tool call is torn
	// from its result.
	MovedForTools bool `json:"movedForTools,omitempty"`
}

// Notice is the sentence for the user.
func (s Stats) Notice() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Compacted: %d messages summarised, %d of %d user turns kept (about %d tokens)",
		s.SummarizedMessages, s.KeptUserTurns, s.TotalUserTurns, s.KeptTokens)
	if s.SmartKeepAdjusted {
		fmt.Fprintf(&b, "; smart keep %d->%d", s.SmartFromKeep, s.RequestedKeepUserTurns)
	}
	switch s.BudgetCut {
	case noAnchor:
		b.WriteString("; cut inside the only turn")
	case oversizedTail:
		b.WriteString("; cut inside a turn that is too large")
	}
	if s.MovedForTools {
		b.WriteString("; cut moved to keep tool calls with their results")
	}
	return b.String()
}
