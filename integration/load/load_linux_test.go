package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

const lanesPerRun = 3

// call is one run of a client: a review by three reviewers.
type call struct {
	session supervisor.Session
	client  *api.Client
	result  supervisor.RoundResult
	err     error

	mu      sync.Mutex
	started time.Time
	working map[string]time.Duration // how long each lane waited until it had a place
	ended   map[string]int           // reports of its end
}

func (c *call) run(ctx context.Context) {
	c.result, c.err = c.client.Refine(ctx, supervisor.RefineRequest{
		Session: c.session, PlanPath: "plan.md", Reviewers: lanesPerRun, Model: supervisor.ModelAnswer{Answered: true},
	}, func(event any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch m := event.(type) {
		case supervisor.RoundStarted:
			c.started = time.Now()
		case lanes.Progress:
			if _, known := c.working[m.LaneID]; m.Status == lanes.Running && !known {
				c.working[m.LaneID] = time.Since(c.started)
			}
		case supervisor.LaneEnded:
			c.ended[m.Lane.LaneID]++
		}
	})
}

// check holds what the client was told against what is on record.
func (c *call) check(t *testing.T) {
	t.Helper()
	if c.err != nil {
		t.Errorf("session %s: %v", c.session.ID, c.err)
		return
	}
	if n := c.result.Complete(); n != lanesPerRun || len(c.result.Lanes) != lanesPerRun {
		t.Errorf("session %s: %d of %d lanes are complete", c.session.ID, n, len(c.result.Lanes))
	}
	for _, lane := range c.result.Lanes {
		if c.ended[lane.LaneID] != 1 || lane.Attempts != 1 {
			t.Errorf("session %s: lane %s was told to have ended %d times, after %d attempts", c.session.ID, lane.LaneID, c.ended[lane.LaneID], lane.Attempts)
		}
	}
	detail, err := c.client.Show(t.Context(), c.session, c.result.RunID)
	if err != nil || len(detail.Rounds) != 1 {
		t.Errorf("session %s: %d rounds on record, %v", c.session.ID, len(detail.Rounds), err)
		return
	}
	for _, lane := range detail.Rounds[0].Lanes {
		if lane.Status != store.LaneComplete {
			t.Errorf("session %s: lane %s is on record as %s", c.session.ID, lane.LaneID, lane.Status)
		}
	}
}

// figures are what a load came to.
type figures struct {
	lanes, places int
	took          time.Duration   // from the first call to the last result
	hooks         []time.Duration // round trips, sorted
	plain         []time.Duration // of a question that needs no work, asked between them
	waits         []time.Duration // of each run, the mean of its lanes
	held, after   int64           // memory of the daemon above what it had at rest
}

func (f figures) String() string {
	at := func(all []time.Duration, share float64) time.Duration {
		return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
	}
	var sum, squares float64
	for _, wait := range f.waits {
		sum += wait.Seconds()
		squares += wait.Seconds() * wait.Seconds()
	}
	return fmt.Sprintf("%d lanes in %d places: %.1f s; fairness %.3f (1 is even), waits of runs p5 %v p50 %v p95 %v; "+
		"%d hooks, round trip p50 %v p99 %v, %.1f and %.1f times that of a question without work; "+
		"daemon %d KiB a lane that has not ended, %d KiB more at rest than before",
		f.lanes, f.places, f.took.Seconds(), sum*sum/squares/float64(len(f.waits)), at(f.waits, 0.05), at(f.waits, 0.5), at(f.waits, 0.95),
		len(f.hooks), at(f.hooks, 0.5), at(f.hooks, 0.99), over(f.hooks, f.plain, 0.5), over(f.hooks, f.plain, 0.99),
		f.held/int64(f.lanes)>>10, f.after>>10)
}

// over is a quantile of some times over that of others.
func over(some, others []time.Duration, share float64) float64 {
	return some[int(share*float64(len(some)-1))].Seconds() / others[int(share*float64(len(others)-1))].Seconds()
}

