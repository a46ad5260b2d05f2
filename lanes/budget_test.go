package lanes_test

import (
	"slices"
	"strings"
	"testing"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
)

// Each message costs lanestest.Cost: 506 tokens, 11 of them read from a cache, and a
// quarter of a dollar.
func TestALaneIsBoundedByItsBudget(t *testing.T) {
	t.Parallel()
	three := lanestest.Join(lanestest.Opening(), lanestest.Uses("read"), lanestest.Uses("grep"), lanestest.Says("done"), lanestest.Closing())
	tests := []struct {
		name   string
		limits lanes.Limits
		class  pijson.Class // "" completes
		says   string       // a part of the message of a failure, else a note; "" is none
	}{
		{"well within", lanes.Limits{Turns: 10, Tokens: 10_000, Cost: 5}, "", ""},
		{"the answer comes with the last turn", lanes.Limits{Turns: 3}, "", "3 of 3 turns used"},
		{"the answer comes with the last token", lanes.Limits{Tokens: 3 * 506}, "", "1518 of 1518 tokens used, cache reads included"},
		{"the answer comes with the last cent", lanes.Limits{Cost: 0.75}, "", "0.75 of 0.75 dollars used"},
		{"the turns run out", lanes.Limits{Turns: 1}, pijson.ClassBudget, "2 of 1 turns used"},
		{"the tokens run out by what was read from a cache", lanes.Limits{Tokens: 2*506 - 1}, pijson.ClassBudget, "1012 of 1011 tokens used"},
		{"the money runs out", lanes.Limits{Cost: 0.4}, pijson.ClassBudget, "0.50 of 0.40 dollars used"},
		{"there are no limits", lanes.Limits{Turns: -1, Tokens: -1, Cost: -1}, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			script := printing(lanestest.Code(0), three)
			if test.class != "" { // what it would say next, it does not live to say
				script = staying(lanestest.Opening(), lanestest.Uses("read"), lanestest.Uses("grep"))
			}
			r := theResult(t, begin(t, lanestest.NewHost(t, script), nil, limited("general", test.limits)))
			if test.class == "" {
				if r.Status != lanes.Complete || r.Output != "done" || r.Usage != times(3) {
					t.Errorf("%s with %q for %+v: %+v", r.Status, r.Output, r.Usage, r.Error)
				}
				if noted := slices.Contains(r.Notes, test.says); noted != (test.says != "") {
					t.Errorf("notes %q, want %q", r.Notes, test.says)
				}
				return
			}
			if r.Status != lanes.Failed || r.Error.Class != test.class || !strings.Contains(r.Error.Message, test.says) || r.Attempts != 1 {
				t.Errorf("%s after %d attempts: %+v, want %s with %q", r.Status, r.Attempts, r.Error, test.class, test.says)
			}
			if r.Usage != times(2) {
				t.Errorf("the record says %+v was spent", r.Usage)
			}
		})
	}
}

func TestALaneWarnsBeforeItsBudgetIsSpent(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("done"))
	stage := begin(t, host, nil, limited("general", lanes.Limits{Cost: 0.3}))
	p := lanestest.Await(t, stage, func(p lanes.Progress) bool { return p.Warning != "" })
	if want := "0.25 of 0.30 dollars used"; p.Warning != want || p.Usage != times(1) {
		t.Errorf("warned with %q at %+v, want %q", p.Warning, p.Usage, want)
	}
	host.Next(t, "general").Release("work")
	stage.AwaitEnd(t)
}
