package soak_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/supervisor"
)

// limits are short where a child that misbehaves would hold up the test, and long
// where a machine that is short of time would make one misbehave.
var limits = lanes.Limits{
	Lane: 5 * time.Minute, FirstEvent: time.Minute, Silence: 3 * time.Second, Drain: time.Second, RetryDelay: 50 * time.Millisecond,
}

// What a workspace may ask for, and how often.
const (
	adHoc      = 0.3  // references without a run, else a review
	second     = 0.4  // a second round beside the review, in the same run
	cancelled  = 0.25 // a call is cancelled
	lastCancel = 25   // at the latest at this event
	strikes    = 60   // one of so many events has a child killed
)

func TestEveryLaneOfManyRunsEndsOnceWhateverItsChildrenDo(t *testing.T) {
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			g := newGround(t, seed)
			var all tally
			users := make([]*workspace, *workspaces)
			for n := range users {
				users[n] = &workspace{g: g, n: n, dir: g.workspace(n), random: rand.New(rand.NewPCG(uint64(seed), uint64(n+1))), all: &all}
			}
			began := time.Now()
			var work sync.WaitGroup
			for _, w := range users {
				work.Go(w.work)
			}
			work.Wait()
			all.report(t, time.Since(began), g.killer)
		})
	}
}

// workspace is one user at work: a round or two at a time, cancelled ones resumed.
type workspace struct {
	g      *ground
	n      int
	dir    string
	random *rand.Rand
	calls  int
	all    *tally
}

func (w *workspace) work() {
	var beside sync.WaitGroup
	defer beside.Wait()
	if w.random.Float64() < adHoc {
		c := w.newCall()
		w.finish(c, c.run(w.references(c)))
		return
	}
	c, req := w.newCall(), w.review()
	var besides *call
	var also ask
	if w.random.Float64() < second {
		besides = w.newCall()
		also = w.references(besides)
	}
	beside.Go(func() {
		if besides == nil {
			return
		}
		<-c.started // the run exists, or never will
		w.finish(besides, besides.run(also))
	})
	ok := c.run(w.refine(c, req))
	w.finish(c, ok)
	beside.Wait()
	if !ok || !slices.ContainsFunc(c.result.Lanes, func(l supervisor.LaneResult) bool { return l.Status == lanes.Cancelled }) {
		return
	}
	w.resume(c, req)
}

// resume makes a cancelled round run again, to its end this time.
func (w *workspace) resume(before *call, req supervisor.RefineRequest) {
	c := w.newCall()
	c.cancelAt = -1
	req.RunID, req.ResumeRoundID = before.round.RunID, before.round.RoundID
	ok := c.run(w.refine(c, req))
	w.finish(c, ok)
	if !ok {
		return
	}
	for i, lane := range c.result.Lanes {
		was := before.result.Lanes[i]
		if lane.Reused != (was.Status == lanes.Complete) || lane.Reused && lane.Output != was.Output {
			c.errorf("lane %s was %s and is reused %v", lane.LaneID, was.Status, lane.Reused)
		}
	}
}

func (w *workspace) newCall() *call {
	w.calls++
	name := fmt.Sprintf("seed %d, workspace %d, call %d", w.g.seed, w.n, w.calls)
	c := &call{
		t: w.g.t, name: name, journal: filepath.Join(w.g.dir, "journal", fmt.Sprintf("%d.%d", w.n, w.calls)),
		killer: w.g.killer, random: rand.New(rand.NewPCG(w.random.Uint64(), 0)), cancelAt: -1, strikes: strikes, started: make(chan struct{}),
	}
	if w.random.Float64() < cancelled {
		c.cancelAt = w.random.IntN(lastCancel)
	}
	return c
}

func (w *workspace) session(c *call) supervisor.Session {
	return w.g.session(w.dir, "random:"+strings.NewReplacer(" ", "", ",", ".").Replace(c.name), c.journal)
}

// review draws a round of one to three reviewers or of a criticizer.
func (w *workspace) review() supervisor.RefineRequest {
	req := supervisor.RefineRequest{PlanPath: "PLAN.md", Role: actors.Reviewer, Model: supervisor.ModelAnswer{Answered: true}, Limits: limits}
	if w.random.IntN(4) == 0 {
		req.Role = actors.Criticizer
	} else {
		req.Reviewers = 1 + w.random.IntN(3)
	}
	return req
}

func (w *workspace) refine(c *call, req supervisor.RefineRequest) ask {
	req.Session = w.session(c)
	return func(ctx context.Context, watch supervisor.Watch) (supervisor.RoundResult, error) {
		return w.g.system.Refine(ctx, req, watch)
	}
}

// references draws a round of four to nine references, one in twenty of which is
// missing.
func (w *workspace) references(c *call) ask {
	req := supervisor.AnalyzeRequest{Session: w.session(c), Model: supervisor.ModelAnswer{Answered: true}, Limits: limits}
	for i := range 4 + w.random.IntN(6) {
		ref := actors.Reference{ID: fmt.Sprintf("r%d", i+1), LocalPath: "."}
		if w.random.IntN(20) == 0 {
			ref.LocalPath = "missing"
		}
		req.Refs = append(req.Refs, ref)
	}
	return func(ctx context.Context, watch supervisor.Watch) (supervisor.RoundResult, error) {
		return w.g.system.AnalyzeRefs(ctx, req, watch)
	}
}

func (w *workspace) finish(c *call, ok bool) {
	if ok {
		c.check(w.g.root(w.dir))
		w.all.add(c.result)
	}
}

// tally counts how lanes ended.
type tally struct {
	mu       sync.Mutex
	statuses map[lanes.Status]int
	classes  map[pijson.Class]int
	attempts int
}

func (a *tally) add(result supervisor.RoundResult) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.statuses == nil {
		a.statuses, a.classes = map[lanes.Status]int{}, map[pijson.Class]int{}
	}
	for _, lane := range result.Lanes {
		a.statuses[lane.Status]++
		if lane.Error != nil {
			a.classes[lane.Error.Class]++
		}
		if !lane.Reused {
			a.attempts += lane.Attempts
		}
	}
}

// report tells what was played. A soak that has not seen every end of a lane proves
// little.
func (a *tally) report(t *testing.T, took time.Duration, k *killer) {
	total := 0
	for _, n := range a.statuses {
		total += n
	}
	t.Logf("%d lanes in %.1f s, %.1f lanes/s, %d attempts, %d of up to %d children at once killed from outside; peak RSS %d MiB",
		total, took.Seconds(), float64(total)/took.Seconds(), a.attempts, k.kills.Load(), k.most.Load(), memory(t, "VmHWM")>>20)
	t.Logf("ends: %v; failures: %v", a.statuses, a.classes)
	for _, status := range []lanes.Status{lanes.Complete, lanes.Failed} {
		if a.statuses[status] == 0 {
			t.Errorf("no lane was %s", status)
		}
	}
	if slices.Contains(slices.Collect(maps.Keys(a.classes)), pijson.ClassInternal) {
		t.Error("a lane failed for a reason inside pilothouse")
	}
}
