package lanes_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// poke makes the actor that gets it panic, see onPoke.
type poke struct{}

func onPoke(_ string, message any) any {
	if _, ok := message.(poke); ok {
		return "poked"
	}
	return nil
}

// both asks one fault after the other.
func both(a, b lanestest.Fault) lanestest.Fault {
	return func(name string, message any) any {
		if reason := a(name, message); reason != nil {
			return reason
		}
		return b(name, message)
	}
}

// at panics in an actor at the first n messages that fit.
func at(actorName string, n int64, fits func(any) bool) lanestest.Fault {
	var count atomic.Int64
	return func(name string, message any) any {
		if name == actorName && fits(message) && count.Add(1) <= n {
			return "injected"
		}
		return nil
	}
}

func is[M any](message any) bool {
	_, ok := message.(M)
	return ok
}

// isWork recognises what a lane's own goroutine reports to it.
func isWork(message any) bool { return fmt.Sprintf("%T", message) == "lanes.worked" }

const always = 1 << 30

// wantInternal checks the report of a lane that pilothouse failed.
func wantInternal(t *testing.T, r lanes.Result, reason string) {
	t.Helper()
	if r.Status != lanes.Failed || r.Error == nil || r.Error.Class != pijson.ClassInternal || !strings.Contains(r.Error.Message, reason) {
		t.Errorf("got %s %+v, want an internal failure because of %q", r.Status, r.Error, reason)
	}
}

func TestAPanicInTheGoroutineOfAnAttemptFailsTheLaneOnly(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Start", "Feed", "Stdout", "Read", "Wait"} {
		t.Run("in "+method, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, holding("done"))
			if method == "Start" {
				host.Before = func(_ context.Context, s lanes.Spec, _ int) error {
					if s.ID == "general" {
						panic("injected into Start")
					}
					return nil
				}
			}
			host.Prepare = func(c *lanestest.Child) {
				if c.Spec.ID == "general" {
					c.PanicIn = method
				}
				c.Release("work")
			}
			stage := begin(t, host, afterItsChildren(t, host, "general"), spec("general"), spec("other"))
			stage.AwaitEnd(t)
			results := byLane(t, stage, 2)
			wantInternal(t, results["general"], "injected into "+method)
			if results["general"].Attempts != 1 {
				t.Errorf("%d attempts, want 1", results["general"].Attempts)
			}
			if method == "Wait" && results["general"].Usage != times(2) {
				t.Errorf("what the child has cost is lost: %+v", results["general"].Usage)
			}
			if results["other"].Status != lanes.Complete {
				t.Errorf("the other lane: %s", results["other"].Status)
			}
		})
	}
}

// afterItsChildren fails the test when a lane reports while its own child is alive.
func afterItsChildren(t *testing.T, host *lanestest.Host, laneID string) lanestest.Fault {
	return func(_ string, message any) any {
		if m, ok := message.(lanes.Finished); ok && m.Result.LaneID == laneID {
			for _, c := range host.Children() {
				if c.Spec.ID == laneID && !c.Waited() {
					t.Error("the lane reported before its child was gone")
				}
			}
		}
		return nil
	}
}

// byLane sorts the reports of a batch, which must be one for each lane.
func byLane(t *testing.T, stage *lanestest.Stage, n int) map[string]lanes.Result {
	t.Helper()
	results := map[string]lanes.Result{}
	for _, m := range lanestest.All[lanes.Finished](stage) {
		if _, twice := results[m.Result.LaneID]; twice {
			t.Errorf("lane %s reported twice", m.Result.LaneID)
		}
		results[m.Result.LaneID] = m.Result
	}
	if len(results) != n {
		t.Errorf("%d lanes reported, want %d", len(results), n)
	}
	return results
}

func TestALaneThatPanicsOnceGoesOn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		fits     func(any) bool
		attempts int
		messages int // that were paid for
	}{
		{"at its start", is[*actor.Started], 1, 2},
		{"at Begin", is[lanes.Begin], 1, 2},
		{"when its work reports", isWork, 2, 4},
		{"while it stops", is[*actor.Stopping], 1, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, holding("done"))
			host.Prepare = func(c *lanestest.Child) { c.Release("work") }
			stage := begin(t, host, at("lane-general", 1, test.fits), spec("general"))
			r := theResult(t, stage)
			if r.Status != lanes.Complete || r.Attempts != test.attempts || r.Usage != times(test.messages) {
				t.Errorf("%s after %d attempts for %+v, want complete after %d for %d messages", r.Status, r.Attempts, r.Usage, test.attempts, test.messages)
			}
		})
	}
}

func TestALaneThatPanicsAtWorkEndsItsChildAndTriesAgain(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("done"))
	stage := lanestest.Play(t, lanes.NewBatch([]lanes.Spec{spec("general")}, host), onPoke)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	stage.SendTo(t, "lane-general", lanestest.Traced(lanes.Begin{}, parent))
	first := host.Next(t, "general")
	first.At(t, "work")
	stage.Send(lanes.Begin{})
	stage.SendTo(t, "lane-general", poke{})
	second := host.Next(t, "general")
	if !first.Waited() {
		t.Error("the second child was started before the first was gone")
	}
	if second.Traceparent != parent {
		t.Errorf("the second child's trace is %q, want %q", second.Traceparent, parent)
	}
	second.Release("work")
	r := theResult(t, stage)
	if r.Status != lanes.Complete || r.Attempts != 2 || r.Usage != times(3) {
		t.Errorf("%s after %d attempts for %+v, want complete after 2 for 3 messages", r.Status, r.Attempts, r.Usage)
	}
}

