package lanestest

import (
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
)

// system is shared: an actor system costs megabytes.
var system = sync.OnceValue(func() *actor.ActorSystem {
	return actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond), // the throttle's goroutine lives that long
	)
})

// Fault looks at each message of each actor of the tree before the actor does.
// What it returns, unless nil, is what the actor panics with. name is the last
// part of the actor's id, such as "lane-general"; the actor under test is "subject".
// It is called from many goroutines.
type Fault func(name string, message any) any

// Stage is the parent of the actor under test.
type Stage struct {
	lanes.Supervision // stops an actor that panics
	props             *actor.Props
	root              *actor.PID
	subject           *actor.PID

	mu       sync.Mutex
	heard    []any
	ended    bool
	progress chan struct{} // closed and replaced at each message
	gone     chan struct{}
}

type subjectGone struct{}

// Play starts an actor. At the end of the test the tree is stopped, which must
// come to its end.
func Play(t testing.TB, producer actor.Producer, fault Fault) *Stage {
	t.Helper()
	s := Open(producer, fault)
	t.Cleanup(func() { s.Close(t) })
	return s
}

// Open is Play for tests that close the stage themselves.
func Open(producer actor.Producer, fault Fault) *Stage {
	s := &Stage{props: faulty(actor.PropsFromProducer(producer), fault), progress: make(chan struct{}), gone: make(chan struct{})}
	started := make(chan struct{})
	s.root = system().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s },
		actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				next(c, envelope)
				switch envelope.Message.(type) {
				case *actor.Started:
					close(started)
				case *actor.Stopped:
					close(s.gone)
				}
			}
		})))
	<-started
	return s
}

// faulty puts a fault before an actor and its descendants.
func faulty(props *actor.Props, fault Fault) *actor.Props {
	if fault == nil {
		return props
	}
	return props.Clone(
		actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
			return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
				if reason := fault(base(c.Self().Id), envelope.Message); reason != nil {
					panic(reason)
				}
				next(c, envelope)
			}
		}),
		actor.WithSpawnMiddleware(func(next actor.SpawnFunc) actor.SpawnFunc {
			return func(system *actor.ActorSystem, id string, props *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
				return next(system, id, faulty(props, fault), parent)
			}
		}),
	)
}

func base(id string) string {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '/' {
			return id[i+1:]
		}
	}
	return id
}

// Receive implements actor.Actor.
func (s *Stage) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		pid, err := ctx.SpawnNamed(s.props, "subject")
		if err != nil {
			panic(err)
		}
		s.subject = pid
	case *actor.Terminated:
		ctx.Send(ctx.Self(), subjectGone{}) // behind what the subject has sent
	case subjectGone:
		s.note(func() { s.ended = true })
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		s.note(func() { s.heard = append(s.heard, m) })
	}
}

func (s *Stage) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.progress)
	s.progress = make(chan struct{})
}

// Send sends a message to the actor under test.
func (s *Stage) Send(message any) { system().Root.Send(s.subject, message) }

// SendTo sends a message to a descendant of the actor under test, such as
// "batch-1/lane-general", as soon as there is one.
func (s *Stage) SendTo(t testing.TB, path string, message any) {
	t.Helper()
	pid := actor.NewPID(s.subject.Address, s.subject.Id+"/"+path)
	timeout, poll := time.NewTimer(patience), time.NewTicker(time.Millisecond)
	defer timeout.Stop()
	defer poll.Stop()
	for {
		if _, ok := system().ProcessRegistry.GetLocal(pid.Id); ok {
			system().Root.Send(pid, message)
			return
		}
		select {
		case <-poll.C:
		case <-timeout.C:
			t.Fatalf("there is no actor %s", path)
		}
	}
}

// Stop stops the actor under test, as a parent would that has given it up.
func (s *Stage) Stop() { system().Root.Stop(s.subject) }

// Heard returns everything that the actor has sent to its parent, in order.
func (s *Stage) Heard() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// until waits until ok holds; ok is called with s.mu held.
func (s *Stage) until(t testing.TB, otherwise string, ok func() bool) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		holds, progress := ok(), s.progress
		s.mu.Unlock()
		if holds {
			return
		}
		select {
		case <-progress:
		case <-timeout.C:
			t.Fatalf("%s; heard %d messages: %v", otherwise, len(s.Heard()), s.Heard())
		}
	}
}

// AwaitEnd waits until the actor under test has ended by itself.
func (s *Stage) AwaitEnd(t testing.TB) {
	t.Helper()
	s.until(t, "the actor does not end", func() bool { return s.ended })
}

// Close stops the tree and waits for its end.
func (s *Stage) Close(t testing.TB) {
	t.Helper()
	system().Root.Stop(s.root)
	await(t, s.gone, "the tree of actors does not stop")
}

// Await waits for a message of one type that fits; nil fits all.
func Await[M any](t testing.TB, s *Stage, fits func(M) bool) M {
	t.Helper()
	var found M
	s.until(t, "an expected message does not come", func() bool {
		for _, heard := range s.heard {
			if m, ok := heard.(M); ok && (fits == nil || fits(m)) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// All returns the messages of one type so far, in order.
func All[M any](s *Stage) []M {
	var all []M
	for _, heard := range s.Heard() {
		if m, ok := heard.(M); ok {
			all = append(all, m)
		}
	}
	return all
}

// Traced is a message with a W3C trace context in its header.
func Traced(message any, traceparent string) any {
	return &actor.MessageEnvelope{Header: map[string]string{"traceparent": traceparent}, Message: message}
}
