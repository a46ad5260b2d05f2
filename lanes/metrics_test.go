package lanes_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.opentelemetry.io/otel/trace"
	"pgregory.net/rapid"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
)

// registered are metrics of the role reviewer in a registry of their own.
func registered(t testing.TB) (*lanes.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := lanes.NewMetrics(registry, "reviewer")
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

func TestLaneMetricsAreNamedAsPrometheusWants(t *testing.T) {
	t.Parallel()
	_, registry := registered(t)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestARegistryIsRefusedASecondTime(t *testing.T) {
	t.Parallel()
	_, registry := registered(t)
	if m, err := lanes.NewMetrics(registry); err == nil || m != nil {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestWithoutMetricsNothingIsCounted(t *testing.T) {
	t.Parallel()
	var none *lanes.Metrics
	tally := none.Accept("reviewer", []string{"general"})
	tally.Seen("general", lanes.Running)
	tally.Ended(lanes.Result{LaneID: "general"}, trace.SpanContext{})
	tally.Close()
}

func TestALaneIsCountedFromItsQueueToItsEnd(t *testing.T) {
	t.Parallel()
	m, registry := registered(t)
	gauges := func(queued, running float64) {
		t.Helper()
		got := [2]float64{lanestest.Value(t, registry, "pilothouse_lanes_queued"), lanestest.Value(t, registry, "pilothouse_lanes_running")}
		if got != [2]float64{queued, running} {
			t.Errorf("%v queued and running, want %v and %v", got, queued, running)
		}
	}
	tally := m.Accept("reviewer", []string{"general", "risk", "refused"})
	gauges(3, 0)
	tally.Seen("general", lanes.Running)
	tally.Seen("general", lanes.Running) // the progress of a lane comes many times
	tally.Seen("risk", lanes.Running)
	gauges(1, 2)
	sampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 1}, TraceFlags: trace.FlagsSampled})
	general := lanes.Result{LaneID: "general", Status: lanes.Complete, Attempts: 2, Duration: 90 * time.Second, Usage: lanestest.Cost}
	tally.Ended(general, sampled)
	tally.Ended(general, sampled) // a record comes once; should it not, it counts once
	tally.Ended(lanes.Result{
		LaneID: "risk", Status: lanes.Failed, Attempts: 1, Duration: time.Second,
		Usage: pijson.Usage{Cost: math.MaxFloat64}, Error: &lanes.Failure{Class: pijson.ClassRateLimit},
	}, trace.SpanContext{})
	tally.Ended(lanes.Result{LaneID: "refused", Status: lanes.Failed, Error: &lanes.Failure{Class: pijson.ClassStartFailure}}, trace.SpanContext{})
	tally.Ended(lanes.Result{LaneID: "unheard of", Status: lanes.Complete, Attempts: 1}, trace.SpanContext{})
	gauges(0, 0)

	want := map[string]float64{
		`pilothouse_lanes_total{class="none",role="reviewer",status="complete"}`:        1,
		`pilothouse_lanes_total{class="rate_limit",role="reviewer",status="failed"}`:    1,
		`pilothouse_lanes_total{class="start_failure",role="reviewer",status="failed"}`: 1,
		`pilothouse_tokens_total{kind="input",role="reviewer"}`:                         487,
		`pilothouse_tokens_total{kind="output",role="reviewer"}`:                        5,
		`pilothouse_tokens_total{kind="cache_read",role="reviewer"}`:                    11,
		`pilothouse_tokens_total{kind="cache_write",role="reviewer"}`:                   3,
		`pilothouse_cost_usd_total{role="reviewer"}`:                                    1e6 + 0.25, // nonsense is bounded
		`pilothouse_lane_duration_seconds_count{role="reviewer"}`:                       2,          // a refused lane took no time
		`pilothouse_lane_duration_seconds_sum{role="reviewer"}`:                         91,
		`pilothouse_lane_attempts_sum{role="reviewer"}`:                                 3,
		`pilothouse_lane_queue_wait_seconds_count{role="reviewer"}`:                     2,
	}
	got := lanestest.Samples(t, registry)
	for name := range got {
		if _, wanted := want[name]; !wanted {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{sampled.TraceID().String()}, lanestest.Exemplars(t, registry, "pilothouse_lane_duration_seconds")); diff != "" {
		t.Errorf("exemplars (-want +got):\n%s", diff)
	}
}

// Whatever is told in whatever order, the gauges show what is open, and nothing once
// the round is given up.
func TestTheGaugesOfLanesAreNeverOff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		registry := prometheus.NewRegistry()
		m, err := lanes.NewMetrics(registry, "reviewer")
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{"a", "b", "c"}
		tally := m.Accept(rapid.SampledFrom([]string{"reviewer", "stranger"}).Draw(t, "role"), ids)
		state, ran := map[string]string{"a": "queued", "b": "queued", "c": "queued"}, map[string]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			id := rapid.SampledFrom(append(ids, "unknown")).Draw(t, "id")
			if rapid.Bool().Draw(t, "ends") {
				tally.Ended(lanes.Result{LaneID: id, Status: lanes.Complete}, trace.SpanContext{})
				delete(state, id)
			} else {
				seen := rapid.SampledFrom([]lanes.Status{lanes.Queued, lanes.Running}).Draw(t, "seen")
				tally.Seen(id, seen)
				if state[id] != "" {
					state[id] = string(seen)
				}
				if seen == lanes.Running && state[id] != "" {
					ran[id] = true
				}
			}
			want := map[string]float64{}
			for _, s := range state {
				want[s]++
			}
			for _, s := range []string{"queued", "running"} {
				if got := lanestest.Value(t, registry, "pilothouse_lanes_"+s); got != want[s] {
					t.Fatalf("%v lanes are %s, want %v", got, s, want[s])
				}
			}
		}
		tally.Close()
		if got := lanestest.Value(t, registry, "pilothouse_lanes_queued") + lanestest.Value(t, registry, "pilothouse_lanes_running"); got != 0 {
			t.Fatalf("%v lanes are left after the round", got)
		}
		if got := lanestest.Value(t, registry, "pilothouse_lane_queue_wait_seconds_count"); got != float64(len(ran)) {
			t.Fatalf("%v waits counted for %d lanes that ran, however often", got, len(ran))
		}
	})
}

