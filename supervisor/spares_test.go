package supervisor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"pilothouse/actors"
	"pilothouse/supervisor"
)

// A later batch begins when the one before has ended, which is no message of the
// call; its children still belong to the call's trace. Warm or not.
func TestATraceReachesTheLanesOfLaterBatches(t *testing.T) {
	t.Parallel()
	for name, spares := range map[string]int{"warm": 3, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := sdktrace.NewTracerProvider()
			b := setupWith(t, supervisor.Options{Tracer: provider, Spares: spares})
			req := supervisor.AnalyzeRequest{
				Session: b.session, Context: "STUB-ENV TRACEPARENT\n", Model: supervisor.ModelAnswer{Answered: true},
			}
			for i := range 7 {
				req.Refs = append(req.Refs, actors.Reference{ID: fmt.Sprintf("r%d", i+1), LocalPath: "."})
			}
			ctx, span := provider.Tracer("test").Start(context.Background(), "call")
			result, err := b.system.AnalyzeRefs(ctx, req, nil)
			span.End()
			if err != nil {
				t.Fatal(err)
			}
			want := "TRACEPARENT=00-" + span.SpanContext().TraceID().String() + "-"
			for _, lane := range result.Lanes {
				if !strings.HasPrefix(lane.Output, want) {
					t.Errorf("the child of lane %s got %q, want %s…", lane.LaneID, lane.Output, want)
				}
			}
		})
	}
}
