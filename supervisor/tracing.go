package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Trace context travels in message headers, in W3C form. The middleware below is
// put on every actor of the tree by the spawn middleware of its parent, so
// that actors, batches and lanes know nothing of tracing: they see a plain
// "traceparent" header.

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

// tracing makes a span for each message and passes the context on.
type tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	logger     *slog.Logger
	inner      []actor.ReceiverMiddleware // between tracing and each actor
}

func newTracing(provider trace.TracerProvider, logger *slog.Logger, inner ...actor.ReceiverMiddleware) *tracing {
	return &tracing{
		inner:      inner,
		tracer:     provider.Tracer("pilothouse/supervisor"),
		propagator: propagation.TraceContext{},
		logger:     logger,
	}
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
		return next(system, id, t.props(props), parent)
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
		if envelope.Header == nil { // system messages and progress carry no trace
			next(c, envelope)
			return
		}
		parent := t.propagator.Extract(context.Background(), envelopeCarrier{envelope})
		ctx, span := t.tracer.Start(parent, fmt.Sprintf("receive %T", envelope.Message),
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attribute.String("actor.id", c.Self().Id)))
		defer span.End()
		c.Set(&spanContext{ctx})
		defer c.Set(&spanContext{context.Background()})
		next(c, envelope)
	}
}

func (t *tracing) send(next actor.SenderFunc) actor.SenderFunc {
	return func(c actor.SenderContext, target *actor.PID, envelope *actor.MessageEnvelope) {
		if extended, ok := c.(actor.ExtensionContext); ok {
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
