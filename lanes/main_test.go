package lanes_test

import (
	"testing"

	"go.uber.org/goleak"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

func TestMain(m *testing.M) {
	proc.GuardMain() // this program is its own guard process
	goleak.VerifyTestMain(m)
}

// spec is a lane that tries again at once and has all the time it wants.
func spec(id string) lanes.Spec {
	return lanes.Spec{
		ID: id, Name: "team-" + id, Dir: "/", Tools: []string{"read", "grep", "find", "ls"}, SystemPrompt: "You review.", Task: "Task: " + id,
		Limits: lanes.Limits{RetryDelay: 1},
	}
}

// limited is a spec with other limits; zero fields of them take the defaults.
func limited(id string, limits lanes.Limits) lanes.Spec {
	s := spec(id)
	if limits.RetryDelay == 0 {
		limits.RetryDelay = s.Limits.RetryDelay
	}
	s.Limits = limits
	return s
}

// begin starts a batch and lets it work.
func begin(t *testing.T, host lanes.Host, fault lanestest.Fault, specs ...lanes.Spec) *lanestest.Stage {
	t.Helper()
	stage := lanestest.Play(t, lanes.NewBatch(specs, host), fault)
	stage.Send(lanes.Begin{})
	return stage
}

// theResult waits for the end of a batch of one lane, which reports exactly once.
func theResult(t *testing.T, stage *lanestest.Stage) lanes.Result {
	t.Helper()
	stage.AwaitEnd(t)
	all := lanestest.All[lanes.Finished](stage)
	if len(all) != 1 {
		t.Fatalf("the lane reported %d times, want once: %+v", len(all), all)
	}
	return all[0].Result
}

// answering is a child that waits for its task, answers and exits.
func answering(text string) lanestest.Script {
	return func(c *lanestest.Child) proc.Exit {
		if _, ok := c.Task(); !ok {
			return lanestest.Code(143)
		}
		c.Print(lanestest.Answer(text)...)
		return lanestest.Code(0)
	}
}

// inTurn plays one script after the other, one for each child of a lane.
func inTurn(scripts ...lanestest.Script) lanestest.Script {
	return func(c *lanestest.Child) proc.Exit { return scripts[c.Number-1](c) }
}

// printing prints lines once the task is there and exits.
func printing(exit proc.Exit, parts ...[]string) lanestest.Script {
	return func(c *lanestest.Child) proc.Exit {
		if _, ok := c.Task(); !ok {
			return lanestest.Code(143)
		}
		c.Print(lanestest.Join(parts...)...)
		return exit
	}
}

// staying prints lines once the task is there and exits only when it has to.
func staying(parts ...[]string) lanestest.Script {
	return func(c *lanestest.Child) proc.Exit {
		if _, ok := c.Task(); !ok {
			return lanestest.Code(143)
		}
		c.Print(lanestest.Join(parts...)...)
		c.AwaitEnd()
		return lanestest.Code(143)
	}
}

// holding stops at "work" in the middle of its work, then answers.
func holding(text string) lanestest.Script {
	return func(c *lanestest.Child) proc.Exit {
		if _, ok := c.Task(); !ok {
			return lanestest.Code(143)
		}
		c.Print(lanestest.Join(lanestest.Opening(), lanestest.Uses("read"))...)
		if !c.Hold("work") {
			return lanestest.Code(143)
		}
		c.Print(lanestest.Join(lanestest.Says(text), lanestest.Closing())...)
		return lanestest.Code(0)
	}
}

// times is the usage of n messages.
func times(n int) (sum pijson.Usage) {
	for range n {
		sum = sum.Plus(lanestest.Cost)
	}
	return sum
}
