package supervisor_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The part of the model that is about agents at rest, and how a run ends, goes back and
// goes on.

// The verdicts on an agent at rest.
const (
	wakes  = "wakes"
	pauses = "pauses"
)

// rests judges an agent that has worked and come to rest after a message.
func (w *world) rests(s *modelSession, text string, ids []string, aborted bool) (verdict string) {
	if at := w.execution(s); at != nil {
		at.judged = false
	}
	w.reports(s, ids)
	at := w.execution(s)
	if at == nil || at.judged || at.run.record.paused != "" {
		return ""
	}
	at.judged = true
	r, n := at.run, &at.run.notes
	if aborted {
		r.record.paused = "agent interrupted"
		return pauses
	}
	switch now := at.snapshot(); {
	case now != n.snapshot:
		n.snapshot, n.idle, n.waiting = now, 0, 0
	case strings.Contains(text, "waiting for"):
		n.waiting++
	default:
		n.idle++
	}
	switch {
	case n.idle >= 3:
		r.record.paused = fmt.Sprintf("no progress in %d rounds", n.idle)
	case n.waiting >= 6:
		r.record.paused = fmt.Sprintf("still waiting after %d rounds", n.waiting)
	default:
		return wakes
	}
	return pauses
}

// goOn ends a pause because the user wants it.
func (w *world) goOn(s *modelSession) {
	if at := w.execution(s); at != nil && at.run.record.paused != "" {
		at.run.record.paused, at.run.notes.idle, at.run.notes.waiting = "", 0, 0
	}
}

// end is a run that is stopped or given up by its user.
func (w *world) end(s *modelSession, r *modelRun, status, reason string) outcome {
	w.execution(s) // which may make the run the session's
	return w.change(r, s, func() bool {
		if r.terminal() {
			return false
		}
		if r.status = status; r.in("executing") {
			r.record.paused = reason
		}
		return true
	})
}

// mayEnd tells whether the user is asked whether the session's run is to end.
func (w *world) mayEnd(s *modelSession, stop bool) (*modelRun, outcome) {
	r := w.meant(s)
	if r == nil || r.terminal() || stop && r.status == "stopped" {
		return nil, refused
	}
	return r, asks
}

// revision is a plan that is to be revised.
type revision struct {
	run       *modelRun
	phase     string
	executing bool
}

func (w *world) revise(s *modelSession) (revision, outcome) {
	r := w.meant(s)
	if r == nil || r.terminal() {
		return revision{}, refused
	}
	if _, found := r.latest(); !found {
		return revision{}, refused
	}
	v := revision{r, r.record.phase, r.in("executing")}
	if v.executing {
		return v, asks
	}
	return v, w.turnBack(s, v)
}

// turnBack ends an execution and its approval.
func (w *world) turnBack(s *modelSession, v revision) outcome {
	w.execution(s)
	r := v.run
	if !v.executing && v.phase != "planning" && v.phase != "reviewing" {
		return refused
	}
	return w.change(r, s, func() bool {
		if v.executing {
			if !r.in("executing") {
				return false
			}
			c := &r.record
			c.phase, c.next, c.approved, c.done, c.reverify, c.paused = "planning", "revise-plan", nil, nil, false, ""
		}
		r.status, r.notes = "planning", notes{}
		return true
	})
}

// resume takes a run up for a session.
func (w *world) resume(s *modelSession, r *modelRun) outcome {
	if r.status == "abandoned" || r.in("completed") {
		return refused
	}
	what := w.change(r, s, func() bool {
		switch {
		case r.asApproved():
			r.status = "executing"
			r.record.reverify = r.record.reverify || len(w.stale(r)) > 0
		case r.in("executing"):
			r.status = "accepted" // until it is approved again
		case r.status == "stopped" && r.in("planning", "reviewing"):
			r.status = "planning"
		}
		return true
	})
	if what == done {
		w.bind(s, r)
		s.seat = nil // an execution is taken up anew, by the commit that is checked out now
	}
	return what
}

// configure says when the review of the implementation ends.
func (w *world) configure(s *modelSession, condition string) outcome {
	return w.step(s, func(r *modelRun) bool {
		if !r.in("implementation-review") || r.record.condition != "" {
			return false
		}
		r.record.condition, r.record.next = condition, "run-review"
		return true
	})
}

// step is a transition that an agent records in the session's run.
func (w *world) step(s *modelSession, step func(r *modelRun) bool) outcome {
	r := w.meant(s)
	if r == nil {
		return refused
	}
	return w.change(r, s, func() bool { return step(r) })
}