// TestALoadOfRunsLosesNothing has every lane at work at once, then the same with places
// for a tenth of them. What it measures it only prints: see the package.
func TestALoadOfRunsLosesNothing(t *testing.T) {
	for name, places := range map[string]int{"all at once": *runs * lanesPerRun, "in turn": max(1, *runs*lanesPerRun/10)} {
		t.Run(name, func(t *testing.T) { t.Log(load(t, places)) })
	}
}

func load(t *testing.T, places int) figures {
	g := newGround(t, places)
	g.release(lanesPerRun)
	warmUp := &call{session: g.session("warm-up"), client: g.client(), working: map[string]time.Duration{}, ended: map[string]int{}}
	warmUp.run(t.Context())
	warmUp.check(t)
	all := make([]*call, *runs)
	connections := make([]*api.Client, *clients)
	for n := range connections {
		connections[n] = g.client()
	}
	for n := range all {
		all[n] = &call{
			session: g.session(fmt.Sprintf("w%03d", n)), client: connections[n%len(connections)],
			working: map[string]time.Duration{}, ended: map[string]int{},
		}
	}
	f := figures{lanes: *runs * lanesPerRun, places: places}
	rest := g.memory()
	began := time.Now()
	var working sync.WaitGroup
	for _, c := range all {
		working.Go(func() { c.run(t.Context()) })
	}
	hooks := g.hook(connections, warmUp.session.Workdir)
	g.await("the lanes to be at work or queued", func() bool {
		listed, err := connections[0].Lanes(t.Context())
		responding, queued := 0, 0
		for _, lane := range listed {
			switch lane.Phase {
			case "responding":
				responding++
			case lanes.PhaseQueued:
				queued++
			}
		}
		return err == nil && responding == min(places, f.lanes) && responding+queued == f.lanes
	})
	f.held = g.memory() - rest
	g.release(f.lanes)
	working.Wait()
	f.took = time.Since(began)
	f.hooks, f.plain = hooks()
	f.after = g.memory() - rest
	for _, c := range all {
		c.check(t)
		var sum time.Duration
		for _, wait := range c.working {
			sum += wait
		}
		f.waits = append(f.waits, sum/lanesPerRun)
	}
	slices.Sort(f.waits)
	if children, most := g.children(); children != f.lanes+lanesPerRun || most > places {
		t.Errorf("%d children for %d lanes, %d of them at once in %d places", children, f.lanes+lanesPerRun, most, places)
	}
	if calls, err := connections[0].Calls(t.Context()); err != nil || len(calls) != 0 {
		t.Errorf("calls that nobody has taken: %v, %v", calls, err)
	}
	return f
}

// hook has every client ask before one tool call after the other, as a session at work
// does, and after each the daemon how it is, until the returned function is called. It
// returns the round trips of both in order.
func (g *ground) hook(connections []*api.Client, workdir string) (stop func() (hooks, plain []time.Duration)) {
	ctx, cancel := context.WithCancel(g.t.Context())
	var (
		asking sync.WaitGroup
		mu     sync.Mutex
		hooks  []time.Duration
		plain  []time.Duration
	)
	session := supervisor.Session{Workdir: workdir}
	event := json.RawMessage(`{"toolName":"bash","toolCallId":"1","input":{"command":"git status"}}`)
	for n, client := range connections {
		session := session
		session.ID = fmt.Sprintf("hooks-%d", n)
		asking.Go(func() {
			pause := time.NewTicker(20 * time.Millisecond) // a session has other things to do too
			defer pause.Stop()
			for {
				began := time.Now()
				_, err := client.Hook(g.t.Context(), session, "tool_call", event)
				hooked := time.Since(began)
				if err == nil {
					_, err = client.Health(g.t.Context())
				}
				asked := time.Since(began) - hooked
				if err != nil {
					g.t.Errorf("session %s: the daemon did not answer: %v", session.ID, err)
					return
				}
				mu.Lock()
				hooks, plain = append(hooks, hooked), append(plain, asked)
				mu.Unlock()
				select {
				case <-pause.C:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return func() (_, _ []time.Duration) {
		cancel()
		asking.Wait()
		slices.Sort(hooks)
		slices.Sort(plain)
		return hooks, plain
	}
}
