package lanes_test

import (
	"testing"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
)

// resultOf waits for the report of one lane.
func resultOf(t *testing.T, stage *lanestest.Stage, laneID string) lanes.Result {
	t.Helper()
	return lanestest.Await(t, stage, func(m lanes.Finished) bool { return m.Result.LaneID == laneID }).Result
}

func TestOneLaneOfABatchIsCancelledAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("done"))
	stage := begin(t, host, nil, spec("one"), spec("two"), spec("three"))
	children := map[string]*lanestest.Child{}
	for _, id := range []string{"one", "two", "three"} {
		children[id] = host.Next(t, id)
		children[id].At(t, "work")
	}
	stage.Send(lanes.CancelLane{LaneID: "nobody", Reason: reason})
	stage.Send(lanes.CancelLane{LaneID: "two", Reason: reason})
	wantCancelled(t, resultOf(t, stage, "two"), 1)
	stage.Send(lanes.CancelLane{LaneID: "two", Reason: "once more"})
	for _, id := range []string{"one", "three"} {
		children[id].Release("work")
		if r := resultOf(t, stage, id); r.Status != lanes.Complete || r.Output != "done" {
			t.Errorf("lane %s ended %s with %q", id, r.Status, r.Output)
		}
	}
	stage.AwaitEnd(t)
	if n := len(lanestest.All[lanes.Finished](stage)); n != 3 {
		t.Errorf("%d reports for three lanes", n)
	}
}

func TestAQueuedLaneIsCancelledWhileOthersKeepTheirTurn(t *testing.T) {
	t.Parallel()
	host := full(t, answering("done"))
	stage := begin(t, host, nil, spec("one"), spec("two"))
	for _, id := range []string{"one", "two"} {
		lanestest.Await(t, stage, func(p lanes.Progress) bool { return p.LaneID == id && p.Status == lanes.Queued })
	}
	stage.Send(lanes.CancelLane{LaneID: "one", Reason: reason})
	wantCancelled(t, resultOf(t, stage, "one"), 0)
	host.Grant(t) // to whoever came first
	host.Grant(t)
	if r := resultOf(t, stage, "two"); r.Status != lanes.Complete || host.Starts("one") != 0 {
		t.Errorf("the other ended %s; %d starts of the cancelled one", r.Status, host.Starts("one"))
	}
}

func TestALaneThatWasCancelledAloneStaysSoWhenItsActorIsStartedAnew(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("done"))
	stage := begin(t, host, func(name string, message any) any {
		if _, ok := message.(lanes.Cancel); ok && name == "lane-one" && host.Alive() == 2 {
			return "it panics over its cancel" // once: its child is gone after that
		}
		return nil
	}, spec("one"), spec("two"))
	other := host.Next(t, "two")
	host.Next(t, "one").At(t, "work")
	other.At(t, "work")
	stage.Send(lanes.CancelLane{LaneID: "one", Reason: reason})
	wantCancelled(t, resultOf(t, stage, "one"), 1)
	other.Release("work")
	if r := resultOf(t, stage, "two"); r.Status != lanes.Complete {
		t.Errorf("the other ended %s", r.Status)
	}
	if n := host.Starts("one"); n != 1 {
		t.Errorf("%d children of the cancelled lane", n)
	}
}
