package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"
	"go.opentelemetry.io/otel/propagation"
)

// Trace context travels in message headers, in W3C form: what an actor sends while
// it works on a message goes on with the context of that message, unless it put
// another into the header itself, as whoever has begun an activity of its own does.
// The middleware below is put on every actor of the tree by the spawn middleware of
// its parent. Messages draw no spans; activities do (lanes.Activity).

// envelopeCarrier lets a propagator read and write message headers.
type envelopeCarrier struct{ *actor.MessageEnvelope }

func (c envelopeCarrier) Get(key string) string { return c.GetHeader(key) }
func (c envelopeCarrier) Set(key, value string) { c.SetHeader(key, value) }
func (c envelopeCarrier) Keys() []string {
	if c.Header == nil {
		return nil
	}
	return c.Header.Keys()
}

// spanContext is the context of the message that an actor is working on.
type spanContext struct{ ctx context.Context }

var spanContextID = ctxext.NextContextExtensionID()

// ExtensionID implements ctxext.ContextExtension.
func (*spanContext) ExtensionID() ctxext.ContextExtensionID { return spanContextID }

// tracing passes trace context on, and tells operators what becomes of the actors
// on its way.
type tracing struct {
	propagator propagation.TextMapPropagator
	logger     *slog.Logger
	metrics    *metrics
	inner      []actor.ReceiverMiddleware // between tracing and each actor
}

func newTracing(logger *slog.Logger, metrics *metrics, inner ...actor.ReceiverMiddleware) *tracing {
	return &tracing{propagator: propagation.TraceContext{}, logger: logger, metrics: metrics, inner: inner}
}

// props adds the middleware to the props of an actor and, through the spawn
// middleware, to all its descendants.
func (t *tracing) props(props *actor.Props) *actor.Props {
	return props.Clone(
		actor.WithReceiverMiddleware(append([]actor.ReceiverMiddleware{t.receive}, t.inner...)...),
		actor.WithSenderMiddleware(t.send),
		actor.WithSpawnMiddleware(t.spawn),
	)
}

func (t *tracing) spawn(next actor.SpawnFunc) actor.SpawnFunc {
	return func(system *actor.ActorSystem, id string, props *actor.Props, parent actor.SpawnerContext) (*actor.PID, error) {
		watched, forget := t.metrics.watchMailbox(t.props(props), actorKind(id))
		pid, err := next(system, id, watched, parent)
		if err != nil {
			forget()
		}
		return pid, err
	}
}

func (t *tracing) receive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		defer func() {
			// Supervision passes on the value of a panic but not its stack.
			if reason := recover(); reason != nil {
				t.logger.Error("actor panicked", "actor", c.Self().Id, "message", fmt.Sprintf("%T", envelope.Message),
					"reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
				panic(reason)
			}
		}()
		if _, again := envelope.Message.(*actor.Restarting); again {
			t.metrics.restarted(actorKind(c.Self().Id))
		}
		if envelope.Header == nil { // system messages and progress carry no trace
			next(c, envelope)
			return
		}
		c.Set(&spanContext{t.propagator.Extract(context.Background(), envelopeCarrier{envelope})})
		defer c.Set(&spanContext{context.Background()})
		next(c, envelope)
	}
}

func (t *tracing) send(next actor.SenderFunc) actor.SenderFunc {
	return func(c actor.SenderContext, target *actor.PID, envelope *actor.MessageEnvelope) {
		if extended, ok := c.(actor.ExtensionContext); ok && envelope.Header == nil {
			if span, ok := extended.Get(spanContextID).(*spanContext); ok {
				t.propagator.Inject(span.ctx, envelopeCarrier{envelope})
			}
		}
		next(c, target, envelope)
	}
}

// outside is the sender middleware of calls from outside the actor tree.
func (t *tracing) outside(ctx context.Context) actor.SenderMiddleware {
	return func(next actor.SenderFunc) actor.SenderFunc {
		return func(c actor.SenderContext, target *actor.PID, envelope *actor.MessageEnvelope) {
			t.propagator.Inject(ctx, envelopeCarrier{envelope})
			next(c, target, envelope)
		}
	}
}
