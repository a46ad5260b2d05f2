package lanes

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// The values of labels that come from no list of another package.
const (
	otherRole = "other" // a role that was not announced
	noClass   = "none"  // a lane that is complete has no class of failure
	stepExit  = "exit"  // a child that ended by itself and left nothing behind
)

// maxLaneCost bounds what one lane adds to the cost, in dollars: a child that
// reports nonsense shall not turn the sum into infinity.
const maxLaneCost = 1e6

// Metrics counts lanes and their children. Labels come from closed sets (role,
// status, class, kind, step), so the number of series does not grow with what runs
// (faults J116), and all are there from the start, so that a rate sees the first
// event too. A nil *Metrics counts nothing.
type Metrics struct {
	roles []string

	queued, running *prometheus.GaugeVec   // role
	ended           *prometheus.CounterVec // role, status, class
	retries         *prometheus.CounterVec // class
	tokens          *prometheus.CounterVec // role, kind
	cost            *prometheus.CounterVec // role
	batches         prometheus.Counter

	duration, wait, firstEvent, attempts *prometheus.HistogramVec // role

	childrenStarted prometheus.Counter
	childrenEnded   *prometheus.CounterVec // step
}

// NewMetrics registers the metrics of lanes. Lanes of a role that is not named
// count as "other". It fails when the registry has metrics of these names already.
func NewMetrics(registry prometheus.Registerer, roles ...string) (*Metrics, error) {
	m := &Metrics{roles: append(slices.Clone(roles), otherRole)}
	var err error
	register := func(c prometheus.Collector) { err = errors.Join(err, registry.Register(c)) }
	gauge := func(name, help string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"role"})
		register(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		register(v)
		return v
	}
	histogram := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(HistogramOpts(name, help, buckets...), []string{"role"})
		register(v)
		return v
	}
	m.queued = gauge("pilothouse_lanes_queued", "Lanes of accepted rounds that wait for their batch or for a place.")
	m.running = gauge("pilothouse_lanes_running", "Lanes between their first attempt and their terminal record that do not wait for a place.")
	m.ended = counter("pilothouse_lanes_total", "Lanes by their terminal record. The class tells why a lane failed.", "role", "status", "class")
	m.retries = counter("pilothouse_lane_retries_total", "Attempts that were made again, by what had failed.", "class")
	m.tokens = counter("pilothouse_tokens_total", "Tokens of lanes that have ended, failed attempts included.", "role", "kind")
	m.cost = counter("pilothouse_cost_usd_total", "Price of lanes that have ended, in US dollars of pi's price table.", "role")
	m.batches = counter("pilothouse_batches_total", "Batches of at most three lanes that were begun.").WithLabelValues()
	m.duration = histogram("pilothouse_lane_duration_seconds", "Time of a lane from its first attempt to its end, waits between attempts included.",
		1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600)
	m.wait = histogram("pilothouse_lane_queue_wait_seconds", "Time of a lane from the acceptance of its round to its first attempt.",
		0.01, 0.1, 1, 5, 15, 60, 300, 900, 1800, 3600)
	m.firstEvent = histogram("pilothouse_lane_first_event_seconds", "Time from a child's task to its first event.",
		0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
	m.attempts = histogram("pilothouse_lane_attempts", "Children that a lane used, one after the other.", 1, 2, 3, 5, 8)
	m.childrenStarted = counter("pilothouse_children_started_total", "Pi processes started, those that wait for a task included.").WithLabelValues()
	m.childrenEnded = counter("pilothouse_children_ended_total", "Pi processes ended, by how far that had to go: they exit, take SIGTERM or SIGKILL, or leave processes that are swept.", "step")
	if err != nil {
		return nil, err
	}
	m.fill()
	return m, nil
}

// HistogramOpts describes a histogram in both forms: buckets for every scraper and
// a native one, whose resolution of a tenth costs no series, for those that ask.
func HistogramOpts(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}
}

// fill makes every series.
func (m *Metrics) fill() {
	for _, role := range m.roles {
		for _, v := range []*prometheus.GaugeVec{m.queued, m.running} {
			v.WithLabelValues(role)
		}
		for _, v := range []*prometheus.HistogramVec{m.duration, m.wait, m.firstEvent, m.attempts} {
			v.WithLabelValues(role)
		}
		m.ended.WithLabelValues(role, string(Complete), noClass)
		m.ended.WithLabelValues(role, string(Cancelled), string(pijson.ClassCancelled))
		for _, class := range pijson.Classes() {
			m.ended.WithLabelValues(role, string(Failed), string(class))
		}
		m.spent(role, pijson.Usage{})
	}
	for _, class := range pijson.Classes() {
		m.retries.WithLabelValues(string(class))
	}
	for _, step := range []string{stepExit, proc.StepTerm, proc.StepKill, proc.StepSweep} {
		m.childrenEnded.WithLabelValues(step)
	}
}

func (m *Metrics) role(role string) string {
	if slices.Contains(m.roles, role) {
		return role
	}
	return otherRole
}

