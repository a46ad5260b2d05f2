package lanes

import (
	"fmt"

	"pilothouse/lanes/pijson"
)

// warnAt is the share of a budget from which on a lane says that it nears its end.
const warnAt = 0.8

// budget is what a lane may spend, all its attempts together (faults J113). A
// child cannot be asked to be brief once it runs, so the soft limit warns the
// people who watch, and the hard one ends the lane.
type budget struct {
	limits Limits // with defaults; a negative limit is none
	turns  int    // of earlier attempts
	usage  pijson.Usage
}

// check compares what the lane has spent, earlier attempts included, with its
// limits. The warning is "" below the soft limit.
func (b budget) check(p pijson.Progress) (warning string, spent bool) {
	usage := b.usage.Plus(p.Usage)
	for _, item := range []struct {
		used, limit float64
		what        string
	}{
		{float64(b.turns + p.Turns), float64(b.limits.Turns), "%.0f of %.0f turns used"},
		{float64(usage.Tokens()), float64(b.limits.Tokens), "%.0f of %.0f tokens used, cache reads included"},
		{usage.Cost, b.limits.Cost, "%.2f of %.2f dollars used"},
	} {
		if item.limit < 0 {
			continue
		}
		if item.used > item.limit {
			spent = true
		}
		if warning == "" && item.used >= warnAt*item.limit {
			warning = fmt.Sprintf(item.what, item.used, item.limit)
		}
	}
	return warning, spent
}
