package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor/compaction"
	"pilothouse/supervisor/guard"
)

// The values of the label result.
const (
	roundComplete  = "complete"  // every lane
	roundPartial   = "partial"   // at least one lane
	roundFailed    = "failed"    // no lane, or the round could not be recorded
	roundCancelled = "cancelled" // by its caller
	roundLost      = "lost"      // with its run

	ownerAcquired  = "acquired"
	ownerTakenOver = "taken_over" // from an owner that was dead
	ownerRefused   = "refused"    // somebody else has the run
	ownerLost      = "lost"       // somebody else took the run

	subjectTool = "tool"
	subjectUser = "user_bash" // a command that the user typed

	compactionFailed = "failed" // inside; Pi does it its own way

	writeStored = "ok"
	writeFailed = "failed" // at least one change of the group
)

// metrics count what the supervisor does. Labels come from closed sets, and all
// series are there from the start, as those of [lanes.Metrics]. A nil *metrics
// counts nothing.
type metrics struct {
	lanes *lanes.Metrics

	rounds        *prometheus.CounterVec   // role, result
	roundDuration *prometheus.HistogramVec // role
	group, write  prometheus.Observer
	writes        *prometheus.CounterVec // result
	ownership     *prometheus.CounterVec // result
	orphans       prometheus.Counter
	deadLetters   prometheus.Counter
	restarts      *prometheus.CounterVec   // actor
	hooks         *prometheus.CounterVec   // hook, outcome
	compactions   *prometheus.CounterVec   // action, phase
	hookDuration  *prometheus.HistogramVec // hook, outcome
	verdicts      *prometheus.CounterVec   // verdict, subject
	mailboxes     *mailboxes
}

// newMetrics registers the metrics of a system; nil for none.
func newMetrics(registry *prometheus.Registry, places *scheduler) (*metrics, error) {
	if registry == nil {
		return nil, nil
	}
	m := &metrics{mailboxes: newMailboxes()}
	roles := []string{string(actors.Reviewer), string(actors.Criticizer), string(actors.RefAnalyst)}
	var err error
	if m.lanes, err = lanes.NewMetrics(registry, roles...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	register := func(c prometheus.Collector) { err = errors.Join(err, registry.Register(c)) }
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		register(v)
		return v
	}
	histogram := func(name, help string, labels []string, buckets ...float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(lanes.HistogramOpts(name, help, buckets...), labels)
		register(v)
		return v
	}
	m.rounds = counter("pilothouse_rounds_total", "Rounds that have ended, by what became of their lanes.", "role", "result")
	m.roundDuration = histogram("pilothouse_round_duration_seconds", "Time of a round from its acceptance to its result.", []string{"role"},
		1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)
	m.group = histogram("pilothouse_checkpoint_group_changes", "Changes that one write of a run's files makes durable together.", nil,
		1, 2, 3, 5, 10, 20, 50, 100).WithLabelValues()
	m.write = histogram("pilothouse_checkpoint_write_duration_seconds", "Time of one write of a run's files, until it is on disk.", nil,
		0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10).WithLabelValues()
	m.writes = counter("pilothouse_checkpoint_writes_total", "Writes of runs' files, by whether every change was stored.", "result")
	register(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "pilothouse_fsyncs_total", Help: "Times that this process had the kernel make a file or a directory durable."},
		func() float64 { return float64(store.Syncs()) },
	))
	m.ownership = counter("pilothouse_ownership_total", "Runs acquired, taken over from a dead owner, refused because of a living one, and lost to another.", "result")
	m.orphans = counter("pilothouse_orphans_swept_total", "Processes ended that a dead pilothouse had left behind.").WithLabelValues()
	m.deadLetters = counter("pilothouse_dead_letters_total", "Messages to actors that had ended.").WithLabelValues()
	m.restarts = counter("pilothouse_actor_restarts_total", "Actors started again, or given up, after a panic.", "actor")
	m.verdicts = counter("pilothouse_guard_verdicts_total", "Calls that plan mode or the write guard of a run judged.", "verdict", "subject")
	m.hooks = counter("pilothouse_hooks_total", "Hooks of Pi sessions answered, by how.", "hook", "outcome")
	m.compactions = counter("pilothouse_compactions_total", "Compactions of Pi sessions decided on, by what was decided.", "action", "phase")
	m.hookDuration = histogram("pilothouse_hook_duration_seconds", "Time of a hook in the daemon, which a Pi session waits for.", []string{"hook", "outcome"},
		0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
	register(m.mailboxes)
	used := func(name, help string, of func(placeLoad) int) {
		register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of(places.load())) }))
	}
	used("pilothouse_children_limit", "Children that there may be at once, those of all runs together.", func(placeLoad) int { return places.limit })
	used("pilothouse_children_at_work", "Children that have a task, and lanes that are about to start one.", func(l placeLoad) int { return l.atWork })
	used("pilothouse_children_spare", "Children that wait warm for their tasks.", func(l placeLoad) int { return l.spare })
	used("pilothouse_children_waited_for", "Lanes whose turn it is and that wait for a place for their child.", func(l placeLoad) int { return l.waiting })
	placeWait := histogram("pilothouse_child_place_wait_seconds", "Time that a lane waited for a place for a child.", nil,
		0.001, 0.01, 0.1, 1, 5, 15, 60, 300, 900, 1800, 3600).WithLabelValues()
	places.waited = func(wait time.Duration) { placeWait.Observe(wait.Seconds()) }
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	m.fill(append(roles, "other"))
	return m, nil
}

