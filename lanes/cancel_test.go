package lanes_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

const reason = "the user has had enough"

// afterTheChildren fails the test when a lane reports while a child is alive.
func afterTheChildren(t *testing.T, host *lanestest.Host) lanestest.Fault {
	return func(_ string, message any) any {
		if _, ok := message.(lanes.Finished); ok && host.Alive() != 0 {
			t.Error("the lane reported before its child was gone")
		}
		return nil
	}
}

// wantCancelled checks the one report of a cancelled lane.
func wantCancelled(t *testing.T, r lanes.Result, attempts int) {
	t.Helper()
	if r.Status != lanes.Cancelled || r.Error == nil || r.Error.Class != pijson.ClassCancelled || !strings.HasPrefix(r.Error.Message, reason) {
		t.Errorf("got %s %+v, want cancelled because %q", r.Status, r.Error, reason)
	}
	if r.Attempts != attempts || (attempts == 0) != (r.Duration == 0) {
		t.Errorf("%d attempts in %v, want %d", r.Attempts, r.Duration, attempts)
	}
}

func TestALaneThatIsCancelledBeforeItBeginsStartsNoChild(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, answering("never"))
	stage := lanestest.Play(t, lanes.NewBatch([]lanes.Spec{spec("general")}, host), nil)
	stage.Send(lanes.Cancel{Reason: reason})
	stage.Send(lanes.Begin{})
	wantCancelled(t, theResult(t, stage), 0)
	if n := host.Starts("general"); n != 0 {
		t.Errorf("%d children were started", n)
	}
}

func TestALaneIsCancelledWhileItsChildStarts(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"the start is given up": false, "the child comes all the same": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starting := make(chan struct{})
			host := lanestest.NewHost(t, answering("never"))
			host.Before = func(ctx context.Context, _ lanes.Spec, _ int) error {
				close(starting)
				<-ctx.Done()
				if late {
					return nil
				}
				return ctx.Err()
			}
			stage := begin(t, host, afterTheChildren(t, host), spec("general"))
			<-starting
			stage.Send(lanes.Cancel{Reason: reason})
			wantCancelled(t, theResult(t, stage), 1)
		})
	}
}

func TestALaneIsCancelledWhileItsChildIsWarm(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"when it is warm": false, "while it is started": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starting := make(chan struct{})
			host := lanestest.NewHost(t, answering("never"))
			host.Spares = 1
			host.Before = func(ctx context.Context, _ lanes.Spec, _ int) error {
				close(starting)
				if during {
					<-ctx.Done()
				}
				return nil
			}
			var heard atomic.Bool
			warmed := make(chan struct{})
			stage := lanestest.Play(t, lanes.NewBatch([]lanes.Spec{spec("general")}, host), both(afterTheChildren(t, host), func(name string, message any) any {
				if name == "lane-general" && isWork(message) && !heard.Swap(true) {
					close(warmed)
				}
				return nil
			}))
			stage.Send(lanes.Warm{})
			if during {
				<-starting
			} else {
				<-warmed
			}
			stage.Send(lanes.Cancel{Reason: reason})
			wantCancelled(t, theResult(t, stage), 0)
			if n := len(host.Children()); n != 1 {
				t.Errorf("%d children, want the warm one", n)
			}
		})
	}
}

func TestALaneIsCancelledWhileItsChildWorks(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding("never"))
	stage := begin(t, host, afterTheChildren(t, host), spec("general"))
	host.Next(t, "general").At(t, "work")
	stage.Send(lanes.Cancel{Reason: reason})
	r := theResult(t, stage)
	wantCancelled(t, r, 1)
	if r.Usage != times(1) || r.Turns != 1 || r.Exit.Code == nil || *r.Exit.Code != 143 {
		t.Errorf("the record lacks what the child has cost or how it ended: %+v", r)
	}
}

func TestALaneThatIsCancelledTwiceWaitsForAChildThatDoesNotObey(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		_, _ = c.Task()
		c.Print(lanestest.Opening()...)
		c.HoldThrough("the kill")
		return lanestest.Killed("SIGKILL", 9)
	})
	stage := begin(t, host, afterTheChildren(t, host), spec("general"))
	child := host.Next(t, "general")
	child.At(t, "the kill")
	stage.Send(lanes.Cancel{Reason: reason})
	child.Terminated(t)
	stage.Send(lanes.Cancel{Reason: "a second thought"})
	child.Release("the kill")
	r := theResult(t, stage)
	wantCancelled(t, r, 1)
	if r.Exit.Signal != "SIGKILL" || r.Exit.Code != nil {
		t.Errorf("exit %+v, want SIGKILL", r.Exit)
	}
}

func TestALaneIsCancelledWhileItWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, printing(lanestest.Code(0), lanestest.GivesUp("503 Service Unavailable")))
	stage := begin(t, host, nil, limited("general", lanes.Limits{RetryDelay: time.Hour, Lane: 100 * time.Hour}))
	lanestest.Await(t, stage, func(p lanes.Progress) bool { return strings.HasPrefix(p.Phase, "waiting: server") })
	stage.Send(lanes.Cancel{Reason: reason})
	r := theResult(t, stage)
	wantCancelled(t, r, 1)
	if r.Usage != times(3) || !strings.Contains(r.Error.Message, "503 Service Unavailable") {
		t.Errorf("the record lacks the attempt before: %+v, usage %+v", r.Error, r.Usage)
	}
}

func TestACancelWithoutAReasonCancels(t *testing.T) {
	t.Parallel()
	starting := make(chan struct{})
	host := lanestest.NewHost(t, answering("never"))
	host.Spares = 1
	host.Before = func(ctx context.Context, _ lanes.Spec, _ int) error {
		close(starting)
		<-ctx.Done()
		return errors.New("given up")
	}
	stage := lanestest.Play(t, lanes.NewBatch([]lanes.Spec{spec("general")}, host), nil)
	stage.Send(lanes.Warm{})
	<-starting
	stage.Send(lanes.Begin{})
	stage.Send(lanes.Cancel{})
	r := theResult(t, stage)
	if r.Status != lanes.Cancelled || r.Error.Message == "" {
		t.Errorf("got %s %+v", r.Status, r.Error)
	}
	if n := host.Starts("general"); n != 1 {
		t.Errorf("%d starts, want only the one that was given up", n)
	}
}

func TestAnAnswerThatCameBeforeTheCancelCounts(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		_, _ = c.Task()
		c.Print(lanestest.Join(lanestest.Opening(), lanestest.Says("just in time"))...)
		c.Print("") // read, so everything before it is taken in or in the reader's hands
		c.Hold("exit")
		return lanestest.Code(143)
	})
	stage := begin(t, host, nil, spec("general"))
	host.Next(t, "general").At(t, "exit")
	stage.Send(lanes.Cancel{Reason: reason})
	if r := theResult(t, stage); r.Status != lanes.Complete || r.Output != "just in time" {
		t.Errorf("got %s %q", r.Status, r.Output)
	}
}

func TestACancelThatRacesWithTheEndLeavesOneReport(t *testing.T) {
	t.Parallel()
	seen := map[lanes.Status]int{}
	for range 300 {
		host := lanestest.NewHost(t, holding("done"))
		stage := lanestest.Open(lanes.NewBatch([]lanes.Spec{spec("general")}, host), nil)
		stage.Send(lanes.Begin{})
		child := host.Next(t, "general")
		child.At(t, "work")
		child.Release("work")
		stage.Send(lanes.Cancel{Reason: reason})
		r := theResult(t, stage)
		seen[r.Status]++
		if r.Status != lanes.Complete && r.Status != lanes.Cancelled {
			t.Errorf("got %s %+v", r.Status, r.Error)
		}
		stage.Close(t)
	}
	t.Logf("ends: %v", seen)
}

// A failure that would have been tried again is no reason to call a cancelled
// lane failed, whichever comes first.
func TestACancelThatRacesWithAFailureLeavesOneReport(t *testing.T) {
	t.Parallel()
	for range 300 {
		host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
			_, _ = c.Task()
			c.Hold("work")
			c.Print(lanestest.GivesUp("503 Service Unavailable")...)
			return lanestest.Code(0)
		})
		stage := lanestest.Open(lanes.NewBatch([]lanes.Spec{limited("general", lanes.Limits{RetryDelay: time.Hour, Lane: 100 * time.Hour})}, host), nil)
		stage.Send(lanes.Begin{})
		child := host.Next(t, "general")
		child.At(t, "work")
		child.Release("work")
		stage.Send(lanes.Cancel{Reason: reason})
		wantCancelled(t, theResult(t, stage), 1)
		stage.Close(t)
	}
}
