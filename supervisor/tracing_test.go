package supervisor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"pilothouse/actors"
	"pilothouse/lanes/lanestest"
	"pilothouse/supervisor"
)

// spans are the spans of one trace that have ended.
type spans []sdktrace.ReadOnlySpan

func spansOf(recorder *tracetest.SpanRecorder, traceID string) (all spans) {
	for _, s := range recorder.Ended() {
		if s.SpanContext().TraceID().String() == traceID {
			all = append(all, s)
		}
	}
	return all
}

// path names a span and those above it, the outermost first.
func (all spans) path(id string) (names []string) {
	for i := 0; i < len(all); i++ {
		if all[i].SpanContext().SpanID().String() == id {
			names = append([]string{all[i].Name()}, names...)
			id, i = all[i].Parent().SpanID().String(), -1
		}
	}
	return names
}

// count counts the spans by their path, from below the outermost.
func (all spans) count() map[string]int {
	counts := map[string]int{}
	for _, s := range all {
		counts[strings.Join(all.path(s.SpanContext().SpanID().String()), " > ")]++
	}
	return counts
}

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
	all := spansOf(recorder, traceID)
	if diff := cmp.Diff([]string{"call", "run", "round", "batch", "lane", "attempt"}, all.path(parts[2])); diff != "" {
		t.Errorf("above the child (-want +got):\n%s", diff)
	}
	counts := all.count()
	for _, path := range []string{"call > run", "call > run > round", "call > run > round > batch > lane > attempt > chat"} {
		if counts[path] != 1 {
			t.Errorf("%d spans %s in %v, want one", counts[path], path, counts)
		}
	}
	// The round's begin, its lane and its end, in one group each or fewer.
	if n := counts["call > run > round > checkpoint"]; n < 1 || n > 3 {
		t.Errorf("%d writes of the round in %v", n, counts)
	}
	for _, s := range all {
		if !slices.Contains([]string{"call", "run", "round", "batch", "lane", "attempt", "chat", "checkpoint"}, s.Name()) {
			t.Errorf("the trace has a span %q", s.Name())
		}
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

func TestATraceIsPassedOnUnchangedWhenNobodyDrawsSpans(t *testing.T) {
	t.Parallel()
	drawing := sdktrace.NewTracerProvider() // of the caller only
	b := setup(t)
	ctx, span := drawing.Tracer("test").Start(context.Background(), "call")
	defer span.End()
	req := b.plan("PLAN.md", "# A plan\nSTUB-ENV TRACEPARENT\n")
	req.Reviewers = 1
	result, err := b.system.Refine(ctx, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := span.SpanContext()
	if want := "TRACEPARENT=00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-01"; result.Lanes[0].Output != want {
		t.Errorf("the child got %q, want %q", result.Lanes[0].Output, want)
	}
}

func TestALaneThatIsTriedAgainIsDrawnAndCountedWithEachAttempt(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	registry := prometheus.NewRegistry()
	b := setupWith(t, supervisor.Options{Tracer: provider, Metrics: registry})
	ctx, span := provider.Tracer("test").Start(context.Background(), "call")
	req := b.plan("PLAN.md", "# A plan\nSTUB-503\n")
	req.Reviewers, req.Limits.RetryDelay = 1, 1
	_, err := b.system.Refine(ctx, req, nil)
	span.End()
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]int{}
	for _, s := range spansOf(recorder, span.SpanContext().TraceID().String()) {
		if s.Status().Code != codes.Error {
			continue
		}
		failed[s.Name()+" "+s.Status().Description]++
		if strings.Contains(fmt.Sprint(s.Attributes(), s.Status(), s.Events()), "come again") {
			t.Errorf("span %s tells the provider's words", s.Name())
		}
	}
	if diff := cmp.Diff(map[string]int{"chat server": 3, "attempt server": 3, "lane server": 1, "round failed": 1}, failed); diff != "" {
		t.Errorf("failed spans (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		name, label string
		want        float64
	}{
		{"pilothouse_lane_retries_total", `class="server"`, 2},
		{"pilothouse_lane_retries_total", "", 2},
		{"pilothouse_lanes_total", `class="server",role="reviewer",status="failed"`, 1},
		{"pilothouse_lane_attempts_sum", `role="reviewer"`, 3},
		{"pilothouse_rounds_total", `result="failed"`, 1},
		{"pilothouse_lane_first_event_seconds_count", `role="reviewer"`, 3},
		{"pilothouse_tokens_total", `kind="input"`, 30},
	} {
		if got := lanestest.Value(t, registry, tt.name, tt.label); got != tt.want {
			t.Errorf("%s{%s} is %v, want %v", tt.name, tt.label, got, tt.want)
		}
	}
}

func TestACallThatJoinsARunOfAnotherTraceKeepsItsOwnWithALinkToTheRun(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	b := setupWith(t, supervisor.Options{Tracer: provider})
	first, firstSpan := provider.Tracer("test").Start(context.Background(), "first")
	holding, cancel := context.WithCancel(first)
	defer cancel()
	w := newWatcher()
	done := make(chan error, 1)
	req := b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n")
	go func() {
		_, err := b.system.Refine(holding, req, w.watch)
		done <- err
	}()
	<-w.working

	second, secondSpan := provider.Tracer("test").Start(context.Background(), "second")
	_, err := b.system.AnalyzeRefs(second, supervisor.AnalyzeRequest{
		Session: b.session, Refs: []actors.Reference{{ID: "a", LocalPath: t.TempDir()}}, Model: supervisor.ModelAnswer{Answered: true},
	}, nil)
	secondSpan.End()
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	firstSpan.End()

	all := spansOf(recorder, secondSpan.SpanContext().TraceID().String())
	counts := all.count()
	for _, path := range []string{"second > round", "second > round > batch > lane > attempt"} {
		if counts[path] != 1 {
			t.Errorf("%d spans %s in %v, want one", counts[path], path, counts)
		}
	}
	for _, s := range all {
		if s.Name() != "round" {
			continue
		}
		if links := s.Links(); len(links) != 1 || links[0].SpanContext.TraceID() != firstSpan.SpanContext().TraceID() {
			t.Errorf("the round links to %v, want the run of the first trace", links)
		}
	}
}
