package supervisor

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/store"
)

// measured is a system with metrics. Calling close ends it; the test does so too.
func measured(t *testing.T, options Options) (system *System, registry *prometheus.Registry, end func()) {
	t.Helper()
	options.Metrics = prometheus.NewRegistry()
	system, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := system.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	t.Cleanup(end)
	return system, options.Metrics, end
}

// quiet checks that no gauge shows anything: all is over.
func quiet(t *testing.T, registry *prometheus.Registry) {
	t.Helper()
	for _, name := range []string{"pilothouse_lanes_queued", "pilothouse_lanes_running", "pilothouse_mailbox_messages"} {
		if got := lanestest.Value(t, registry, name); got != 0 {
			t.Errorf("%s is %v after the end", name, got)
		}
	}
}

func TestTheMetricsOfASystemAreNamedAsPrometheusWants(t *testing.T) {
	t.Parallel()
	_, registry, _ := measured(t, Options{})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestTwoSystemsOfOneProcessCountForThemselvesAndShareNoRegistry(t *testing.T) {
	t.Parallel()
	first, registry, _ := measured(t, Options{})
	_, other, _ := measured(t, Options{})
	if _, err := first.Refine(context.Background(), answering(holdingRequest(t)), nil); err != nil {
		t.Fatal(err)
	}
	if a, b := lanestest.Value(t, registry, "pilothouse_rounds_total"), lanestest.Value(t, other, "pilothouse_rounds_total"); a != 1 || b != 0 {
		t.Errorf("%v rounds of the first and %v of the second", a, b)
	}
	if third, err := New(Options{Metrics: registry}); err == nil {
		t.Error("a registry is shared by two systems")
		_ = third.Close(context.Background())
	}
}

func TestARoundIsCounted(t *testing.T) {
	t.Parallel()
	provider := sdktrace.NewTracerProvider()
	system, registry, end := measured(t, Options{Tracer: provider})
	series := len(lanestest.Samples(t, registry))
	syncs := lanestest.Value(t, registry, "pilothouse_fsyncs_total")
	ctx, span := provider.Tracer("test").Start(context.Background(), "call")
	req := answering(holdingRequest(t))
	req.Reviewers = 3
	if _, err := system.Refine(ctx, req, nil); err != nil {
		t.Fatal(err)
	}
	end()
	want := map[string]float64{
		`pilothouse_lanes_total{class="none",role="reviewer",status="complete"}`: 3,
		`pilothouse_rounds_total{result="complete",role="reviewer"}`:             1,
		`pilothouse_round_duration_seconds_count{role="reviewer"}`:               1,
		`pilothouse_batches_total`:                                               1,
		`pilothouse_lane_duration_seconds_count{role="reviewer"}`:                3,
		`pilothouse_lane_queue_wait_seconds_count{role="reviewer"}`:              3,
		`pilothouse_lane_first_event_seconds_count{role="reviewer"}`:             3,
		`pilothouse_lane_attempts_sum{role="reviewer"}`:                          3,
		`pilothouse_tokens_total{kind="input",role="reviewer"}`:                  30,
		`pilothouse_tokens_total{kind="output",role="reviewer"}`:                 15,
		`pilothouse_cost_usd_total{role="reviewer"}`:                             0.75,
		`pilothouse_children_started_total`:                                      3,
		`pilothouse_children_ended_total{step="exit"}`:                           3,
		`pilothouse_ownership_total{result="acquired"}`:                          1,
		`pilothouse_checkpoint_writes_total{result="failed"}`:                    0,
		`pilothouse_orphans_swept_total`:                                         0,
	}
	samples := lanestest.Samples(t, registry)
	got := map[string]float64{}
	for name := range want {
		got[name] = samples[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The round's begin and end, what comes with the ownership, and the lanes, in
	// whatever groups.
	writes, changes := samples[`pilothouse_checkpoint_writes_total{result="ok"}`], samples[`pilothouse_checkpoint_group_changes_sum`]
	if writes < 2 || changes < 5 || changes < writes || samples[`pilothouse_checkpoint_write_duration_seconds_count`] != writes {
		t.Errorf("%v writes of %v changes", writes, changes)
	}
	if did := samples["pilothouse_fsyncs_total"] - syncs; did < writes { // other tests of this process write too
		t.Errorf("%v times fsync for %v writes", did, writes)
	}
	trace := span.SpanContext().TraceID().String()
	for _, histogram := range []string{
		"pilothouse_lane_duration_seconds", "pilothouse_lane_first_event_seconds", "pilothouse_round_duration_seconds", "pilothouse_checkpoint_write_duration_seconds",
	} {
		if exemplars := lanestest.Exemplars(t, registry, histogram); len(exemplars) == 0 || exemplars[0] != trace {
			t.Errorf("the exemplars of %s are %v, the trace is %s", histogram, exemplars, trace)
		}
	}
	if after := len(samples); after != series {
		t.Errorf("%d series before the round, %d after it", series, after)
	}
	quiet(t, registry)
}

func TestACancelledRoundIsCounted(t *testing.T) {
	t.Parallel()
	system, registry, end := measured(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := holdingRequest(t)
	req.Reviewers = 2
	_, err := system.Refine(ctx, req, func(event any) {
		if m, ok := event.(lanes.Progress); ok && m.Phase == "responding" {
			if running := lanestest.Value(t, registry, "pilothouse_lanes_running", `role="reviewer"`); running == 0 {
				t.Error("a lane responds and none is counted as running")
			}
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	end()
	if got := lanestest.Value(t, registry, "pilothouse_lanes_total", `status="cancelled"`, `class="cancelled"`); got != 2 {
		t.Errorf("%v cancelled lanes", got)
	}
	if got := lanestest.Value(t, registry, "pilothouse_rounds_total", `result="cancelled"`); got != 1 {
		t.Errorf("%v cancelled rounds", got)
	}
	if got := lanestest.Value(t, registry, "pilothouse_children_ended_total", `step="term"`); got == 0 {
		t.Error("no child was ended by SIGTERM")
	}
	quiet(t, registry)
}

func TestALostRunIsCounted(t *testing.T) {
	t.Parallel()
	system, registry, end := measured(t, Options{ownerCheck: time.Millisecond})
	var round RoundStarted
	taken := false
	req := holdingRequest(t)
	_, err := system.Refine(context.Background(), req, func(event any) {
		switch m := event.(type) {
		case RoundStarted:
			round = m
		case lanes.Progress:
			if m.Phase == "responding" && !taken {
				taken = true
				if err := replace(filepath.Join(req.Workdir, ".git/pi_plans/runs", round.RunID, "owner.json"), theirs); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var lost *store.LostOwnerError
	if !errors.As(err, &lost) {
		t.Fatalf("got %v", err)
	}
	end()
	for sample, want := range map[string]float64{
		`pilothouse_ownership_total{result="lost"}`:                1,
		`pilothouse_ownership_total{result="acquired"}`:            1,
		`pilothouse_rounds_total{result="lost",role="reviewer"}`:   1,
		`pilothouse_checkpoint_writes_total{result="failed"}`:      0, // it was ours no more; the disk is well
		`pilothouse_actor_restarts_total{actor="run"}`:             0,
		`pilothouse_rounds_total{result="failed",role="reviewer"}`: 0,
	} {
		if got := lanestest.Samples(t, registry)[sample]; got != want {
			t.Errorf("%s is %v, want %v", sample, got, want)
		}
	}
	quiet(t, registry)
}

func TestARunOfAnotherIsCountedAsRefused(t *testing.T) {
	t.Parallel()
	system, registry, _ := measured(t, Options{})
	req := answering(holdingRequest(t))
	result, err := system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	owner := filepath.Join(req.Workdir, ".git/pi_plans/runs", result.RunID, "owner.json")
	if err := os.WriteFile(owner, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	var owned *store.OwnedError
	if _, err := system.Refine(context.Background(), req, nil); !errors.As(err, &owned) {
		t.Fatalf("got %v", err)
	}
	if got := lanestest.Value(t, registry, "pilothouse_ownership_total", `result="refused"`); got != 1 {
		t.Errorf("refused %v times", got)
	}
}

func TestAPanicIsCountedByTheKindOfItsActorAndLeavesTheGaugesRight(t *testing.T) {
	t.Parallel()
	for kind, name := range map[string]string{"lane": "lane-", "batch": "batch-", "round": "round-", "run": "run-", "checkpoint": "checkpoint"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := &faults{list: []*fault{{kind: name, at: 3}}}
			system, registry, end := measured(t, Options{receivers: []actor.ReceiverMiddleware{f.receive}})
			req := answering(holdingRequest(t))
			req.Reviewers = 3
			if _, err := system.Refine(context.Background(), req, nil); !mayEndACall(err) {
				t.Errorf("the review: %v", err)
			}
			end()
			if got := lanestest.Value(t, registry, "pilothouse_actor_restarts_total", `actor="`+kind+`"`); got == 0 {
				t.Error("the panic is not counted")
			}
			quiet(t, registry)
		})
	}
}

func TestMessagesToNobodyAreCounted(t *testing.T) {
	t.Parallel()
	system, registry, _ := measured(t, Options{})
	system.actors.Root.Send(actor.NewPID(system.actors.Address(), "nobody"), "anything")
	if got := lanestest.Value(t, registry, "pilothouse_dead_letters_total"); got != 1 {
		t.Errorf("%v dead letters", got)
	}
}

func TestTheDepthOfMailboxesIsThatOfLivingActors(t *testing.T) {
	t.Parallel()
	system, registry, end := measured(t, Options{})
	busy, entered := make(chan struct{}), make(chan struct{})
	props, _ := system.metrics.watchMailbox(actor.PropsFromFunc(func(c actor.Context) {
		if c.Message() == "wait" {
			close(entered)
			<-busy
		}
	}), "lane")
	pid := system.actors.Root.Spawn(props)
	system.actors.Root.Send(pid, "wait")
	<-entered
	for range 5 {
		system.actors.Root.Send(pid, "more")
	}
	if got := lanestest.Value(t, registry, "pilothouse_mailbox_messages", `actor="lane"`); got != 5 {
		t.Errorf("%v messages wait, want 5", got)
	}
	stopped := system.actors.Root.StopFuture(pid)
	close(busy)
	if err := stopped.Wait(); err != nil {
		t.Fatal(err)
	}
	end()
	quiet(t, registry)
}

func TestAChangeThatTheRunRefusesIsNoFailureOfTheDisk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"stored":     {nil, writeStored},
		"on record":  {store.ErrNoChange, writeStored},
		"refused":    {&store.StateError{}, writeStored},
		"bad input":  {&InputError{}, writeStored},
		"lost":       {&store.LostOwnerError{}, writeStored},
		"disk full":  {os.ErrPermission, writeFailed},
		"unreadable": {&store.CorruptError{}, writeFailed},
	} {
		if got := writeResult([]committed{{}, {err: tt.err}, {}}); got != tt.want {
			t.Errorf("%s: a group with it is %s, want %s", name, got, tt.want)
		}
	}
}

func TestWithoutARegistryASystemCountsNothing(t *testing.T) {
	t.Parallel()
	m, err := newMetrics(nil, newScheduler(1, 0))
	if m != nil || err != nil {
		t.Fatalf("got %v, %v", m, err)
	}
	m.roundEnded("reviewer", roundComplete, 0, oteltrace.SpanContext{})
	m.owner(ownerLost)
	m.swept(math.MaxInt32)
	m.restarted("lane")
	if m.ofLanes() != nil {
		t.Error("there are metrics of lanes")
	}
}