// limits are the conditions that are tried: how many rounds there may be, whether there
// have to be as many, and whether a clean one is needed.
var limits = map[string]struct {
	rounds     int
	all, clean bool
}{
	"1 round":  {1, true, false},
	"2 rounds": {2, true, false},
	"goal wait (until every check has passed)": {5, false, false},
	"until no high-severity finding":           {5, false, true},
}

// conditions are their words.
var conditions = slices.Sorted(maps.Keys(limits))

// beginRound begins a round of one reviewer.
func (w *world) beginRound(s *modelSession, r *modelRun, target, id string) outcome {
	plan, found := r.latest()
	if !found {
		return refused
	}
	begin := func(c *record) bool {
		edited := c.plan != (edition{}) && c.plan.version == plan.version && c.plan.text != plan.text
		switch {
		case !r.in("planning", "reviewing", "implementation-review"):
			return false
		case target == "plan" && (c.plan == (edition{}) || edited):
			if !r.in("planning", "reviewing") {
				return false
			}
			c.plan = plan
		case target == "implementation":
			last := c.round(c.current)
			if !r.in("implementation-review") || c.condition == "" || c.completed >= limits[c.condition].rounds || last != nil && last.lane == "complete" {
				return false
			}
			c.current = id
		}
		c.rounds = append(c.rounds, modelRound{id: id, target: target, lane: "pending", atWork: true})
		return true
	}
	trial := r.record // what would be refused anyway is refused before the run is touched
	if !begin(&trial) {
		return refused
	}
	return w.change(r, s, func() bool { return begin(&r.record) })
}

func (c *record) round(id string) *modelRound {
	i := slices.IndexFunc(c.rounds, func(round modelRound) bool { return round.id == id })
	if i < 0 {
		return nil
	}
	return &c.rounds[i]
}

// endRound ends a round with its lane complete or failed.
func (w *world) endRound(r *modelRun, id, lane string) {
	round := r.record.round(id)
	round.lane, round.atWork = lane, false
	r.free()
}

func (w *world) consolidate(s *modelSession, id string) outcome {
	return w.step(s, func(r *modelRun) bool {
		round := r.record.round(id)
		if round == nil || round.lane != "complete" {
			return false
		}
		round.consolidated = true
		return true
	})
}

func (w *world) finishRound(s *modelSession) outcome {
	return w.step(s, func(r *modelRun) bool {
		c := &r.record
		if !r.in("implementation-review") || c.current == "" || !c.round(c.current).consolidated {
			return false
		}
		c.completed++
		c.current = ""
		return true
	})
}

// complete ends the review when its condition is met. Every reviewer here finds nothing.
func (w *world) complete(s *modelSession) outcome {
	return w.step(s, func(r *modelRun) bool {
		c := &r.record
		limit := limits[c.condition]
		clean := slices.ContainsFunc(c.rounds, func(round modelRound) bool { return round.target == "implementation" && round.consolidated })
		if !r.in("implementation-review") || c.condition == "" || c.completed < limit.rounds && (limit.all || limit.clean && !clean) {
			return false
		}
		c.phase, c.next = "completed", "none"
		return true
	})
}

// leaves is a session that ends, or whose daemon does: it gives back all it has.
func (w *world) leaves(s *modelSession) {
	for _, r := range w.runs {
		if r.owner == s.id {
			r.owner = ""
		}
	}
	s.bound, s.seat, s.aside = nil, nil, false
}

// dies is the same with a daemon that was killed.
func (w *world) dies(s *modelSession) {
	for _, r := range w.runs {
		if r.owner == s.id {
			r.owner = dead
			for i := range r.record.rounds {
				r.record.rounds[i].atWork = false
			}
		}
	}
	s.bound, s.seat, s.aside = nil, nil, false
}

// returns is a session at a new daemon, which it tells the run that it began last, and
// whether its history ends with a plan being carried out: if not, it carries none out by
// itself.
func (w *world) returns(s *modelSession, began *modelRun, carries bool) {
	s.bound, s.aside = began, !carries
	w.execution(s)
}

// tear undoes, for a crash, what the last change of a run has written to the checkpoint,
// which comes behind everything else, and the status where that comes behind, too.
func (r *modelRun) tear(before modelRun, status bool) {
	r.record = before.record
	if status {
		r.status = before.status
	}
}

// clone is a copy that keeps what the run is now.
func (r *modelRun) clone() modelRun {
	c := *r
	c.record.answers = map[string]string{}
	for id, answer := range r.record.answers {
		c.record.answers[id] = answer
	}
	c.record.done = slices.Clone(r.record.done)
	c.record.rounds = slices.Clone(r.record.rounds)
	return c
}
