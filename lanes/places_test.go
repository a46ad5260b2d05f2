package lanes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/proc"
)

// full is a host whose lanes wait for places.
func full(t *testing.T, script lanestest.Script) *lanestest.Host {
	t.Helper()
	host := lanestest.NewHost(t, script)
	host.Full = true
	return host
}

// isQueued is the progress of a lane that waits for a place.
func isQueued(attempt int) func(lanes.Progress) bool {
	return func(p lanes.Progress) bool {
		return p.Status == lanes.Queued && p.Phase == lanes.PhaseQueued && p.Attempt == attempt
	}
}

func TestALaneIsQueuedUntilItHasAPlace(t *testing.T) {
	t.Parallel()
	host := full(t, answering("done"))
	stage := begin(t, host, nil, spec("general"))
	lanestest.Await(t, stage, isQueued(0))
	if n := host.Starts("general"); n != 0 {
		t.Errorf("%d children were started without a place", n)
	}
	host.Grant(t)
	if r := theResult(t, stage); r.Status != lanes.Complete || r.Attempts != 1 {
		t.Errorf("%s after %d attempts", r.Status, r.Attempts)
	}
	if n := host.Places(); n != 0 {
		t.Errorf("%d places are taken after the end", n)
	}
}

func TestALaneThatHasItsPlaceAtOnceIsNotQueued(t *testing.T) {
	t.Parallel()
	stage := begin(t, lanestest.NewHost(t, answering("done")), nil, spec("general"))
	theResult(t, stage)
	for _, p := range lanestest.All[lanes.Progress](stage) {
		if p.Status != lanes.Running {
			t.Errorf("it was told to be %s: %s", p.Status, p.Phase)
		}
	}
}

func TestAQueuedLaneIsCancelledAtOnce(t *testing.T) {
	t.Parallel()
	host := full(t, answering("never"))
	stage := begin(t, host, nil, spec("general"))
	lanestest.Await(t, stage, isQueued(0))
	stage.Send(lanes.Cancel{Reason: reason})
	r := theResult(t, stage)
	wantCancelled(t, r, 0)
	if !r.Started.IsZero() || host.Starts("general") != 0 || host.Places() != 0 {
		t.Errorf("started %v, %d starts, %d places", r.Started, host.Starts("general"), host.Places())
	}
}

func TestALaneHasNoPlaceWhileItWaitsForItsProvider(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, printing(lanestest.Code(0), lanestest.GivesUp("503 Service Unavailable")))
	stage := begin(t, host, nil, limited("general", lanes.Limits{RetryDelay: time.Hour, Lane: 100 * time.Hour}))
	lanestest.Await(t, stage, func(p lanes.Progress) bool { return strings.HasPrefix(p.Phase, "waiting: server") })
	if n := host.Places(); n != 0 {
		t.Errorf("it has %d places", n)
	}
	stage.Send(lanes.Cancel{Reason: reason})
	wantCancelled(t, theResult(t, stage), 1)
}

func TestARetryQueuesLikeAFirstAttempt(t *testing.T) {
	t.Parallel()
	host := full(t, inTurn(printing(lanestest.Code(0), lanestest.GivesUp("503 Service Unavailable")), answering("at last")))
	stage := begin(t, host, nil, spec("general"))
	host.Grant(t)
	lanestest.Await(t, stage, isQueued(1))
	if n := host.Starts("general"); n != 1 {
		t.Errorf("%d children were started with one place", n)
	}
	host.Grant(t)
	if r := theResult(t, stage); r.Status != lanes.Complete || r.Attempts != 2 {
		t.Errorf("%s after %d attempts", r.Status, r.Attempts)
	}
}

// A lane with far less time than its wait takes still has all of it for its children.
func TestNoClockOfALaneRunsWhileItIsQueued(t *testing.T) {
	t.Parallel()
	const whole = 400 * time.Millisecond
	host := full(t, inTurn(printing(lanestest.Code(0), lanestest.GivesUp("503 Service Unavailable")), answering("at last")))
	stage := begin(t, host, nil, limited("general", lanes.Limits{Lane: whole, RetryDelay: time.Millisecond}))
	for attempt := range 2 {
		lanestest.Await(t, stage, isQueued(attempt))
		<-time.After(whole + whole/2) // what is waited for is that time passes
		host.Grant(t)
	}
	r := theResult(t, stage)
	if r.Status != lanes.Complete || r.Attempts != 2 {
		t.Fatalf("%s after %d attempts: %+v", r.Status, r.Attempts, r.Error)
	}
	if r.Duration >= whole {
		t.Errorf("the wait counts as the lane's time: %s", r.Duration)
	}
}

func TestASpareGivesWay(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"when it is warm": false, "while it is started": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starting, goOn := make(chan struct{}), make(chan struct{})
			host := lanestest.NewHost(t, answering("done"))
			host.Before = func(_ context.Context, _ lanes.Spec, number int) error {
				if during && number == 1 {
					close(starting)
					<-goOn
				}
				return nil
			}
			stage := warm(t, host, nil)
			if during {
				<-starting
				host.Reclaim()
				close(goOn)
			}
			spare := host.Next(t, "general")
			if !during {
				host.Reclaim()
			}
			spare.Terminated(t)
			<-spare.Done()
			stage.Send(lanes.Begin{})
			r := theResult(t, stage)
			if r.Status != lanes.Complete || r.Attempts != 1 || host.Starts("general") != 2 {
				t.Errorf("%s after %d attempts and %d starts, want a cold start", r.Status, r.Attempts, host.Starts("general"))
			}
		})
	}
}

// The scheduler wants the place back, and the task comes before the lane hears of it:
// the spare must not work in a place that another waits for.
func TestATaskThatComesAfterTheSpareHasToGiveWayWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	starting, goOn := make(chan struct{}), make(chan struct{})
	host := lanestest.NewHost(t, answering("done"))
	host.Full = true
	host.Before = func(_ context.Context, _ lanes.Spec, number int) error {
		if number == 1 {
			close(starting)
			<-goOn
		}
		return nil
	}
	stage := warm(t, host, nil)
	<-starting
	stage.Send(lanes.Begin{})
	host.Reclaim()
	close(goOn)
	host.Next(t, "general").Terminated(t)
	lanestest.Await(t, stage, isQueued(0))
	host.Grant(t)
	if r := theResult(t, stage); r.Status != lanes.Complete || r.Attempts != 1 || host.Starts("general") != 2 {
		t.Errorf("%s after %d attempts and %d starts", r.Status, r.Attempts, host.Starts("general"))
	}
}

func TestASpareThatGivesWayIsCancelledLikeAnyOther(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		c.AwaitEnd()
		c.HoldThrough("the end")
		return lanestest.Code(143)
	})
	stage := warm(t, host, nil)
	spare := host.Next(t, "general")
	host.Reclaim()
	spare.Terminated(t)
	stage.Send(lanes.Cancel{Reason: reason})
	spare.Release("the end")
	wantCancelled(t, theResult(t, stage), 0)
}

func TestALaneThatPanicsGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	host := full(t, answering("done"))
	stage := begin(t, host, onPoke, spec("general"))
	lanestest.Await(t, stage, isQueued(0))
	stage.SendTo(t, "lane-general", poke{})
	host.Grant(t) // to the one that left the queue with the panic
	host.Grant(t)
	r := theResult(t, stage)
	if r.Status != lanes.Complete || host.Starts("general") != 1 {
		t.Errorf("%s after %d starts: %+v", r.Status, host.Starts("general"), r.Error)
	}
}
