package execution_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/execution"
)

// covered has three checks and four items; I-4 is covered by none.
const covered = "## Implementation Items\n- `I-1`: a\n- `I-2`: b\n- `I-3`: c\n- `I-4`: d\n" +
	"## Verifier Checklist\n- [ ] VC-1 covers I-1\n- [ ] VC-2 covers I-1, I-2; I-3\n- [ ] VC-3 covers I-3\n"

func state(text string, markers ...execution.Marker) *execution.State {
	s := execution.NewState(execution.Parse(text), nil, nil, "")
	for _, m := range markers {
		s.Apply(m)
	}
	return s
}

func done(id string) execution.Marker { return marker(execution.MarkerDone, id) }

func TestHowAnItemIsShown(t *testing.T) {
	t.Parallel()
	implemented, validating := marker(execution.MarkerImplemented, "I-1"), marker(execution.MarkerValidating, "I-2")
	for name, c := range map[string]struct {
		markers []execution.Marker
		want    string // of I-1 to I-4
	}{
		"nothing is known":                 {nil, "implementing pending pending pending"},
		"one of two checks has passed":     {[]execution.Marker{done("VC-1")}, "validating implementing pending pending"},
		"all checks of one have passed":    {[]execution.Marker{done("VC-1"), done("VC-2")}, "vc-passed vc-passed implementing pending"},
		"a marker beats some checks":       {[]execution.Marker{done("VC-1"), implemented}, "implemented implementing pending pending"},
		"all checks beat a marker":         {[]execution.Marker{done("VC-2"), validating}, "validating vc-passed implementing pending"},
		"a marker is not the first":        {[]execution.Marker{implemented, validating}, "implemented validating implementing pending"},
		"the current item makes no change": {[]execution.Marker{marker(execution.MarkerCurrent, "I-3")}, "implementing pending pending pending"},
	} {
		shown := state(covered, c.markers...).Displays()
		got := []string{string(shown["I-1"]), string(shown["I-2"]), string(shown["I-3"]), string(shown["I-4"])}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

func TestMarkersOfUnknownIDsChangeNothingAndTheLastKnownOneCounts(t *testing.T) {
	t.Parallel()
	s := state(covered)
	before := s.Snapshot()
	for _, m := range []execution.Marker{done("VC-9"), marker(execution.MarkerCurrent, "I-9"), marker(execution.MarkerImplemented, "VC-1"), {Kind: "other", ID: "I-1"}} {
		if s.Apply(m) {
			t.Errorf("%+v changed something", m)
		}
	}
	if s.Snapshot() != before {
		t.Error("the snapshot changed")
	}
	for i, m := range []execution.Marker{
		marker(execution.MarkerCurrent, "I-2"), marker(execution.MarkerCurrent, "I-1"),
		marker(execution.MarkerImplemented, "I-1"), marker(execution.MarkerValidating, "I-1"), done("VC-3"), done("VC-1"),
	} {
		if !s.Apply(m) || s.Apply(m) || s.Snapshot() == before {
			t.Errorf("marker %d is not applied exactly once", i)
		}
		before = s.Snapshot()
	}
	s.Apply(marker(execution.MarkerCurrent, "I-7"))
	if s.Current() != "I-1" || s.Implementation()["I-1"] != "validating" {
		t.Errorf("current %s, %v", s.Current(), s.Implementation())
	}
	if diff := cmp.Diff([]string{"VC-1", "VC-3"}, s.Done()); diff != "" {
		t.Error(diff)
	}
	if left := s.Remaining(); len(left) != 1 || left[0].ID != "VC-2" || s.Complete() {
		t.Errorf("remaining %v", left)
	}
	if s.Apply(done("VC-2")); !s.Complete() {
		t.Error("not complete")
	}
}

func TestAStateIsTheSameWhenItIsReadBack(t *testing.T) {
	t.Parallel()
	s := state(covered, done("VC-2"), marker(execution.MarkerValidating, "I-3"), marker(execution.MarkerCurrent, "I-3"))
	back := execution.NewState(execution.Parse(covered), s.Done(), s.Implementation(), s.Current())
	if s.Snapshot() != back.Snapshot() {
		t.Errorf("%s became %s", s.Snapshot(), back.Snapshot())
	}
	odd := execution.NewState(execution.Parse(covered), []string{"VC-1", "VC-77"}, map[string]string{"I-1": "finished", "I-2": "implemented", "I-8": "implemented"}, "I-9")
	if len(odd.Done()) != 1 || len(odd.Implementation()) != 1 || odd.Current() != "" {
		t.Errorf("unknown ids or statuses were taken over: %s", odd.Snapshot())
	}
}

func TestAPlanWithoutChecksIsNeverComplete(t *testing.T) {
	t.Parallel()
	if state("# nothing").Complete() {
		t.Error("nothing was verified")
	}
}

func TestTheStatusLine(t *testing.T) {
	t.Parallel()
	const checksOnly = "## Verifier Checklist\n- [ ] VC-1 x\n- [ ] VC-2 y\n"
	for name, c := range map[string]struct {
		state *execution.State
		spent time.Duration
		usage execution.Usage
		wait  execution.GoalWait
		want  string
	}{
		"new":             {state(covered), 0, execution.Usage{}, execution.GoalWait{}, "⌛ plans 0/3: spent 00:00:00 · 0 in-toks · 0 out-toks"},
		"checks alone":    {state(checksOnly, done("VC-2")), 61 * time.Second, execution.Usage{In: 999, Out: 1000}, execution.GoalWait{}, "⌛ plans 1/2: spent 00:01:01 · 999 in-toks · 1.0k out-toks"},
		"items passed":    {state(covered, done("VC-3")), 100*time.Hour + 3*time.Second, execution.Usage{In: 12345, Out: 1250000}, execution.GoalWait{}, "⌛ plans 1/3: spent 100:00:03 · 12.3k in-toks · 1250.0k out-toks"},
		"current item":    {state(covered, marker(execution.MarkerCurrent, "I-3")), 0, execution.Usage{}, execution.GoalWait{}, "⌛ plans 2/3: spent 00:00:00 · 0 in-toks · 0 out-toks"},
		"the last item":   {state(covered, marker(execution.MarkerCurrent, "I-4")), 0, execution.Usage{}, execution.GoalWait{}, "⌛ plans 3/3: spent 00:00:00 · 0 in-toks · 0 out-toks"},
		"nothing covered": {state("## Implementation Items\n- `I-1`: a\n- `I-2`: b\n" + checksOnly), 0, execution.Usage{}, execution.GoalWait{}, "⌛ plans 0/2: spent 00:00:00 · 0 in-toks · 0 out-toks"},
		"a clock behind":  {state(covered), -time.Hour, execution.Usage{In: -1}, execution.GoalWait{NoProgress: 2}, "⌛ plans 0/3: spent 00:00:00 · 0 in-toks · 0 out-toks · no progress 2/3"},
		"waiting":         {state(covered), 0, execution.Usage{}, execution.GoalWait{Waiting: 5, NoProgress: 1}, "⌛ plans 0/3: spent 00:00:00 · 0 in-toks · 0 out-toks · waiting 5/6"},
		"paused":          {state(covered), 0, execution.Usage{}, execution.GoalWait{Waiting: 6, Paused: "lunch"}, "⌛ plans 0/3: spent 00:00:00 · 0 in-toks · 0 out-toks · paused: lunch"},
	} {
		if got := c.state.StatusLine(c.spent, c.usage, c.wait); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheLineOfARunThatIsNotExecuted(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"done": "🎯 plans: r (done)", "abandoned": "🚫 plans: r", "stopped": "⛔ plans: r", "accepted": "⌛ plans: r", "planning": "💬 plans: r", "verifying": "",
	} {
		if got := execution.IdleLine("r", status, false); got != want {
			t.Errorf("%s: %q, want %q", status, got, want)
		}
	}
	if got := execution.IdleLine("r", "planning", true); got != "📝 plans: r" {
		t.Errorf("got %q", got)
	}
}

func TestTheContextTellsWhatIsLeftAndHowToReport(t *testing.T) {
	t.Parallel()
	s := state(covered, done("VC-1"), marker(execution.MarkerCurrent, "I-2"))
	text := s.Context(execution.Brief{PlanPath: "/w/PLAN_v1.md", Graph: execution.GraphOn, Reverify: []string{"VC-1", "VC-3"}})
	for _, want := range []string{
		"write access is on", "Plan: /w/PLAN_v1.md\nVerified: 1 of 3 checks.", "- VC-2 covers I-1, I-2; I-3\n- VC-3 covers I-3\n",
		"Verify them again before anything else: VC-3.", "- I-1 (validating): a\n- I-2 (implementing): b\n", "Current item: I-2\n", "[I-<number>:current]",
		"The code graph is enabled", "\"waiting for\"", "5, 10, 20, 40 and 80 seconds", "no stopgaps", "skip marker", "[DONE:VC-<number>] only after", "summary",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
	if strings.Contains(text, "- VC-1") {
		t.Error("a check that has passed is listed as remaining")
	}
	var scanner execution.Scanner
	if found := scanner.Scan(text); found != nil {
		t.Errorf("an agent that repeats the text would report %v", found)
	}
	plain := state("## Verifier Checklist\n- [x] VC-1 x\n", done("VC-1")).Context(execution.Brief{Graph: execution.GraphUnreadable})
	if !strings.Contains(plain, "Remaining checks:\n- none\n") || !strings.Contains(plain, "settings of this workspace cannot be read") || strings.Contains(plain, "Current item") {
		t.Errorf("got\n%s", plain)
	}
	if off := s.Context(execution.Brief{}); !strings.Contains(off, "The code graph is off") || strings.Contains(off, "before anything else") {
		t.Errorf("got\n%s", off)
	}
}