// fill makes every series.
func (m *metrics) fill(roles []string) {
	for _, role := range roles {
		m.roundDuration.WithLabelValues(role)
		for _, result := range []string{roundComplete, roundPartial, roundFailed, roundCancelled, roundLost} {
			m.rounds.WithLabelValues(role, result)
		}
	}
	for _, result := range []string{writeStored, writeFailed} {
		m.writes.WithLabelValues(result)
	}
	for _, result := range []string{ownerAcquired, ownerTakenOver, ownerRefused, ownerLost} {
		m.ownership.WithLabelValues(result)
	}
	for _, subject := range []string{subjectTool, subjectUser} {
		for _, decision := range []guard.Decision{guard.Allow, guard.Block} {
			m.verdicts.WithLabelValues(string(decision), subject)
		}
	}
	for _, name := range HookNames() {
		for _, outcome := range []string{hookOK, hookBlocked, hookRefused, hookFailed} {
			m.hooks.WithLabelValues(name, outcome)
			m.hookDuration.WithLabelValues(name, outcome)
		}
	}
	for _, phase := range []string{compaction.Planning, compaction.Execution, prePlanPhase} {
		for _, action := range []string{string(compaction.Compacted), string(compaction.Cancel), string(compaction.Fallback), compactionFailed} {
			m.compactions.WithLabelValues(action, phase)
		}
	}
	for _, kind := range actorNames {
		m.restarts.WithLabelValues(kind)
	}
}

// ofLanes are the metrics for the lanes of the system.
func (m *metrics) ofLanes() *lanes.Metrics {
	if m == nil {
		return nil
	}
	return m.lanes
}

// roundEnded counts a round with its result. A sampled span is the exemplar of the time.
func (m *metrics) roundEnded(role actors.Role, result string, after time.Duration, span trace.SpanContext) {
	if m == nil {
		return
	}
	label := "other"
	if slices.Contains([]actors.Role{actors.Reviewer, actors.Criticizer, actors.RefAnalyst}, role) {
		label = string(role)
	}
	m.rounds.WithLabelValues(label, result).Inc()
	lanes.Observe(m.roundDuration.WithLabelValues(label), after, span)
}

// written counts a group of changes and how long they took to become durable. A
// sampled span is the exemplar of the time.
func (m *metrics) written(results []committed, took time.Duration, span trace.SpanContext) {
	if m == nil {
		return
	}
	m.group.Observe(float64(len(results)))
	m.writes.WithLabelValues(writeResult(results)).Inc()
	lanes.Observe(m.write, took, span)
}

// writeResult tells whether the disk took every change of a group. A change that
// the run's state does not allow was refused, which is no failure.
func writeResult(results []committed) string {
	for _, r := range results {
		var (
			state   *store.StateError
			input   *InputError
			lost    *store.LostOwnerError
			invalid *store.InvalidError
		)
		refused := errors.Is(r.err, store.ErrNoChange) || errors.As(r.err, &state) || errors.As(r.err, &input) ||
			errors.As(r.err, &lost) || errors.As(r.err, &invalid)
		if r.err != nil && !refused {
			return writeFailed
		}
	}
	return writeStored
}

// hooked counts a hook and how long its session waited. A sampled span is the exemplar
// of the time.
func (m *metrics) hooked(name, outcome string, took time.Duration, span trace.SpanContext) {
	if m == nil {
		return
	}
	m.hooks.WithLabelValues(name, outcome).Inc()
	lanes.Observe(m.hookDuration.WithLabelValues(name, outcome), took, span)
}

// compacted counts a decision on a compaction.
func (m *metrics) compacted(action, phase string) {
	if m != nil {
		m.compactions.WithLabelValues(action, phase).Inc()
	}
}

// judged counts a verdict of the guard.
func (m *metrics) judged(subject string, decision guard.Decision) {
	if m != nil {
		m.verdicts.WithLabelValues(string(decision), subject).Inc()
	}
}

// owner counts what became of the wish to hold a run.
func (m *metrics) owner(result string) {
	if m != nil {
		m.ownership.WithLabelValues(result).Inc()
	}
}

// acquired counts a run that is ours, and whether it was somebody else's.
func (m *metrics) acquired(lease *store.Lease) {
	if lease.Generation > 1 {
		m.owner(ownerTakenOver)
		return
	}
	m.owner(ownerAcquired)
}

func (m *metrics) swept(processes int) {
	if m != nil {
		m.orphans.Add(float64(processes))
	}
}

// watchDeadLetters counts messages that find nobody. Those of the library itself,
// such as the end of an actor that its parent did not wait for, are no news.
func (m *metrics) watchDeadLetters(system *actor.ActorSystem) {
	if m == nil {
		return
	}
	system.EventStream.Subscribe(func(event any) {
		letter, ok := event.(*actor.DeadLetterEvent)
		if !ok {
			return
		}
		switch letter.Message.(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			m.deadLetters.Inc()
		}
	})
}

// watchMailbox lets the actor that is spawned of props be counted, see mailboxes.
func (m *metrics) watchMailbox(props *actor.Props, kind string) (watched *actor.Props, forget func()) {
	if m == nil {
		return props, func() {}
	}
	return m.mailboxes.watch(props, kind)
}

func (m *metrics) restarted(kind string) {
	if m != nil {
		m.restarts.WithLabelValues(kind).Inc()
	}
}

// actorNames are the actors of the tree by the beginning of their names.
var actorNames = []string{"registry", "run", "ownership", "checkpoint", "compaction", "round", "batch", "lane", "other"}

// actorKind is the kind of an actor with this id.
func actorKind(id string) string {
	kind, _, _ := strings.Cut(id[strings.LastIndexByte(id, '/')+1:], "-")
	if slices.Contains(actorNames, kind) {
		return kind
	}
	return "other"
}