func TestALaneThatPanicsWhileItWaitsTriesAgainAtOnce(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, inTurn(printing(lanestest.Code(0), lanestest.GivesUp("503 Service Unavailable")), answering("done")))
	stage := begin(t, host, onPoke, limited("general", lanes.Limits{RetryDelay: 1 << 50, Lane: 1 << 60}))
	lanestest.Await(t, stage, func(p lanes.Progress) bool { return strings.HasPrefix(p.Phase, "waiting: server") })
	stage.SendTo(t, "lane-general", poke{})
	if r := theResult(t, stage); r.Status != lanes.Complete || r.Attempts != 2 || r.Usage != times(4) {
		t.Errorf("%s after %d attempts for %+v", r.Status, r.Attempts, r.Usage)
	}
}

func TestALaneThatPanicsForEverIsGivenUp(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("never"))
	var starts atomic.Int64
	stage := begin(t, host, at("lane-general", always, func(m any) bool {
		if !is[*actor.Started](m) {
			return false
		}
		starts.Add(1)
		return true
	}), spec("general"), spec("other"))
	host.Next(t, "other").Release("work")
	stage.AwaitEnd(t)
	results := byLane(t, stage, 2)
	wantInternal(t, results["general"], "its actor failed with: injected")
	if results["other"].Status != lanes.Complete {
		t.Errorf("the other lane: %s", results["other"].Status)
	}
	if n := starts.Load(); n != lanes.LaneRestarts+1 {
		t.Errorf("the actor was started %d times, want once and %d times more", n, lanes.LaneRestarts)
	}
	if n := host.Starts("general"); n != 0 {
		t.Errorf("%d children of a lane that never began", n)
	}
}

func TestALaneIsRestartedABoundedNumberOfTimes(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("never"))
	stage := begin(t, host, both(onPoke, afterTheChildren(t, host)), limited("general", lanes.Limits{Attempts: 10}))
	for range lanes.LaneRestarts + 1 {
		host.Next(t, "general").At(t, "work")
		stage.SendTo(t, "lane-general", poke{})
	}
	r := theResult(t, stage)
	wantInternal(t, r, "its actor failed with: poked")
	if r.Attempts != lanes.LaneRestarts+1 || r.Usage != times(r.Attempts) || r.Turns != r.Attempts || r.Started.IsZero() {
		t.Errorf("the record of the lost lane lacks what it has cost: %+v", r)
	}
}

func TestARestartIsNoFurtherAttempt(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("never"))
	stage := begin(t, host, onPoke, limited("general", lanes.Limits{Attempts: 1}))
	host.Next(t, "general").At(t, "work")
	stage.SendTo(t, "lane-general", poke{})
	r := theResult(t, stage)
	wantInternal(t, r, "poked")
	if r.Attempts != 1 || host.Starts("general") != 1 {
		t.Errorf("%d attempts and %d children, want 1", r.Attempts, host.Starts("general"))
	}
}

func TestALaneThatPanicsWhileItStopsEndsItsChild(t *testing.T) {
	t.Parallel()
	for name, fits := range map[string]func(any) bool{
		"once, at Stopping":            is[*actor.Stopping],
		"at Stopping and at a restart": func(m any) bool { return is[*actor.Stopping](m) || is[*actor.Restarting](m) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, holding("never"))
			stage := begin(t, host, at("lane-general", 2, fits), spec("general"))
			host.Next(t, "general").At(t, "work")
			stage.Stop()
			stage.AwaitEnd(t)
			if host.Alive() != 0 || len(host.Children()) != 1 {
				t.Errorf("%d of %d children are alive, want none of 1", host.Alive(), len(host.Children()))
			}
		})
	}
}

func TestABatchThatPanicsEndsItsChildren(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]lanestest.Fault{
		"at work":         onPoke,
		"while it stops":  both(onPoke, at("subject", 1, is[*actor.Stopping])),
		"stopping thrice": both(onPoke, at("subject", 3, is[*actor.Stopping])),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, holding("never"))
			stage := begin(t, host, fault, spec("a"), spec("b"), spec("c"))
			for _, id := range []string{"a", "b", "c"} {
				host.Next(t, id).At(t, "work")
			}
			stage.Send(poke{})
			stage.AwaitEnd(t)
			if host.Alive() != 0 || len(host.Children()) != 3 {
				t.Errorf("%d of %d children are alive, want none of 3", host.Alive(), len(host.Children()))
			}
		})
	}
}

func TestAChildThatCannotBeEndedInGoodOrderIsNoReasonToHang(t *testing.T) {
	t.Parallel()
	host := lanestest.NewUncheckedHost(func(c *lanestest.Child) proc.Exit { c.AwaitEnd(); return lanestest.Code(143) })
	host.Prepare = func(c *lanestest.Child) { c.PanicIn = "Stdout" }
	stage := warm(t, host, nil)
	host.Next(t, "general")
	stage.Stop()
	stage.AwaitEnd(t)
	if complaints := host.Complaints(); complaints != nil {
		t.Error(complaints)
	}
}
