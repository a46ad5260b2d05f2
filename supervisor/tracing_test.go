package supervisor_test

import (
	"context"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"pilothouse/supervisor"
)

func TestATraceGoesFromTheCallToTheChildsEnvironment(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	b := setupWith(t, supervisor.Options{Tracer: provider})
	ctx, span := provider.Tracer("test").Start(context.Background(), "call")
	req := b.plan("PLAN.md", "# A plan\nSTUB-ENV TRACEPARENT\n")
	req.Reviewers = 1
	result, err := b.system.Refine(ctx, req, nil)
	span.End()
	if err != nil {
		t.Fatal(err)
	}
	traceID := span.SpanContext().TraceID().String()
	// 00-<trace id>-<span id>-01, the W3C form.
	parts := strings.Split(strings.TrimPrefix(result.Lanes[0].Output, "TRACEPARENT="), "-")
	if len(parts) != 4 || parts[1] != traceID {
		t.Fatalf("the child got %q, the trace is %s", result.Lanes[0].Output, traceID)
	}
	parents := map[string]string{} // span → parent
	for _, s := range recorder.Ended() {
		if s.SpanContext().TraceID().String() == traceID {
			parents[s.SpanContext().SpanID().String()] = s.Parent().SpanID().String()
		}
	}
	steps := 0
	for id := parts[2]; id != span.SpanContext().SpanID().String(); id = parents[id] {
		if parents[id] == "" {
			t.Fatalf("span %s above the child has no recorded parent", id)
		}
		steps++
	}
	// registry, run, checkpoint, run, role actor, batch, lane at the least
	if steps < 6 {
		t.Errorf("only %d messages between the call and the child are in the trace", steps)
	}
}

func TestWithoutATraceTheChildGetsNone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\nSTUB-ENV TRACEPARENT\n")
	req.Reviewers = 1
	result, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Lanes[0].Output != "TRACEPARENT=" {
		t.Errorf("the child got %q", result.Lanes[0].Output)
	}
}
