package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor/guard"
)

// Options of a [System]. Zero fields take the default named with them.
type Options struct {
	// Logger for what operators read; nothing by default.
	Logger *slog.Logger
	// Tracer provider of the spans of runs, rounds, batches, lanes and attempts; the
	// global one by default.
	Tracer trace.TracerProvider
	// Metrics is where the metrics of this system go, never those of another; nil
	// keeps none.
	Metrics *prometheus.Registry
	// Now is the wall clock for what is written down; time.Now by default.
	Now func() time.Time
	// ChildrenDir is where identities of live children are kept, so that the next
	// start can end those that a killed process left behind; "" keeps none. One
	// directory serves all processes of a user. When it cannot be written, none
	// are kept.
	ChildrenDir string
	// SessionsDir is where the plan mode of sessions is kept over restarts; "" keeps it
	// in memory.
	SessionsDir string
	// CompactionSnapshot is the file in which the setting debug of a workspace has its last
	// compaction described; by default store.CompactionSnapshotPath.
	CompactionSnapshot string
	// NoCgroup keeps children out of cgroups even where they can be had, as where
	// they cannot.
	NoCgroup bool
	// MaxChildren is how many children, those of all runs together, there may be at
	// once; by default what this machine has room for, a batch at least. Lanes beyond it
	// wait, and runs take turns.
	MaxChildren int
	// Spares is how many of them may wait warm for their tasks; negative for none. By default two rounds can have a whole batch
	// ready. Each is an idle Node process of some 70 MB (Pi fact §9).
	Spares int

	// ownerCheck shortens the time between two looks at owner.json for tests.
	ownerCheck time.Duration
	// receivers see every message of every actor. Tests inject panics with them.
	receivers []actor.ReceiverMiddleware
}

// System is the actor tree of one process with what it needs: a process starter
// and a clock. Make one per process: an actor system costs megabytes.
type System struct {
	actors   *actor.ActorSystem
	registry *actor.PID
	gone     chan struct{} // closed when the registry has stopped
	tracing  *tracing
	tracer   trace.Tracer
	// conversations of Pi sessions with their users.
	conversations *conversations
	planModes     *planModes
	interviews    interviews
	roots         roots
	runs          known[store.Run]    // by directory
	policies      known[guard.Policy] // by directory and artifacts
	choices       choices
	executions    executions
	processes     sessionProcesses
	*services
}

const defaultSpares = 2 * lanes.BatchSize

// services are what the actors of the tree share. All are safe for concurrent
// use and none changes after start.
type services struct {
	turns    *lanes.Turns // of all work on files and processes
	work     *background
	children *children
	logger   *slog.Logger
	now      func() time.Time
	clock    *roundClock
	places   *scheduler // for children
	bindings bindings
	resuming sync.Map      // ids of the sessions that are choosing a run to resume
	check    time.Duration // between two looks at the owner of a run
	metrics  *metrics
	pace     lanes.Pace // keeps starts apart after a fight for pi's lock files
	snapshot string     // of the last compaction
}

