package actors_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/proc"
)

// orders notes what the batches of a round are told, and which lanes the role actor
// has heard to be up by then.
type orders struct {
	mu   sync.Mutex
	told []string
	up   map[string]bool
	// upAt is how many lanes were up, or over, when a batch was told to be warm.
	upAt map[string]int
}

func newOrders() *orders { return &orders{up: map[string]bool{}, upAt: map[string]int{}} }

// fault implements lanestest.Fault; it never panics.
func (o *orders) fault(name string, message any) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch m := message.(type) {
	case lanes.Progress:
		if name == "subject" && m.Phase != lanes.PhaseStarting {
			o.up[m.LaneID] = true
		}
	case lanes.Finished:
		if name == "subject" {
			o.up[m.Result.LaneID] = true
		}
	case lanes.Warm:
		if isBatch(name) {
			o.told = append(o.told, name+" warm")
			o.upAt[name] = len(o.up)
		}
	case lanes.Begin:
		if isBatch(name) {
			o.told = append(o.told, name+" begin")
		}
	}
	return nil
}

func isBatch(name string) bool { return len(name) > 5 && name[:5] == "batch" }

func (o *orders) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.told...)
}

// answering answers as soon as it has its task.
func answering(c *lanestest.Child) proc.Exit {
	c.Release("work")
	return holding(c)
}

func TestTheNextBatchIsStartedWarmWhenAllLanesAtWorkAreUp(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, answering)
	host.Spares = lanes.BatchSize
	all, seen := planned(10), newOrders()
	stage := play(t, all, host, seen.fault)
	stage.Send(lanes.Begin{})
	judged(t, stage, all)
	want := []string{"batch-1 begin", "batch-2 warm", "batch-2 begin", "batch-3 warm", "batch-3 begin", "batch-4 warm", "batch-4 begin"}
	if diff := cmp.Diff(want, seen.list()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"batch-2": 3, "batch-3": 6, "batch-4": 9}, seen.upAt); diff != "" {
		t.Errorf("lanes that were up when the next batch was warmed: %s", diff)
	}
	if len(host.Children()) != len(all) || host.Peak() > lanes.BatchSize {
		t.Errorf("%d children for %d lanes, %d of them at work at once", len(host.Children()), len(all), host.Peak())
	}
	for _, m := range lanestest.All[actors.LaneJudged](stage) {
		if m.Outcome.Result.Attempts != 1 {
			t.Errorf("lane %s took %d attempts", m.Outcome.Result.LaneID, m.Outcome.Result.Attempts)
		}
	}
}

func TestASlowLaneKeepsTheNextBatchFromBeingStarted(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		if c.Spec.ID == "ref-2" && !c.Hold("the first event") {
			return lanestest.Code(143)
		}
		return answering(c)
	})
	host.Spares = lanes.BatchSize
	all, seen := planned(5), newOrders()
	stage := play(t, all, host, seen.fault)
	stage.Send(lanes.Begin{})
	for _, id := range []string{"ref-1", "ref-3"} { // over, and so is what the role actor does about it
		lanestest.Await(t, stage, func(m actors.LaneJudged) bool { return m.Outcome.Result.LaneID == id })
	}
	slow := host.Next(t, "ref-2")
	slow.At(t, "the first event")
	if diff := cmp.Diff([]string{"batch-1 begin"}, seen.list()); diff != "" {
		t.Error(diff)
	}
	slow.Release("the first event")
	judged(t, stage, all)
	if diff := cmp.Diff([]string{"batch-1 begin", "batch-2 warm", "batch-2 begin"}, seen.list()); diff != "" || seen.upAt["batch-2"] != 3 {
		t.Errorf("with %d lanes up: %s", seen.upAt["batch-2"], diff)
	}
}

func TestARefusedLaneKeepsNoBatchFromBeingStartedWarm(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refused []int
		want    []string
	}{
		"in the batch at work": {[]int{1}, []string{"batch-1 begin", "batch-2 warm", "batch-2 begin", "batch-3 warm", "batch-3 begin"}},
		"in the next batch":    {[]int{3, 5}, []string{"batch-1 begin", "batch-2 warm", "batch-2 begin", "batch-3 warm", "batch-3 begin"}},
		"a whole batch":        {[]int{3, 4, 5}, []string{"batch-1 begin", "batch-3 warm", "batch-3 begin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, answering)
			host.Spares = lanes.BatchSize
			all, seen := planned(7), newOrders()
			for _, i := range test.refused {
				all[i].Refused = "no such directory"
			}
			stage := play(t, all, host, seen.fault)
			stage.Send(lanes.Begin{})
			judged(t, stage, all)
			if diff := cmp.Diff(test.want, seen.list()); diff != "" {
				t.Error(diff)
			}
			if got, want := len(host.Children()), len(all)-len(test.refused); got != want {
				t.Errorf("%d children, want %d", got, want)
			}
		})
	}
}

func TestACancelEndsTheSpares(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding)
	host.Spares = lanes.BatchSize
	all := planned(8)
	stage := play(t, all, host, nil)
	stage.Send(lanes.Begin{})
	for _, id := range []string{"ref-1", "ref-2", "ref-3"} {
		host.Next(t, id).At(t, "work")
	}
	for _, id := range []string{"ref-4", "ref-5", "ref-6"} {
		host.Next(t, id)
	}
	stage.Send(lanes.Cancel{Reason: "enough"})
	for id, end := range judged(t, stage, all) {
		if end != "cancelled" {
			t.Errorf("lane %s ended %s", id, end)
		}
	}
	for _, m := range lanestest.All[actors.LaneJudged](stage) {
		want := 0
		if m.Outcome.Lane.Batch == 1 {
			want = 1
		}
		if r := m.Outcome.Result; r.Attempts != want || (want == 0) != r.Started.IsZero() {
			t.Errorf("lane %s: %d attempts, started %v, want %d", r.LaneID, r.Attempts, r.Started, want)
		}
	}
	if n := len(host.Children()); n != 6 { // the host complains at the end if one is not gone
		t.Errorf("%d children, want those at work and as many spares", n)
	}
}

func TestASpareBatchThatPanicsFailsItsLanesOnly(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		if c.Spec.ID != "ref-1" {
			c.Release("work")
		}
		return holding(c)
	})
	host.Spares = lanes.BatchSize
	all := planned(9)
	stage := play(t, all, host, func(_ string, message any) any {
		if _, ok := message.(poke); ok {
			return "poked"
		}
		return nil
	})
	stage.Send(lanes.Begin{})
	first := host.Next(t, "ref-1")
	first.At(t, "work")
	host.Next(t, "ref-5")
	stage.SendTo(t, "batch-2", poke{})
	lanestest.Await(t, stage, func(m actors.LaneJudged) bool { return m.Outcome.Result.LaneID == "ref-6" })
	first.Release("work")
	want := map[string]string{"ref-4": "internal", "ref-5": "internal", "ref-6": "internal"}
	for _, id := range []string{"ref-1", "ref-2", "ref-3", "ref-7", "ref-8", "ref-9"} {
		want[id] = "complete"
	}
	if diff := cmp.Diff(want, judged(t, stage, all)); diff != "" {
		t.Error(diff)
	}
}