func classLabel(class pijson.Class) string {
	if slices.Contains(pijson.Classes(), class) {
		return string(class)
	}
	return string(pijson.ClassUnknown)
}

func (m *Metrics) spent(role string, usage pijson.Usage) {
	for kind, tokens := range map[string]int64{
		"input": usage.Input, "output": usage.Output, "cache_read": usage.CacheRead, "cache_write": usage.CacheWrite,
	} {
		m.tokens.WithLabelValues(role, kind).Add(float64(tokens))
	}
	m.cost.WithLabelValues(role).Add(math.Min(usage.Cost, maxLaneCost))
}

// batchBegun counts a batch.
func (m *Metrics) batchBegun() {
	if m != nil {
		m.batches.Inc()
	}
}

// Observe counts a time in a histogram. A sampled span gives it its trace as exemplar,
// which leads from a slow one to what it was.
func Observe(histogram prometheus.Observer, took time.Duration, span trace.SpanContext) {
	if exemplar, ok := histogram.(prometheus.ExemplarObserver); ok && span.IsSampled() {
		exemplar.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	histogram.Observe(took.Seconds())
}

// heard counts the first event of a child, so long after it was given its task.
func (m *Metrics) heard(role string, after time.Duration, span trace.SpanContext) {
	if m != nil {
		Observe(m.firstEvent.WithLabelValues(m.role(role)), after, span)
	}
}

// retried counts an attempt that is made again after a failure.
func (m *Metrics) retried(class pijson.Class) {
	if m != nil {
		m.retries.WithLabelValues(classLabel(class)).Inc()
	}
}

func (m *Metrics) childStarted() {
	if m != nil {
		m.childrenStarted.Inc()
	}
}

func (m *Metrics) childEnded(exit proc.Exit) {
	if m == nil {
		return
	}
	step := stepExit
	for _, s := range []string{proc.StepSweep, proc.StepTerm, proc.StepKill} { // the strongest comes last
		if slices.Contains(exit.Ladder, s) {
			step = s
		}
	}
	m.childrenEnded.WithLabelValues(step).Inc()
}

// Tally is the count of one round's lanes, from the acceptance of the round to the
// terminal record of each. Each is counted once, whatever it hears of it again. Its
// methods may be called from any goroutine; a nil *Tally counts nothing.
type Tally struct {
	metrics  *Metrics
	role     string
	accepted time.Time

	mu    sync.Mutex
	open  map[string]Status // Queued or Running, by lane id
	begun map[string]bool   // lanes that have run
}

// Accept counts the lanes of a round as queued.
func (m *Metrics) Accept(role string, laneIDs []string) *Tally {
	if m == nil {
		return nil
	}
	t := &Tally{metrics: m, role: m.role(role), accepted: time.Now(), open: map[string]Status{}, begun: map[string]bool{}}
	for _, id := range laneIDs {
		t.open[id] = Queued
	}
	m.queued.WithLabelValues(t.role).Add(float64(len(t.open)))
	return t
}

// Seen counts a lane as running, or as queued while it waits for a place, which it
// may do again between two attempts.
func (t *Tally) Seen(laneID string, status Status) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	was, open := t.open[laneID]
	if !open || status == was || status.Terminal() {
		return
	}
	t.open[laneID] = status
	t.gauge(was).Dec()
	t.gauge(status).Inc()
	if status == Running && !t.begun[laneID] {
		t.begun[laneID] = true
		t.metrics.wait.WithLabelValues(t.role).Observe(time.Since(t.accepted).Seconds())
	}
}

// gauge counts the lanes of a status that is not terminal.
func (t *Tally) gauge(status Status) prometheus.Gauge {
	if status == Queued {
		return t.metrics.queued.WithLabelValues(t.role)
	}
	return t.metrics.running.WithLabelValues(t.role)
}

// Ended counts the terminal record of a lane. The duration carries the trace of
// span as its exemplar, when that is sampled.
func (t *Tally) Ended(r Result, span trace.SpanContext) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.leave(r.LaneID) {
		return
	}
	class := noClass
	switch r.Status {
	case Complete:
	case Cancelled:
		class = string(pijson.ClassCancelled)
	default:
		r.Status = Failed
		class = string(pijson.ClassUnknown)
		if r.Error != nil {
			class = classLabel(r.Error.Class)
		}
	}
	t.metrics.ended.WithLabelValues(t.role, string(r.Status), class).Inc()
	if r.Attempts == 0 {
		return
	}
	t.metrics.attempts.WithLabelValues(t.role).Observe(float64(r.Attempts))
	t.metrics.spent(t.role, r.Usage)
	Observe(t.metrics.duration.WithLabelValues(t.role), r.Duration, span)
}

// Close takes the lanes that have not ended off the gauges: the round was given up.
func (t *Tally) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.open {
		t.leave(id)
	}
}

// leave takes a lane off its gauge; it is false when the lane is not open.
func (t *Tally) leave(laneID string) bool {
	status, open := t.open[laneID]
	if open {
		t.gauge(status).Dec()
		delete(t.open, laneID)
	}
	return open
}
