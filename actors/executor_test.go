package actors_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

func executor(t *testing.T, host *lanestest.Host, fault lanestest.Fault) *lanestest.Stage {
	t.Helper()
	spec := actors.ExecutorSpec("run-1", "/", "sim/plain", "You carry a plan out.", "", lanes.Limits{})
	stage := lanestest.Play(t, actors.NewExecutor(spec, host), fault)
	stage.Send(lanes.Begin{})
	return stage
}

// theEnd waits for the end of an executor, which is told exactly once.
func theEnd(t *testing.T, stage *lanestest.Stage) actors.ExecutorEnded {
	t.Helper()
	stage.AwaitEnd(t)
	ends := lanestest.All[actors.ExecutorEnded](stage)
	if len(ends) != 1 {
		t.Fatalf("%d ends, want 1: %+v", len(ends), ends)
	}
	return ends[0]
}

// awaitRest waits until the executor has told of n rests.
func awaitRest(t *testing.T, stage *lanestest.Stage, n int) {
	t.Helper()
	seen := 0
	lanestest.Await(t, stage, func(message any) bool {
		switch message.(type) {
		case actors.ExecutorReady: // the first of all, so they are looked at anew
			seen = 0
		case actors.ExecutorRested:
			seen++
		}
		return seen == n
	})
}

func TestAnExecutorPassesWhatIsSaidAndHeardOn(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, lanestest.Conversing(func(prompt string) []string { return lanestest.Answer("about " + prompt) }))
	stage := executor(t, host, nil)
	lanestest.Await[actors.ExecutorReady](t, stage, nil)
	stage.Send(lanes.Begin{}) // a second one starts nothing
	for i, prompt := range []string{"one", "two"} {
		stage.Send(actors.Say{Text: prompt})
		awaitRest(t, stage, i+1)
	}
	stage.Send(actors.Finish{})
	end := theEnd(t, stage)
	if end.Error != nil || end.Turns != 2 {
		t.Errorf("ended with %+v", end)
	}
	var texts []string
	for _, turn := range lanestest.All[actors.ExecutorTurn](stage) {
		texts = append(texts, turn.Text)
	}
	if diff := cmp.Diff([]string{"about one", "about two"}, texts); diff != "" {
		t.Error(diff)
	}
	if host.Starts("executor") != 1 {
		t.Errorf("%d children, want 1", host.Starts("executor"))
	}
	spec := host.Children()[0].Spec
	if spec.Role != "executor" || !strings.Contains(strings.Join(spec.Tools, ","), "bash,edit,write") || spec.Model != "sim/plain" {
		t.Errorf("the child is %+v", spec)
	}
}

func TestAnExecutorEndsItsChildBeforeItReports(t *testing.T) {
	t.Parallel()
	held := func(c *lanestest.Child) proc.Exit {
		if command, ok := c.Command(); ok {
			c.Accept(command)
			c.Print(lanestest.Opening()...)
		}
		c.AwaitEnd()
		return lanestest.Code(143)
	}
	refuses := func(c *lanestest.Child) proc.Exit {
		command, ok := c.Command()
		if ok {
			c.Refuse(command, "no model")
		}
		c.AwaitEnd()
		return lanestest.Code(143)
	}
	for name, test := range map[string]struct {
		script lanestest.Script
		before error
		do     func(*lanestest.Stage)
		class  pijson.Class
		words  string
	}{
		"cancelled":         {held, nil, func(s *lanestest.Stage) { s.Send(lanes.Cancel{Reason: "the user left"}) }, pijson.ClassCancelled, "the user left"},
		"refused a message": {refuses, nil, func(s *lanestest.Stage) { s.Send(actors.Say{Text: "x"}) }, pijson.ClassProtocol, "no model"},
		"not started":       {nil, errors.New("no pi here"), func(*lanestest.Stage) {}, pijson.ClassStartFailure, "no pi here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, test.script)
			if test.before != nil {
				host.Before = func(context.Context, lanes.Spec, int) error { return test.before }
			}
			stage := executor(t, host, nil)
			if test.before == nil {
				lanestest.Await[actors.ExecutorReady](t, stage, nil)
			}
			test.do(stage)
			end := theEnd(t, stage)
			if end.Error == nil || end.Error.Class != test.class || !strings.Contains(end.Error.Message, test.words) {
				t.Errorf("ended with %+v", end.Error)
			}
			if host.Alive() != 0 {
				t.Error("the child was not gone")
			}
		})
	}
}

func TestAnExecutorThatIsCancelledWhileItWaitsForAPlaceStartsNothing(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, nil)
	host.Full = true
	stage := executor(t, host, nil)
	stage.Send(lanes.Cancel{Reason: "the user left"})
	if end := theEnd(t, stage); end.Error == nil || end.Error.Class != pijson.ClassCancelled || !strings.Contains(end.Error.Message, "the user left") {
		t.Errorf("ended with %+v", end)
	}
	if host.Starts("executor") != 0 {
		t.Error("a child was started")
	}
}

// A panic, wherever it comes, leaves no child behind; the parent sees the executor gone.
func TestAnExecutorThatPanicsTakesItsChildAlong(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit { c.AwaitEnd(); return lanestest.Code(143) })
	stage := executor(t, host, func(name string, message any) any {
		if _, say := message.(actors.Say); say && name == "subject" {
			return "injected"
		}
		return nil
	})
	lanestest.Await[actors.ExecutorReady](t, stage, nil)
	stage.Send(actors.Say{Text: "x"})
	stage.AwaitEnd(t)
	if host.Alive() != 0 {
		t.Error("the child was left running")
	}
}