func TestTheNumberOfSeriesDoesNotGrowWithWhatRuns(t *testing.T) {
	t.Parallel()
	m, registry := registered(t)
	before := len(lanestest.Samples(t, registry))
	classes := append(pijson.Classes(), "", "a class of tomorrow")
	var rounds sync.WaitGroup
	for worker := range 4 {
		rounds.Go(func() {
			for run := range 2500 {
				id := fmt.Sprintf("run-%d-%d", worker, run)
				tally := m.Accept([]string{"reviewer", "criticizer", id}[run%3], []string{id + "-a", id + "-b", id + "-c"})
				for i, status := range []lanes.Status{lanes.Complete, lanes.Failed, lanes.Status(id)} {
					lane := fmt.Sprintf("%s-%c", id, 'a'+i)
					tally.Seen(lane, lanes.Running)
					tally.Ended(lanes.Result{
						LaneID: lane, Status: status, Attempts: 1 + run%4, Model: id, Usage: lanestest.Cost,
						Error: &lanes.Failure{Class: classes[run%len(classes)], Message: id},
					}, trace.SpanContext{})
				}
				tally.Close()
			}
		})
	}
	rounds.Wait()
	if after := len(lanestest.Samples(t, registry)); after != before {
		t.Errorf("%d series before, %d after 10,000 runs", before, after)
	}
	if got := lanestest.Value(t, registry, "pilothouse_lanes_total"); got != 30_000 {
		t.Errorf("%v lanes counted, want 30,000", got)
	}
}
