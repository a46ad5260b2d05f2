package compaction

// The reasons why a cut is not at the beginning of a turn.
const (
	noAnchor      = "no_anchor"      // there is no turn to begin with
	oversizedTail = "oversized_tail" // the last turns are too large
)

// cut is where the part begins that stays.
type cut struct {
	start int // index of the first message that stays; their number if none does

	keep      int    // user turns asked for, after smart keep
	smartFrom int    // user turns asked for before it; 0 if it did nothing
	fallback  bool   // there were not as many turns as asked for
	budget    string // noAnchor, oversizedTail or ""
	moved     bool   // away from where it would have torn a call from its result
}

// choose selects the cut (spec: compaction 6.3).
func choose(messages []message, s sizes, in Instructions, smart bool, g gauge) cut {
	tail := func(from int) int64 { return g.tokens(s.tail(from)) }
	c := cut{start: len(messages), keep: in.Keep}
	if in.Keep > 0 {
		c.keepTurns(userTurns(messages), smart && !in.Explicit, tail)
		if !in.Explicit {
			c.limitTail(messages, tail)
		}
	}
	c.avoid(unsafeCuts(messages))
	return c
}

// userTurns are the messages that begin one.
func userTurns(messages []message) (turns []int) {
	for i, m := range messages {
		if m.role == roleUser {
			turns = append(turns, i)
		}
	}
	return turns
}

// keepTurns cuts at the last turns, as many as asked for; if nothing would be left
// to summarise, at the end.
func (c *cut) keepTurns(turns []int, smart bool, tail func(int) int64) {
	begin := func(keep int) (start int, ok bool) {
		if keep > len(turns) {
			return 0, false
		}
		start = turns[len(turns)-keep]
		return start, start > 0
	}
	start, ok := begin(c.keep)
	if !ok {
		c.fallback = true
		return
	}
	c.start = start
	if !smart || tail(start) > smartSmall {
		return
	}
	asked := c.keep
	for {
		more, ok := begin(c.keep + 1)
		if !ok || tail(more) > tailBudget {
			break
		}
		c.keep, c.start = c.keep+1, more
	}
	if c.keep > asked {
		c.smartFrom = asked
	}
}

// limitTail cuts inside a turn where whole turns are too few or too large.
func (c *cut) limitTail(messages []message, tail func(int) int64) {
	reason := noAnchor
	if !c.fallback {
		if tail(c.start) <= tailCeiling {
			return
		}
		reason = oversizedTail
	}
	at := len(messages) - 1
	for at >= 0 && tail(at) < tailBudget {
		at--
	}
	if at < 0 {
		return // all of it is small
	}
	for at = max(at, 1); at < len(messages) && messages[at].role == roleResult; {
		at++
	}
	if at == len(messages) || reason == oversizedTail && at <= c.start {
		return
	}
	c.start, c.budget = at, reason
}

// avoid moves an unsafe cut on to the next that is safe.
func (c *cut) avoid(unsafe []bool) {
	for unsafe[c.start] {
		c.start, c.moved = c.start+1, true
	}
}
