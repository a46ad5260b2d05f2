package compaction

import "cmp"

const (
	compactor = "pi-vcc"
	version   = 1
	// fewMessages are too few to be worth a summary.
	fewMessages = 2
)

// Compact decides about a compaction and compiles its summary (spec: compaction 6.2 to
// 6.4).
func Compact(r Request) Result {
	in := ParseInstructions(r.Instructions)
	settings := DefaultSettings()
	if r.Settings != nil {
		settings = *r.Settings
	}
	ours := in.VCC || in.Internal
	if !ours && !settings.OverrideDefault {
		return Result{Action: Fallback, Reason: OverrideDisabled}
	}
	l := readLive(r.entries)
	if len(l.messages) <= fewMessages {
		return refuse(len(l.messages), !ours && (r.Reason == Overflow || r.WillRetry))
	}

	previous := cmp.Or(r.previousSummary, l.summary())
	sizes := newSizes(l.messages)
	g := newGauge(sizes.tail(0)+length(previous), r.tokensBefore)
	c := choose(l.messages, sizes, in, settings.SmartKeepTail, g)

	s := compile(r, l.messages[:c.start], l.compactions, g)
	if earlier, ok := parseSections(previous); ok {
		s = s.after(earlier)
	} else {
		s.outstanding = append(legacySummary(previous), s.outstanding...)
	}
	text := s.text(length(previous) + textChars(l.messages[:c.start]))
	result := Result{Action: Compacted, FollowUp: in.FollowUp, Compaction: &Compaction{
		Summary:              text,
		TokensBefore:         r.tokensBefore,
		EstimatedTokensAfter: g.tokens(length(text) + sizes.tail(c.start)),
		Details: Details{
			Compactor: compactor, Version: version, Sections: headers,
			SourceMessageCount: c.start, PreviousSummaryUsed: previous != "",
			Reason: r.Reason, WillRetry: r.WillRetry, Stats: c.stats(l.messages, g.tokens(sizes.tail(c.start))),
		},
	}}
	if c.start < len(l.messages) {
		result.Compaction.FirstKeptEntryID = l.messages[c.start].id
	}
	if r.Phase != nil {
		result.Compaction.Details.Phase = r.Phase.Kind
	}
	return result
}

// refuse answers for a session that is too small. When Pi is in need of room, because
// the context overflows or a turn waits to be repeated, it has to find some itself.
func refuse(messages int, pressing bool) Result {
	code, reason := TooFewMessages, "too few messages to compact"
	if messages == 0 {
		code, reason = NoLiveMessages, "nothing to compact"
	}
	if pressing {
		return Result{Action: Fallback, Reason: code}
	}
	return Result{Action: Cancel, Reason: reason}
}

func (c cut) stats(messages []message, keptTokens int64) Stats {
	return Stats{
		RequestedKeepUserTurns: c.keep,
		KeptUserTurns:          len(userTurns(messages[c.start:])),
		TotalUserTurns:         len(userTurns(messages)),
		SummarizedMessages:     c.start,
		KeptMessages:           len(messages) - c.start,
		KeptTokens:             keptTokens,
		CompactAll:             c.start == len(messages),
		CompactAllFallback:     c.fallback && c.start == len(messages),
		SmartKeepAdjusted:      c.smartFrom > 0,
		SmartFromKeep:          c.smartFrom,
		BudgetCut:              c.budget,
		MovedForTools:          c.moved,
	}
}
