package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

var watchTime = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// after is a moment of a test, in seconds.
func after(seconds float64) time.Time {
	return watchTime.Add(time.Duration(seconds * float64(time.Second)))
}

func callAt(id, run string, seconds float64) api.Call {
	return api.Call{ID: id, Tool: api.ToolRefine, Workdir: "/w", RunID: run, RoundID: "round-" + id, State: api.StateRunning, Created: after(seconds)}
}

func startedEvent(call string, laneIDs ...string) api.Event {
	s := &api.Started{RunID: "run", RoundID: "round-" + call, Role: actors.Reviewer, Model: "a/b"}
	for _, id := range laneIDs {
		s.Lanes = append(s.Lanes, api.PlannedLane{LaneID: id, Name: id, Batch: 1})
	}
	return api.Event{Call: call, Type: api.EventStarted, Started: s}
}

func progressEvent(call, lane, phase string, elapsedMs int64) api.Event {
	return api.Event{Call: call, Type: api.EventProgress, Progress: &api.Progress{
		LaneID: lane, Status: lanes.Running, Phase: phase, Attempt: 1, Turns: 1, Usage: pijson.Usage{Input: 10}, ElapsedMs: elapsedMs,
	}}
}

func laneEvent(call, lane string, status lanes.Status) api.Event {
	r := &supervisor.LaneResult{LaneID: lane, Status: status, Attempts: 1, Turns: 2, DurationMs: 5000, Usage: pijson.Usage{Input: 10, Output: 5, Cost: 0.25}}
	if status == lanes.Failed {
		r.Error = &lanes.Failure{Class: "auth", Message: "401"}
	}
	return api.Event{Call: call, Type: api.EventLane, Lane: r}
}

func fold(b *board, seconds float64, events ...api.Event) {
	for _, e := range events {
		b.take(e, after(seconds))
	}
}

// statuses are those of the lanes of a view, by call and lane.
func statuses(v watchView) map[string]lanes.Status {
	all := map[string]lanes.Status{}
	for _, run := range v.Runs {
		for _, round := range run.Rounds {
			for _, lane := range round.Lanes {
				all[round.Call+"/"+lane.LaneID] = lane.Status
			}
		}
	}
	return all
}

func TestAWatchedRoundIsShownFromItsStartToItsEnd(t *testing.T) {
	t.Parallel()
	b := newBoard()
	b.list([]api.Call{callAt("c", "", 0)}, nil, after(0))
	if v := b.view(after(0)); len(v.Runs) != 1 || len(v.Runs[0].Rounds[0].Lanes) != 0 || v.Runs[0].Rounds[0].State != api.StateRunning {
		t.Errorf("a call that is being prepared is shown as %+v", v)
	}
	fold(b, 1, startedEvent("c", "x", "y", "z"), progressEvent("c", "x", "tool: read", 1500), laneEvent("c", "y", lanes.Failed))
	want := watchView{
		Totals: totals{Running: 1, Queued: 1, Failed: 1, Usage: pijson.Usage{Input: 20, Output: 5, Cost: 0.25}},
		Runs: []runView{{RunID: "run", Workdir: "/w", Rounds: []roundView{{
			Call: "c", Tool: "refine", RoundID: "round-c", Role: actors.Reviewer, Model: "a/b", State: api.StateRunning, Created: after(0),
			Lanes: []laneView{
				{LaneID: "x", Batch: 1, Status: lanes.Running, Phase: "tool: read", Attempt: 1, Turns: 1, Usage: pijson.Usage{Input: 10}, ElapsedMs: 3500},
				{LaneID: "y", Batch: 1, Status: lanes.Failed, Attempt: 1, Turns: 2, Usage: pijson.Usage{Input: 10, Output: 5, Cost: 0.25}, ElapsedMs: 5000,
					Error: &lanes.Failure{Class: "auth", Message: "401"}},
				{LaneID: "z", Batch: 1, Status: lanes.Queued},
			},
		}}}},
	}
	if diff := cmp.Diff(want, b.view(after(3))); diff != "" { // two seconds after the progress
		t.Errorf("view (-want +got):\n%s", diff)
	}
	fold(b, 4, laneEvent("c", "x", lanes.Complete), laneEvent("c", "z", lanes.Cancelled),
		api.Event{Call: "c", Type: api.EventProblem, Problem: &api.Problem{Detail: "no lane was left"}})
	v := b.view(after(9))
	if want := (totals{Done: 1, Failed: 2, Usage: pijson.Usage{Input: 30, Output: 15, Cost: 0.75}}); v.Totals != want {
		t.Errorf("totals %+v, want %+v", v.Totals, want)
	}
	if round := v.Runs[0].Rounds[0]; round.State != api.StateFinished || round.Problem != "no lane was left" || round.Lanes[0].ElapsedMs != 5000 {
		t.Errorf("round %+v", round)
	}
}

func TestTheEndOfAWatchedLaneIsNeverTakenBack(t *testing.T) {
	t.Parallel()
	late := api.Lane{Call: "c", Progress: *progressEvent("c", "x", "responding", 1).Progress}
	for name, again := range map[string]func(*board){
		"by progress": func(b *board) { fold(b, 2, progressEvent("c", "x", "responding", 1)) },
		"by a list":   func(b *board) { b.list([]api.Call{callAt("c", "run", 0)}, []api.Lane{late}, after(2)) },
		"by the end of the call": func(b *board) {
			fold(b, 2, api.Event{Call: "c", Type: api.EventResult})
		},
		"by its delivery": func(b *board) { b.list(nil, nil, after(2)) },
		"by a new start":  func(b *board) { fold(b, 2, startedEvent("c", "x")) },
	} {
		b := newBoard()
		b.list([]api.Call{callAt("c", "run", 0)}, nil, after(0))
		fold(b, 1, startedEvent("c", "x"), laneEvent("c", "x", lanes.Complete))
		again(b)
		if got := statuses(b.view(after(3)))["c/x"]; got != lanes.Complete {
			t.Errorf("%s: the lane is %q again", name, got)
		}
	}
}

