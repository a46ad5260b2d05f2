package lanes

import (
	"testing"

	"pilothouse/lanes/pijson"
)

func TestABudgetIsCheckedAgainstAllThatWasSpent(t *testing.T) {
	t.Parallel()
	limits := Limits{Turns: 10, Tokens: 1000, Cost: 2}
	none := Limits{Turns: -1, Tokens: -1, Cost: -1}
	tests := []struct {
		name    string
		limits  Limits
		turns   int          // of earlier attempts
		usage   pijson.Usage // of earlier attempts
		now     pijson.Progress
		warning string
		spent   bool
	}{
		{name: "nothing", limits: limits},
		{name: "just below the soft limit", limits: limits, now: pijson.Progress{Turns: 7, Usage: pijson.Usage{Input: 799, Cost: 1.59}}},
		{name: "the soft limit of turns", limits: limits, now: pijson.Progress{Turns: 8}, warning: "8 of 10 turns used"},
		{name: "all turns", limits: limits, now: pijson.Progress{Turns: 10}, warning: "10 of 10 turns used"},
		{name: "more turns", limits: limits, now: pijson.Progress{Turns: 11}, warning: "11 of 10 turns used", spent: true},
		{name: "turns of earlier attempts", limits: limits, turns: 7, now: pijson.Progress{Turns: 4}, warning: "11 of 10 turns used", spent: true},
		{
			name: "tokens of every kind", limits: limits,
			now:     pijson.Progress{Usage: pijson.Usage{Input: 200, Output: 200, CacheRead: 200, CacheWrite: 200}},
			warning: "800 of 1000 tokens used, cache reads included",
		},
		{
			name: "cache reads alone", limits: limits, now: pijson.Progress{Usage: pijson.Usage{CacheRead: 1001}},
			warning: "1001 of 1000 tokens used, cache reads included", spent: true,
		},
		{
			name: "tokens of earlier attempts", limits: limits, usage: pijson.Usage{Output: 900}, now: pijson.Progress{Usage: pijson.Usage{Input: 101}},
			warning: "1001 of 1000 tokens used, cache reads included", spent: true,
		},
		{name: "the soft limit of cost", limits: limits, now: pijson.Progress{Usage: pijson.Usage{Cost: 1.6}}, warning: "1.60 of 2.00 dollars used"},
		{
			name: "cost of earlier attempts", limits: limits, usage: pijson.Usage{Cost: 1.5}, now: pijson.Progress{Usage: pijson.Usage{Cost: 0.75}},
			warning: "2.25 of 2.00 dollars used", spent: true,
		},
		{
			name: "no limits", limits: none, turns: 1 << 30, usage: pijson.Usage{CacheRead: 1 << 40, Cost: 1e6},
			now: pijson.Progress{Turns: 1 << 30, Usage: pijson.Usage{Input: 1 << 40, Cost: 1e6}},
		},
		{
			name: "no limit of turns leaves the others", limits: Limits{Turns: -1, Tokens: -1, Cost: 1}, turns: 999,
			now: pijson.Progress{Usage: pijson.Usage{Cost: 1.25}}, warning: "1.25 of 1.00 dollars used", spent: true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			warning, spent := budget{test.limits, test.turns, test.usage}.check(test.now)
			if warning != test.warning || spent != test.spent {
				t.Errorf("got %q, spent %t; want %q, %t", warning, spent, test.warning, test.spent)
			}
		})
	}
}
