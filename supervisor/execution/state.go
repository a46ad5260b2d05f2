package execution

import (
	"encoding/json"
	"maps"
	"slices"
)

// State is how far the execution of a plan is.
type State struct {
	plan    Plan
	done    map[string]bool
	impl    map[string]MarkerKind
	current string
}

// NewState is the state of a plan with what is on record of it. Records of ids that
// the plan does not have, and statuses that nobody knows, are left out.
func NewState(plan Plan, done []string, impl map[string]string, current string) *State {
	s := &State{plan: plan, done: map[string]bool{}, impl: map[string]MarkerKind{}}
	for _, id := range done {
		s.Apply(Marker{MarkerDone, id})
	}
	for id, status := range impl {
		if kind := MarkerKind(status); kind == MarkerImplemented || kind == MarkerValidating {
			s.Apply(Marker{kind, id})
		}
	}
	s.Apply(Marker{MarkerCurrent, current})
	return s
}

// Apply takes one marker into account and tells whether it changed anything. Markers
// of unknown ids change nothing; a later marker of an item replaces an earlier one.
func (s *State) Apply(m Marker) bool {
	switch m.Kind {
	case MarkerDone:
		if s.done[m.ID] || !slices.ContainsFunc(s.plan.Checks, func(c Check) bool { return c.ID == m.ID }) {
			return false
		}
		s.done[m.ID] = true
		return true
	case MarkerCurrent:
		if s.current == m.ID || !s.hasItem(m.ID) {
			return false
		}
		s.current = m.ID
		return true
	case MarkerImplemented, MarkerValidating:
		if s.impl[m.ID] == m.Kind || !s.hasItem(m.ID) {
			return false
		}
		s.impl[m.ID] = m.Kind
		return true
	}
	return false
}

func (s *State) hasItem(id string) bool {
	return slices.ContainsFunc(s.plan.Items, func(i Item) bool { return i.ID == id })
}

// IsDone tells whether a check has passed.
func (s *State) IsDone(id string) bool { return s.done[id] }

// Done are the ids of the checks that have passed, in the order of the plan.
func (s *State) Done() []string {
	ids := []string{}
	for _, check := range s.plan.Checks {
		if s.done[check.ID] {
			ids = append(ids, check.ID)
		}
	}
	return ids
}

// Remaining are the checks that have not passed, in the order of the plan.
func (s *State) Remaining() []Check {
	return slices.DeleteFunc(slices.Clone(s.plan.Checks), func(c Check) bool { return s.done[c.ID] })
}

// Complete tells whether every check has passed. A plan without checks is never
// complete: nothing was verified.
func (s *State) Complete() bool { return len(s.plan.Checks) > 0 && len(s.done) == len(s.plan.Checks) }

// Implementation is what was reported of the implementation items, by id, as the
// checkpoint keeps it.
func (s *State) Implementation() map[string]string {
	statuses := map[string]string{}
	for id, kind := range s.impl {
		statuses[id] = string(kind)
	}
	return statuses
}

// Current is the item that the agent said it works on, "" before it said so.
func (s *State) Current() string { return s.current }

// Display is how an implementation item is shown.
type Display string

// The displays, from the one that wins (spec: execution 5.1).
const (
	DisplayPassed       Display = "vc-passed"    // every check that covers it has passed
	DisplayImplemented  Display = "implemented"  // said by a marker
	DisplayValidating   Display = "validating"   // said by a marker, or some of its checks have passed
	DisplayImplementing Display = "implementing" // the first item of which nothing is known
	DisplayPending      Display = "pending"
)

// Displays is how each implementation item is shown, by id.
func (s *State) Displays() map[string]Display {
	shown := map[string]Display{}
	first := true
	for _, item := range s.plan.Items {
		covering, passed := 0, 0
		for _, check := range s.plan.Checks {
			if slices.Contains(check.Covers, item.ID) {
				covering++
				if s.done[check.ID] {
					passed++
				}
			}
		}
		marked, reported := s.impl[item.ID]
		switch {
		case covering > 0 && passed == covering:
			shown[item.ID] = DisplayPassed
		case reported:
			shown[item.ID] = Display(marked)
		case passed > 0:
			shown[item.ID] = DisplayValidating
		case first:
			shown[item.ID], first = DisplayImplementing, false
		default:
			shown[item.ID] = DisplayPending
		}
	}
	return shown
}

// Count is how much is done of how much, for people: implementation items that a
// check covers, else all of them, else checks. What stands before the current item
// counts as done.
func (s *State) Count() (done, total int) {
	if len(s.plan.Items) == 0 {
		return len(s.done), len(s.plan.Checks)
	}
	shown := s.Displays()
	covered := 0
	for _, item := range s.plan.Items {
		if slices.ContainsFunc(s.plan.Checks, func(c Check) bool { return slices.Contains(c.Covers, item.ID) }) {
			covered++
		}
		if shown[item.ID] == DisplayPassed {
			done++
		}
	}
	if total = covered; total == 0 {
		total = len(s.plan.Items)
	}
	before := slices.IndexFunc(s.plan.Items, func(i Item) bool { return i.ID == s.current })
	return min(total, max(done, before)), total
}

// Snapshot is equal for states in which the same has been reached, and for no others.
func (s *State) Snapshot() string {
	text, _ := json.Marshal([]any{slices.Sorted(maps.Keys(s.done)), s.impl, s.current}) // strings only: cannot fail
	return string(text)
}