func TestLanesWhoseEndNobodyToldAreLostUntilItIsTold(t *testing.T) {
	t.Parallel()
	b := newBoard()
	b.list([]api.Call{callAt("c", "run", 0)}, nil, after(0))
	fold(b, 1, startedEvent("c", "x", "y"), progressEvent("c", "x", "responding", 1))
	b.list(nil, nil, after(2)) // the daemon knows nothing of it any more
	want := map[string]lanes.Status{"c/x": laneLost, "c/y": laneLost}
	v := b.view(after(3))
	if diff := cmp.Diff(want, statuses(v)); diff != "" || v.Totals.Failed != 2 || v.Runs[0].Rounds[0].State != api.StateDelivered {
		t.Errorf("%+v (-want +got):\n%s", v, diff)
	}
	fold(b, 4, laneEvent("c", "x", lanes.Complete))
	if got := statuses(b.view(after(5)))["c/x"]; got != lanes.Complete {
		t.Errorf("a lane whose end was told late is %q", got)
	}
}

func TestAWatcherThatComesLateKnowsWhatHasEnded(t *testing.T) {
	t.Parallel()
	b := newBoard()
	failed := api.Lane{
		Call: "c", Role: actors.RefAnalyst, RefID: "r", Batch: 2, Error: &lanes.Failure{Class: "auth", Message: "401"},
		Progress: api.Progress{LaneID: "ref-1", Status: lanes.Failed, ElapsedMs: 7},
	}
	strange := api.Lane{Call: "unheard", Progress: api.Progress{LaneID: "x", Status: lanes.Running}}
	b.list([]api.Call{callAt("c", "run", 0), {ID: "p", Tool: api.ToolPlans, State: api.StateRunning}}, []api.Lane{failed, strange}, after(1))
	v := b.view(after(2))
	want := []laneView{{LaneID: "ref-1", RefID: "r", Batch: 2, Status: lanes.Failed, ElapsedMs: 7, Error: failed.Error}}
	if len(v.Runs) != 1 || v.Runs[0].Rounds[0].Role != actors.RefAnalyst {
		t.Fatalf("view %+v", v)
	}
	if diff := cmp.Diff(want, v.Runs[0].Rounds[0].Lanes); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoRoundIsNotShown(t *testing.T) {
	t.Parallel()
	b := newBoard()
	fold(b, 0, api.Event{Call: "p", Type: api.EventAccepted}, api.Event{Call: "p", Type: api.EventResult})
	b.list([]api.Call{{ID: "p", Tool: api.ToolPlans, State: api.StateFinished}}, nil, after(1))
	if v := b.view(after(1)); len(v.Runs) != 0 || v.Runs == nil {
		t.Errorf("view %+v", v)
	}
}

func TestAnswersThatWereReusedAreComplete(t *testing.T) {
	t.Parallel()
	b := newBoard()
	e := startedEvent("c", "x", "y")
	e.Started.Reused = []string{"y"}
	fold(b, 0, e)
	v := b.view(after(0))
	if lane := v.Runs[0].Rounds[0].Lanes[1]; lane.Status != lanes.Complete || lane.Phase != "reused" || v.Totals.Queued != 1 {
		t.Errorf("view %+v", v)
	}
}

func TestRunsAtWorkComeFirstThenTheNewest(t *testing.T) {
	t.Parallel()
	b := newBoard()
	done := func(call api.Call) api.Call { call.State = api.StateFinished; return call }
	elsewhere := callAt("f", "one", 5)
	elsewhere.Workdir = "/elsewhere"
	b.list([]api.Call{
		callAt("a", "one", 0), done(callAt("b", "two", 1)), done(callAt("c", "three", 2)), callAt("d", "three", 3), done(callAt("e", "one", 4)), elsewhere,
	}, nil, after(6))
	var got [][]string
	for _, run := range b.view(after(6)).Runs {
		calls := []string{run.RunID}
		for _, round := range run.Rounds {
			calls = append(calls, round.Call)
		}
		got = append(got, calls)
	}
	want := [][]string{{"one", "f"}, {"three", "d", "c"}, {"one", "a", "e"}, {"two", "b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

// Whatever happens in whatever order: what is at work is in sight, of the rest the
// newest, and the totals are those of the lanes in sight.
func TestABoardKeepsWhatIsAtWorkAndTheLastThatEnded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBoard()
		running := map[string]bool{}
		for i := range rapid.IntRange(0, 120).Draw(t, "calls") {
			id := fmt.Sprintf("c%03d", i)
			running[id] = true
			fold(b, float64(i), startedEvent(id, "x"))
			if rapid.IntRange(0, 3).Draw(t, "ends") > 0 {
				fold(b, float64(i), laneEvent(id, "x", lanes.Complete), api.Event{Call: id, Type: api.EventResult})
				delete(running, id)
			}
		}
		v := b.view(after(1000))
		ended := 0
		for _, run := range v.Runs {
			for _, round := range run.Rounds {
				if round.State != api.StateRunning {
					ended++
				}
				delete(running, round.Call)
			}
		}
		if len(running) > 0 || ended > endedShown {
			t.Fatalf("%d ended calls are in sight, and these that are at work are not: %v", ended, running)
		}
		if got := statuses(v); v.Totals.Queued+v.Totals.Done != len(got) || v.Totals.Done != ended {
			t.Fatalf("totals %+v of %d lanes", v.Totals, len(got))
		}
	})
}
