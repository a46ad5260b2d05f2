package lanes

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Activity is what an actor does between the message that asks for it and its
// terminal message, drawn as a span. Its trace context goes on in the headers of
// messages, in W3C form, and is that of the asking message when nobody draws
// spans. The zero value has not begun; ending it does nothing.
type Activity struct {
	ctx  context.Context
	span trace.Span
}

// propagator reads and writes the header "traceparent".
var propagator = propagation.TraceContext{}

// BeginActivity begins what the message at hand asks for.
func BeginActivity(ctx actor.Context, name string, attributes ...attribute.KeyValue) Activity {
	return BeginActivityIn(MessageTrace(ctx), ctx, name, attributes...)
}

// BeginActivityIn begins a part of what parent, a context with a span, is about.
func BeginActivityIn(parent context.Context, ctx actor.Context, name string, attributes ...attribute.KeyValue) Activity {
	spanCtx, span := telemetryOf(ctx.ActorSystem()).Tracer.Start(parent, name, trace.WithAttributes(attributes...))
	return Activity{spanCtx, span}
}

// MessageTrace is the trace context of the message at hand.
func MessageTrace(ctx actor.Context) context.Context {
	header := ctx.MessageHeader()
	if header == nil {
		return context.Background()
	}
	return propagator.Extract(context.Background(), propagation.MapCarrier(header.ToMap()))
}

// Begun tells that the activity has begun; it may have ended.
func (a Activity) Begun() bool { return a.span != nil }

// Context holds the activity's span, for what is done on its behalf.
func (a Activity) Context() context.Context {
	if a.ctx == nil {
		return context.Background()
	}
	return a.ctx
}

// SpanContext identifies the activity's span; it is not valid without one.
func (a Activity) SpanContext() trace.SpanContext { return trace.SpanContextFromContext(a.Context()) }

// Envelope puts the activity's trace context in the header of a message.
func (a Activity) Envelope(message any) any {
	header := propagation.MapCarrier{}
	propagator.Inject(a.Context(), header)
	if len(header) == 0 {
		return message
	}
	return &actor.MessageEnvelope{Header: map[string]string(header), Message: message}
}

// Note adds attributes to the span.
func (a Activity) Note(attributes ...attribute.KeyValue) {
	if a.span != nil {
		a.span.SetAttributes(attributes...)
	}
}

// Link points to a span of which the activity is no part, although it has to do
// with it. The activity's own trace needs no links.
func (a Activity) Link(other trace.SpanContext) {
	if a.span != nil && other.IsValid() && other.TraceID() != a.span.SpanContext().TraceID() {
		a.span.AddLink(trace.Link{SpanContext: other})
	}
}

// End ends the activity. failure is a word of a closed set and "" after success;
// what a provider or a user wrote stays out of traces. Only the first end counts.
func (a Activity) End(failure string) {
	if a.span != nil {
		endSpan(a.span, failure)
	}
}

func endSpan(span trace.Span, failure string) {
	if failure != "" {
		span.SetAttributes(attribute.String("error.type", failure))
		span.SetStatus(codes.Error, failure)
	}
	span.End()
}

// traceparent is the W3C trace context of ctx, "" without one.
func traceparent(ctx context.Context) string {
	header := propagation.MapCarrier{}
	propagator.Inject(ctx, header)
	return header["traceparent"]
}
