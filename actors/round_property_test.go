package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/proc"
)

// behaviours are what a child can do. All of them end when they have to.
var behaviours = map[string]lanestest.Script{
	"answers":    func(c *lanestest.Child) proc.Exit { return say(c, lanestest.Code(0), lanestest.Answer("ok")) },
	"lingers":    func(c *lanestest.Child) proc.Exit { return linger(c, lanestest.Answer("ok")) },
	"gives up":   func(c *lanestest.Child) proc.Exit { return say(c, lanestest.Code(0), lanestest.GivesUp("503 no")) },
	"is refused": func(c *lanestest.Child) proc.Exit { return say(c, lanestest.Code(0), lanestest.Fails("401: no")) },
	"is killed":  func(c *lanestest.Child) proc.Exit { return say(c, lanestest.Killed("SIGKILL", 9), lanestest.Opening()) },
	"hangs":      func(c *lanestest.Child) proc.Exit { return linger(c, nil) },
	"goes quiet": func(c *lanestest.Child) proc.Exit { return linger(c, lanestest.Opening()) },
	"closes": func(c *lanestest.Child) proc.Exit {
		c.CloseStdout()
		c.AwaitEnd()
		return lanestest.Code(143)
	},
	"exits at once": func(*lanestest.Child) proc.Exit { return lanestest.Code(1) },
	"panics":        func(c *lanestest.Child) proc.Exit { return say(c, lanestest.Code(0), lanestest.Answer("ok")) }, // see Prepare
}

func say(c *lanestest.Child, exit proc.Exit, lines []string) proc.Exit {
	if _, ok := c.Task(); ok {
		c.Print(lines...)
	}
	return exit
}

func linger(c *lanestest.Child, lines []string) proc.Exit {
	exit := say(c, lanestest.Code(143), lines)
	c.AwaitEnd()
	return exit
}

// brief are limits that pass at any moment: which one comes first is left to chance.
var brief = lanes.Limits{
	RetryDelay: time.Millisecond, FirstEvent: 20 * time.Millisecond, Silence: 20 * time.Millisecond, Drain: 10 * time.Millisecond,
	Lane: 200 * time.Millisecond, Attempts: 3,
}

// whims decides, from one seed, which of an actor's messages make it panic.
type whims struct {
	mu   sync.Mutex
	rand *rand.Rand
	odds int // one in so many; 0 is never
	left int // panics in all: an actor that always panics never stops
}

func (w *whims) fault(name string, message any) any {
	if name == "subject" { // the role actor, whose failure is its parent's business
		return nil
	}
	if _, over := message.(*actor.Stopped); over { // none of ours does anything then
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.odds == 0 || w.left == 0 || w.rand.IntN(w.odds) != 0 {
		return nil
	}
	w.left--
	return fmt.Sprintf("a whim at %T", message)
}

func TestEveryLaneIsJudgedOnceWhateverHappens(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	names := make([]string, 0, len(behaviours))
	for name := range behaviours {
		names = append(names, name)
	}
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 10).Draw(rt, "lanes")
		var all []actors.Lane
		script := map[string][]string{}
		batch := 1
		for i := range n {
			if i > 0 && (rapid.Bool().Draw(rt, "new batch") || len(all) >= 3 && all[len(all)-3].Batch == batch) {
				batch++
			}
			id := fmt.Sprintf("ref-%d", i+1)
			lane := actors.Lane{Batch: batch, Spec: lanes.Spec{ID: id, Name: id, Tools: []string{"read"}, Limits: brief}}
			if rapid.IntRange(0, 9).Draw(rt, "refused") == 0 {
				lane.Refused = "no such directory"
			}
			all = append(all, lane)
			script[id] = rapid.SliceOfN(rapid.SampledFrom(names), 8, 8).Draw(rt, id)
		}
		w := &whims{
			rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)),
			odds: rapid.SampledFrom([]int{0, 0, 40, 8, 3}).Draw(rt, "odds of a panic"), left: 30,
		}
		do := func(c *lanestest.Child) string { return script[c.Spec.ID][(c.Number-1)%8] }
		host := lanestest.NewUncheckedHost(func(c *lanestest.Child) proc.Exit { return behaviours[do(c)](c) })
		host.Spares = rapid.IntRange(0, lanes.BatchSize).Draw(rt, "spares")
		host.Before = func(_ context.Context, spec lanes.Spec, number int) error {
			if number > 1 && script[spec.ID][(number-2)%8] == "exits at once" {
				panic("the host panics")
			}
			return nil
		}
		host.Prepare = func(c *lanestest.Child) {
			if do(c) == "panics" {
				c.PanicIn = []string{"Feed", "Stdout", "Read", "Wait"}[c.Number%4]
			}
		}
		stage := lanestest.Open(actors.NewRound("r1", actors.Reviewer, all, host), w.fault)
		orders := rapid.SliceOfN(rapid.SampledFrom([]string{"begin", "begin", "begin", "cancel", "cancel a lane", "await a lane"}), 0, 6).Draw(rt, "orders")
		for _, order := range append(orders, "begin") {
			switch order {
			case "begin":
				stage.Send(lanes.Begin{})
			case "cancel":
				stage.Send(lanes.Cancel{Reason: "enough"})
			case "cancel a lane":
				stage.Send(lanes.CancelLane{LaneID: fmt.Sprintf("ref-%d", rapid.IntRange(1, n+1).Draw(rt, "lane")), Reason: "enough"})
			case "await a lane":
				stage.Send(lanes.Begin{})
				if n > 0 {
					lanestest.Await[actors.LaneJudged](t, stage, nil)
				}
			}
		}
		stage.AwaitEnd(t)
		if _, err := endsOf(stage, all); err != nil {
			rt.Error(err)
		}
		stage.Close(t)
		if complaints := host.Complaints(); len(complaints) > 0 {
			rt.Error(complaints)
		}
		if host.Peak() > lanes.BatchSize {
			rt.Errorf("%d children at once", host.Peak())
		}
	})
	if err := goleak.Find(ignore); err != nil {
		t.Error(err)
	}
}
