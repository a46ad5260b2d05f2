package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/supervisor"
)

// crowd is a system with few places, whose children note their work in one journal and
// wait for one gate.
type crowd struct {
	*bundle
	registry      *prometheus.Registry
	journal, gate string
	calls         sync.WaitGroup
}

func newCrowd(t *testing.T, children, spares int) *crowd {
	t.Helper()
	c := &crowd{registry: prometheus.NewRegistry(), journal: filepath.Join(t.TempDir(), "journal"), gate: filepath.Join(t.TempDir(), "gate")}
	c.bundle = setupWith(t, supervisor.Options{MaxChildren: children, Spares: spares, Metrics: c.registry})
	t.Cleanup(func() {
		c.open() // a test that failed has not
		c.calls.Wait()
	})
	return c
}

func (c *crowd) open() {
	c.t.Helper()
	if err := os.WriteFile(c.gate, nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// newcomer is a session in a workspace of its own.
func (c *crowd) newcomer(id string) supervisor.Session {
	c.t.Helper()
	session := newSession(c.t)
	session.ID = id
	session.Environ = append(session.Environ, "PILOTHOUSE_STUB_JOURNAL="+c.journal, "PILOTHOUSE_STUB_GATE="+c.gate)
	return session
}

// round is a round at work.
type round struct {
	started chan supervisor.RoundStarted
	result  chan supervisor.RoundResult
	mu      sync.Mutex
	lanes   map[string]lanes.Progress
}

// analyze asks for an analysis of so many references, the directories "ref-1" and so on.
func (c *crowd) analyze(ctx context.Context, session supervisor.Session, refs int) *round {
	c.t.Helper()
	req := supervisor.AnalyzeRequest{Session: session, Model: supervisor.ModelAnswer{Answered: true}}
	for n := range refs {
		id := fmt.Sprintf("%s-%d", session.ID, n+1)
		if err := os.MkdirAll(filepath.Join(session.Workdir, id), 0o700); err != nil {
			c.t.Fatal(err)
		}
		req.Refs = append(req.Refs, actors.Reference{ID: id, LocalPath: id})
	}
	r := &round{started: make(chan supervisor.RoundStarted, 1), result: make(chan supervisor.RoundResult, 1), lanes: map[string]lanes.Progress{}}
	c.calls.Go(func() {
		result, err := c.system.AnalyzeRefs(ctx, req, func(event any) {
			switch m := event.(type) {
			case supervisor.RoundStarted:
				r.started <- m
			case lanes.Progress:
				r.mu.Lock()
				defer r.mu.Unlock()
				r.lanes[m.LaneID] = m
			}
		})
		if err != nil {
			c.t.Errorf("session %s: %v", session.ID, err)
		}
		r.result <- result
	})
	return r
}

// await waits until so many lanes of the round are told to have a status.
func (r *round) await(t *testing.T, status lanes.Status, want int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		n := 0
		for _, p := range r.lanes {
			if p.Status == status {
				n++
			}
		}
		r.mu.Unlock()
		if n == want {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d lanes are %s and never %d", n, status, want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// await waits until a metric has a value.
func (c *crowd) await(metric string, want float64) {
	c.t.Helper()
	deadline := time.After(time.Minute)
	for lanestest.Value(c.t, c.registry, metric) != want {
		select {
		case <-deadline:
			c.t.Fatalf("%s is %v and does not become %v", metric, lanestest.Value(c.t, c.registry, metric), want)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// entries are the lines of the journal.
func (c *crowd) entries() []string {
	c.t.Helper()
	data, err := os.ReadFile(c.journal)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(string(data), " ", "_"))
}

func complete(t *testing.T, r *round) supervisor.RoundResult {
	t.Helper()
	result := <-r.result
	if n := result.Complete(); n != len(result.Lanes) || n == 0 {
		t.Errorf("%d of %d lanes are complete: %v", n, len(result.Lanes), statuses(result))
	}
	return result
}

func TestThereAreNeverMoreChildrenThanPlaces(t *testing.T) {
	t.Parallel()
	const places = 2
	c := newCrowd(t, places, 0)
	var rounds []*round
	for n := range 3 {
		rounds = append(rounds, c.analyze(t.Context(), c.newcomer(fmt.Sprintf("s%d", n)), 4))
	}
	c.await("pilothouse_children_waited_for", 3*lanes.BatchSize-places)
	c.await("pilothouse_lanes_running", places)
	c.await("pilothouse_lanes_queued", 3*4-places)
	c.open()
	for _, r := range rounds {
		complete(t, r)
	}
	atWork, all := 0, 0
	for _, entry := range c.entries() {
		if strings.HasPrefix(entry, "begin") {
			atWork++
			all++
		} else {
			atWork--
		}
		if atWork > places {
			t.Fatalf("%d children at once", atWork)
		}
	}
	if all != 3*4 || atWork != 0 {
		t.Errorf("%d children, %d of which did not end", all, atWork)
	}
	for name, want := range map[string]float64{
		"pilothouse_children_limit": places, "pilothouse_children_at_work": 0, "pilothouse_children_spare": 0, "pilothouse_children_waited_for": 0,
		"pilothouse_lanes_queued": 0, "pilothouse_lanes_running": 0,
	} {
		c.await(name, want)
	}
}

func TestABurstOfOneSessionStarvesNobody(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, -1)
	burst := c.newcomer("burst")
	var rounds []*round
	for range 4 {
		rounds = append(rounds, c.analyze(t.Context(), burst, 3))
	}
	c.await("pilothouse_children_waited_for", 4*3-1)
	late := c.analyze(t.Context(), c.newcomer("late"), 3)
	c.await("pilothouse_children_waited_for", 5*3-1)
	c.open()
	complete(t, late)
	for _, r := range rounds {
		complete(t, r)
	}
	var order []string
	for _, entry := range c.entries() {
		if who, found := strings.CutPrefix(entry, "begin_"); found {
			order = append(order, who[:strings.LastIndexByte(who, '-')])
		}
	}
	want := []string{"burst", "burst", "late", "burst", "late", "burst", "late"}
	if diff := cmp.Diff(want, order[:len(want)]); diff != "" || len(order) != 5*3 {
		t.Errorf("of %d children, the first (-want +got):\n%s", len(order), diff)
	}
	c.await("pilothouse_child_place_wait_seconds_count", 5*3) // without spares each waits
}

func TestSparesOfOneRunGiveWayToLanesOfAnother(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 6, 3)
	rich := c.analyze(t.Context(), c.newcomer("rich"), 6)
	c.await("pilothouse_children_spare", 3)
	poor := c.newcomer("poor")
	poor.Environ = append(newSession(t).Environ, "PILOTHOUSE_STUB_JOURNAL="+c.journal) // no gate
	complete(t, c.analyze(t.Context(), poor, 3))
	if n := lanestest.Value(t, c.registry, "pilothouse_children_spare"); n != 0 {
		t.Errorf("%v spares have stayed", n)
	}
	c.open()
	for _, lane := range complete(t, rich).Lanes {
		if lane.Attempts != 1 {
			t.Errorf("lane %s took %d attempts", lane.LaneID, lane.Attempts)
		}
	}
}

func TestACallWhoseLanesAreQueuedIsCancelledWithoutAPlace(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, -1)
	first := c.analyze(t.Context(), c.newcomer("first"), 1)
	c.await("pilothouse_lanes_running", 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	second := c.analyze(ctx, c.newcomer("second"), 4)
	c.await("pilothouse_children_waited_for", 3)
	second.mu.Lock()
	for id, p := range second.lanes {
		if p.Status != lanes.Queued || p.Phase != lanes.PhaseQueued {
			t.Errorf("lane %s is told to be %s, %s", id, p.Status, p.Phase)
		}
	}
	second.mu.Unlock()
	cancel(errors.New("the user has had enough"))
	for _, lane := range (<-second.result).Lanes {
		if lane.Status != lanes.Cancelled || lane.Attempts != 0 {
			t.Errorf("lane %s is %s after %d attempts", lane.LaneID, lane.Status, lane.Attempts)
		}
	}
	c.open()
	complete(t, first)
}

func TestOneLaneIsCancelledAndItsRoundGoesOn(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 1, -1)
	session := c.newcomer("s")
	r := c.analyze(t.Context(), session, 4)
	started := <-r.started
	c.await("pilothouse_children_waited_for", 2)
	r.await(t, lanes.Running, 1)
	r.await(t, lanes.Queued, 2)
	cancel := func(roundID, laneID string) error {
		return c.system.CancelLane(t.Context(), session, started.RunID, roundID, laneID, "not this one")
	}
	var working, queued string
	r.mu.Lock()
	for id, p := range r.lanes {
		if p.Status == lanes.Running {
			working = id
		} else {
			queued = id
		}
	}
	r.mu.Unlock()
	later := started.Lanes[3].Spec.ID // of the second batch
	for what, err := range map[string]error{
		"a lane that there is not":  cancel(started.RoundID, "nobody"),
		"a round that there is not": cancel("refs-none", queued),
		"a run that there is not":   c.system.CancelLane(t.Context(), session, "2020-nothing", started.RoundID, queued, ""),
	} {
		var absent *supervisor.NoLaneError
		if !errors.As(err, &absent) || !strings.Contains(err.Error(), "no lane") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, id := range []string{queued, later, working} {
		if err := cancel(started.RoundID, id); err != nil {
			t.Errorf("cancel lane %s: %v", id, err)
		}
	}
	c.await("pilothouse_lanes_total", 3)
	var absent *supervisor.NoLaneError
	if err := cancel(started.RoundID, working); !errors.As(err, &absent) {
		t.Errorf("a lane that has ended: %v", err)
	}
	c.open()
	for _, lane := range (<-r.result).Lanes {
		want, attempts := lanes.Complete, 1
		switch lane.LaneID {
		case queued, later:
			want, attempts = lanes.Cancelled, 0
		case working:
			want = lanes.Cancelled
		}
		if lane.Status != want || lane.Attempts != attempts {
			t.Errorf("lane %s is %s after %d attempts, want %s", lane.LaneID, lane.Status, lane.Attempts, want)
		}
		if want == lanes.Cancelled && (lane.Error == nil || lane.Error.Message != "not this one") {
			t.Errorf("lane %s: %+v", lane.LaneID, lane.Error)
		}
	}
	if err := cancel(started.RoundID, later); !errors.As(err, &absent) {
		t.Errorf("a round that is over: %v", err)
	}
}
