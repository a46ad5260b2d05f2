package lanes_test

import (
	"context"
	"errors"
	"testing"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/proc"
)

// warm starts a batch of one lane whose child is started ahead of its task.
func warm(t *testing.T, host *lanestest.Host, fault lanestest.Fault) *lanestest.Stage {
	t.Helper()
	host.Spares = 1
	stage := lanestest.Play(t, lanes.NewBatch([]lanes.Spec{spec("general")}, host), fault)
	stage.Send(lanes.Warm{})
	return stage
}

func TestAWarmChildGetsTheTask(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, answering("done"))
	stage := warm(t, host, nil)
	host.Next(t, "general")
	stage.Send(lanes.Warm{}) // a second time changes nothing
	stage.Send(lanes.Begin{})
	r := theResult(t, stage)
	if r.Status != lanes.Complete || r.Attempts != 1 || host.Starts("general") != 1 {
		t.Errorf("%s after %d attempts and %d starts, want one child", r.Status, r.Attempts, host.Starts("general"))
	}
}

func TestALaneThatBeginsDuringTheWarmStartUsesThatChild(t *testing.T) {
	t.Parallel()
	starting, goOn := make(chan struct{}), make(chan struct{})
	host := lanestest.NewHost(t, answering("done"))
	host.Before = func(context.Context, lanes.Spec, int) error {
		close(starting)
		<-goOn
		return nil
	}
	stage := warm(t, host, nil)
	<-starting
	stage.Send(lanes.Begin{})
	close(goOn)
	if r := theResult(t, stage); r.Status != lanes.Complete || host.Starts("general") != 1 {
		t.Errorf("%s after %d starts, want one child", r.Status, host.Starts("general"))
	}
}

func TestAFailedWarmStartCostsNothing(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"with an error": func() error { return errors.New("not now") },
		"with a panic":  func() error { panic("not now") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, answering("done"))
			host.Before = func(_ context.Context, _ lanes.Spec, number int) error {
				if number == 1 {
					return fail()
				}
				return nil
			}
			stage := warm(t, host, nil)
			stage.Send(lanes.Begin{})
			if r := theResult(t, stage); r.Status != lanes.Complete || r.Attempts != 1 || host.Starts("general") != 2 {
				t.Errorf("%s after %d attempts and %d starts, want the second start to be the first attempt", r.Status, r.Attempts, host.Starts("general"))
			}
		})
	}
}

// dying ends before it has a task.
func dying(*lanestest.Child) proc.Exit { return lanestest.Killed("SIGKILL", 9) }

func TestAChildThatDiesWhileItIsWarmIsReplaced(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, inTurn(dying, answering("done")))
	stage := warm(t, host, nil)
	dead := host.Next(t, "general")
	<-dead.Done()
	stage.Send(lanes.Begin{})
	if r := theResult(t, stage); r.Status != lanes.Complete || r.Attempts != 1 || host.Starts("general") != 2 {
		t.Errorf("%s after %d attempts and %d starts, want a dead spare to cost nothing", r.Status, r.Attempts, host.Starts("general"))
	}
	if !dead.Drained() || !dead.Waited() {
		t.Errorf("the dead spare: its stdout is read to the end %v, it is waited for %v", dead.Drained(), dead.Waited())
	}
}

func TestAChildWhoseWarmStartIsStillGoingOnIsEndedWithItsLane(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(*testing.T, *lanestest.Stage){
		"when the batch is stopped":      func(_ *testing.T, s *lanestest.Stage) { s.Stop() },
		"when the actor is started anew": func(t *testing.T, s *lanestest.Stage) { s.SendTo(t, "lane-general", poke{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starting := make(chan struct{})
			host := lanestest.NewHost(t, answering("done"))
			host.Before = func(ctx context.Context, _ lanes.Spec, number int) error {
				if number == 1 {
					close(starting)
					<-ctx.Done() // and the child comes all the same
				}
				return nil
			}
			stage := warm(t, host, onPoke)
			<-starting
			give(t, stage)
			first := host.Next(t, "general")
			first.Terminated(t)
			stage.Send(lanes.Begin{}) // the restarted lane goes on
			stage.AwaitEnd(t)
		})
	}
}
