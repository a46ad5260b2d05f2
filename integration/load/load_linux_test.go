package load_test

import (
	"context"
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

func newCall(session supervisor.Session, client *api.Client) *call {
	return &call{session: session, client: client, working: map[string]time.Duration{}, ended: map[string]int{}}
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

// check holds what the client was told against what is on record after so many rounds.
func (c *call) check(t *testing.T, rounds int) {
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
	if err != nil || len(detail.Rounds) != rounds {
		t.Errorf("session %s: %d rounds on record, %v", c.session.ID, len(detail.Rounds), err)
		return
	}
	for _, round := range detail.Rounds {
		for _, lane := range round.Lanes {
			if lane.Status != store.LaneComplete {
				t.Errorf("session %s: lane %s is on record as %s", c.session.ID, lane.LaneID, lane.Status)
			}
		}
	}
}

// wave is what one round of every run came to.
type wave struct {
	took                     time.Duration   // from the first call to the last result
	starting, beside, ending roundTrips      // of hooks while the lanes start, while all stream, and while they end
	queued                   bool            // there were fewer places than lanes
	waits                    []time.Duration // of each run, the mean of its lanes until they had a place
	held, after              int64           // memory of the daemon with all lanes at work, and when it rests
}

func (w wave) String() string {
	return fmt.Sprintf("%.1f s; %s\nhooks while lanes start: %v\nhooks beside lanes that stream: %v\nhooks while lanes end: %v\nmemory %d MiB with all lanes there, %d MiB at rest",
		w.took.Seconds(), w.queue(), w.starting, w.beside, w.ending, w.held>>20, w.after>>20)
}

// queue is how evenly the runs waited (Jain's index).
func (w wave) queue() string {
	if !w.queued {
		return "nobody waited for a place"
	}
	var sum, squares float64
	for _, wait := range w.waits {
		sum += wait.Seconds()
		squares += wait.Seconds() * wait.Seconds()
	}
	return fmt.Sprintf("runs waited for places p5 %v p50 %v p95 %v, fairness %.3f (1 is even)",
		quantile(w.waits, 0.05), quantile(w.waits, 0.5), quantile(w.waits, 0.95), sum*sum/squares/float64(len(w.waits)))
}

// TestALoadOfRunsLosesNothing has every lane at work at once, then the same with places
// for a tenth of them. What it measures it only prints: see the package.
func TestALoadOfRunsLosesNothing(t *testing.T) {
	for name, places := range map[string]int{"all at once": *runs * lanesPerRun, "in turn": max(1, *runs*lanesPerRun/10)} {
		t.Run(name, func(t *testing.T) { load(t, places) })
	}
}

func load(t *testing.T, places int) {
	g := newGround(t, places)
	connections := make([]*api.Client, *clients)
	for n := range connections {
		connections[n] = g.client()
	}
	workspaces := make([]supervisor.Session, *runs)
	for n := range workspaces {
		workspaces[n] = g.session(fmt.Sprintf("w%03d", n))
	}
	t.Logf("%d lanes in %d places; the daemon begins with %d MiB", *runs*lanesPerRun, places, g.memory()>>20)
	asking := g.begin(*clients, workspaces[0].Workdir)
	defer asking.end()
	asking.awaitEach(1) // all of them are there
	asking.taken()
	asking.awaitEach(*hooks)
	t.Logf("hooks of %d sessions alone: %v", *clients, asking.taken())
	for n := range *waves {
		t.Logf("wave %d: %v", n+1, g.wave(connections, workspaces, asking, places, n+1))
	}
	all := *waves * *runs * lanesPerRun
	if children, most := g.children(); children != all || most > places {
		t.Errorf("%d children for %d lanes, %d of them at once in %d places", children, all, most, places)
	}
	if calls, err := connections[0].Calls(t.Context()); err != nil || len(calls) != 0 {
		t.Errorf("calls that nobody has taken: %v, %v", calls, err)
	}
}

// wave has every run do its n-th round.
func (g *ground) wave(connections []*api.Client, workspaces []supervisor.Session, asking *sessions, places, n int) wave {
	all := make([]*call, len(workspaces))
	for i, session := range workspaces {
		all[i] = newCall(session, connections[i%len(connections)])
	}
	asking.taken()
	began := time.Now()
	var working sync.WaitGroup
	for _, c := range all {
		working.Go(func() { c.run(g.t.Context()) })
	}
	g.await("the lanes to be at work or queued", func() bool {
		listed, err := connections[0].Lanes(g.t.Context())
		responding, queued := 0, 0
		for _, lane := range listed {
			switch lane.Phase {
			case "responding":
				responding++
			case lanes.PhaseQueued:
				queued++
			}
		}
		return err == nil && responding == min(places, len(all)*lanesPerRun) && responding+queued == len(all)*lanesPerRun
	})
	w := wave{starting: asking.taken(), queued: places < len(all)*lanesPerRun}
	asking.awaitEach(*hooks)
	w.beside, w.held = asking.taken(), g.memory()
	g.release(len(all) * lanesPerRun)
	working.Wait()
	w.took, w.ending, w.after = time.Since(began), asking.taken(), g.memory()
	for _, c := range all {
		c.check(g.t, n)
		var sum time.Duration
		for _, wait := range c.working {
			sum += wait
		}
		w.waits = append(w.waits, sum/lanesPerRun)
	}
	slices.Sort(w.waits)
	return w
}