// New starts a system. Close it, or children and goroutines leak.
func New(o Options) (*System, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = otel.GetTracerProvider()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ownerCheck == 0 {
		o.ownerCheck = ownerCheck
	}
	if o.Spares == 0 {
		o.Spares = defaultSpares
	}
	if o.MaxChildren <= 0 {
		o.MaxChildren = capacity()
	}
	// Half of the processors work, so that one is left for who asks.
	turns := lanes.NewTurns(max(1, runtime.GOMAXPROCS(0)/2))
	places := newScheduler(o.MaxChildren, o.Spares)
	metrics, err := newMetrics(o.Metrics, places)
	if err != nil {
		return nil, err
	}
	planModes, err := newPlanModes(o.SessionsDir, o.Logger, o.Now)
	if err != nil {
		return nil, err
	}
	s := &System{
		gone:    make(chan struct{}),
		tracing: newTracing(o.Logger, metrics, o.receivers...),
		tracer:  o.Tracer.Tracer("pilothouse"), conversations: newConversations(), planModes: planModes,
		services: &services{
			turns: turns, work: newBackground(turns), logger: o.Logger,
			children: &children{dir: o.ChildrenDir, noCgroup: o.NoCgroup, turns: turns, logger: o.Logger, metrics: metrics},
			now:      o.Now, clock: &roundClock{now: o.Now}, places: places,
			check: o.ownerCheck, metrics: metrics, snapshot: o.CompactionSnapshot,
		},
	}
	s.actors = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return o.Logger.With("component", "actors") }),
		// After a dead letter the library keeps a goroutine for this long, by default a
		// second; a message to an actor that has just ended is nothing unusual here.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	lanes.Instrument(s.actors, lanes.Telemetry{Metrics: metrics.ofLanes(), Tracer: s.tracer})
	metrics.watchDeadLetters(s.actors)
	watched := func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			next(c, envelope)
			if _, stopped := envelope.Message.(*actor.Stopped); stopped {
				close(s.gone)
			}
		}
	}
	// A registry that panics is stopped, not restarted: it would have forgotten
	// its calls, and their callers would wait for ever. They are told instead.
	stop := actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
	props := s.tracing.props(actor.PropsFromProducer(newRegistry(s.work), actor.WithReceiverMiddleware(watched), actor.WithGuardian(stop)))
	props, _ = metrics.watchMailbox(props, "registry")
	s.registry, err = s.actors.Root.SpawnNamed(props, "registry")
	if err != nil {
		return nil, fmt.Errorf("start the registry: %w", err)
	}
	return s, nil
}

// Turns are those of all work on files and processes, for what writes files beside the
// tree.
func (s *System) Turns() *lanes.Turns { return s.turns }

// Close cancels what runs, waits until every round is recorded, every child is
// gone and every owner file is released, and frees the rest. When ctx ends
// first, children are killed; what was not recorded by then is resumable.
func (s *System) Close(ctx context.Context) error {
	s.conversations.close(ctx)
	for _, id := range s.executions.sessions() {
		s.settleSeat(ctx, id)
	}
	s.actors.Root.Send(s.registry, shutdown{"pilothouse is shutting down"})
	var err error
	select {
	case <-s.gone:
	case <-ctx.Done():
		err = fmt.Errorf("shut down: %w", ctx.Err())
		s.actors.Root.Stop(s.registry)
	}
	err = errors.Join(err, s.children.close(ctx))
	s.work.wait()
	s.conversations.wait()
	s.actors.Shutdown()
	return err
}

// ask makes one call to the tree and waits for its reply. A call that is watched is a
// round. When ctx ends the call is cancelled, which the run does in an orderly way; ask
// still waits for the reply, so a cancelled round returns what became of each lane.
func (s *System) ask(ctx context.Context, watch Watch, begin func(caller *actor.PID) prepare) (any, error) {
	call := func(caller *actor.PID) any { return startCall{caller, begin(caller), watch != nil} }
	value, err := s.send(ctx, watch, call)
	if s.freed(ctx, err) {
		return s.send(ctx, watch, call)
	}
	return value, err
}

// send sends the registry a message for a caller and waits for the reply.
func (s *System) send(ctx context.Context, watch Watch, message func(caller *actor.PID) any) (any, error) {
	done := make(chan reply, 1)
	caller := s.actors.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &call{watch: watch, done: done} }))
	root := s.actors.Root.Copy().WithSenderMiddleware(s.tracing.outside(ctx))
	root.Send(s.registry, message(caller))
	cancelled := ctx.Done()
	for {
		select {
		case r := <-done:
			return r.value, r.err
		case <-cancelled:
			cancelled = nil
			root.Send(s.registry, cancelCall{caller, fmt.Sprintf("cancelled: %v", context.Cause(ctx))})
		case <-s.gone:
			_ = root.PoisonFuture(caller).Wait() // behind a reply that is on its way
			select {
			case r := <-done:
				return r.value, r.err
			default:
				return nil, &ClosedError{}
			}
		}
	}
}
