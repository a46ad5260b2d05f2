package lanes

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// Attributes of our own, beside those of the conventions for generative AI.
const (
	laneKey    = attribute.Key("pilothouse.lane.id")
	roleKey    = attribute.Key("pilothouse.role")
	sizeKey    = attribute.Key("pilothouse.batch.lanes")
	statusKey  = attribute.Key("pilothouse.status")
	attemptKey = attribute.Key("pilothouse.attempt")
	triesKey   = attribute.Key("pilothouse.attempts")
	turnsKey   = attribute.Key("pilothouse.turns")
	costKey    = attribute.Key("pilothouse.cost_usd")
	leftOutKey = attribute.Key("pilothouse.spans_left_out")
)

// maxAttemptSpans bounds what one attempt draws: a child that loops for an hour
// shall not fill the collector with its calls.
const maxAttemptSpans = 1000

// laneAttributes are known when a lane begins.
func laneAttributes(spec Spec) []attribute.KeyValue {
	return []attribute.KeyValue{laneKey.String(spec.ID), roleKey.String(spec.Role)}
}

// endLane ends the span of a lane with its terminal record.
func endLane(a Activity, r Result) {
	a.Note(statusKey.String(string(r.Status)), triesKey.Int(r.Attempts), turnsKey.Int(r.Turns), costKey.Float64(r.Usage.Cost))
	failure := ""
	if r.Error != nil {
		failure = classLabel(r.Error.Class)
	}
	a.End(failure)
}

// attemptTrace draws an attempt: a span of its own, and below it one for each
// model call and each tool that runs, as the event stream tells of them. Texts,
// arguments and results stay out. A nil *attemptTrace draws nothing.
type attemptTrace struct {
	tracer trace.Tracer
	ctx    context.Context
	span   trace.Span
	spec   Spec

	call    trace.Span            // the model call under way, nil between two
	tools   map[string]trace.Span // those that run, by tool call id
	drawn   int
	leftOut int
}

// beginAttempt draws the attempt below the lane's span. Without anybody who draws
// spans the trace is nil, and the context that of the lane.
func beginAttempt(lane context.Context, tracer trace.Tracer, spec Spec, number int) (context.Context, *attemptTrace) {
	attributes := append(laneAttributes(spec), attemptKey.Int(number), semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(spec.Role))
	ctx, span := tracer.Start(lane, "attempt", trace.WithAttributes(append(attributes, requested(spec.Model)...)...))
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, &attemptTrace{tracer: tracer, ctx: ctx, span: span, spec: spec, tools: map[string]trace.Span{}}
}

// requested names provider and model of a selector; nothing when pi chooses.
func requested(selector string) []attribute.KeyValue {
	provider, model, found := strings.Cut(selector, "/")
	if !found {
		return nil
	}
	return []attribute.KeyValue{semconv.GenAIProviderNameKey.String(provider), semconv.GenAIRequestModel(model)}
}

// spanContext identifies the attempt's span; it is not valid without one.
func (t *attemptTrace) spanContext() trace.SpanContext {
	if t == nil {
		return trace.SpanContext{}
	}
	return t.span.SpanContext()
}

// take draws what an event begins or ends.
func (t *attemptTrace) take(e pijson.Event) {
	if t == nil {
		return
	}
	switch e.Kind {
	case pijson.KindTurnStart:
		t.beginCall()
	case pijson.KindMessageStart:
		if e.Role == pijson.RoleAssistant {
			t.beginCall()
		}
	case pijson.KindMessageEnd:
		if e.Role == pijson.RoleAssistant {
			t.beginCall()
			t.endCall(e.Message)
		}
	case pijson.KindToolStart:
		t.beginTool(e)
	case pijson.KindToolEnd:
		t.endTool(e)
	default: // deltas come by the thousand
	}
}

// room tells whether another span may be drawn.
func (t *attemptTrace) room() bool {
	if t.drawn >= maxAttemptSpans {
		t.leftOut++
		return false
	}
	t.drawn++
	return true
}

// beginCall draws a model call, unless it is drawn already: a turn begins with the
// request, and a message when the answer comes.
func (t *attemptTrace) beginCall() {
	if t.call != nil || !t.room() {
		return
	}
	name := "chat"
	request := requested(t.spec.Model)
	if request != nil {
		name += " " + request[1].Value.AsString()
	}
	_, t.call = t.tracer.Start(t.ctx, name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(append(request, semconv.GenAIOperationNameChat)...))
}

func (t *attemptTrace) endCall(m *pijson.Message) {
	if t.call == nil {
		return
	}
	failure := ""
	if m != nil {
		if m.Usage != nil {
			t.call.SetAttributes(usageAttributes(*m.Usage)...)
		}
		t.call.SetAttributes(semconv.GenAIResponseModel(m.Model), semconv.GenAIResponseFinishReasons(m.StopReason))
		if m.Provider != "" {
			t.call.SetAttributes(semconv.GenAIProviderNameKey.String(m.Provider))
		}
		if m.Error != "" {
			failure = string(pijson.Classify(m.Error))
		}
	}
	endSpan(t.call, failure)
	t.call = nil
}

// beginTool draws a tool that runs. A name that the lane does not have is the
// model's own word, and stays out.
func (t *attemptTrace) beginTool(e pijson.Event) {
	if t.tools[e.ToolCallID] != nil || !t.room() {
		return
	}
	name := e.ToolName
	if !slices.Contains(t.spec.Tools, name) {
		name = "other"
	}
	_, t.tools[e.ToolCallID] = t.tracer.Start(t.ctx, "execute_tool "+name,
		trace.WithAttributes(semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(name)))
}

func (t *attemptTrace) endTool(e pijson.Event) {
	span := t.tools[e.ToolCallID]
	if span == nil {
		return
	}
	failure := ""
	if e.IsError {
		failure = "tool_error"
	}
	endSpan(span, failure)
	delete(t.tools, e.ToolCallID)
}

// end ends the attempt, and what was under way in its child with it.
func (t *attemptTrace) end(o outcome) {
	if t == nil {
		return
	}
	failure := ""
	if o.verdict.Status != pijson.StatusComplete {
		failure = classLabel(o.verdict.Class)
	}
	if t.call != nil {
		endSpan(t.call, failure)
	}
	for _, span := range t.tools {
		endSpan(span, failure)
	}
	t.span.SetAttributes(usageAttributes(o.verdict.Usage)...)
	t.span.SetAttributes(statusKey.String(string(o.verdict.Status)), turnsKey.Int(o.verdict.Turns), costKey.Float64(o.verdict.Usage.Cost))
	if o.verdict.Model != "" {
		t.span.SetAttributes(semconv.GenAIResponseModel(o.verdict.Model))
	}
	if t.leftOut > 0 {
		t.span.SetAttributes(leftOutKey.Int(t.leftOut))
	}
	t.span.SetAttributes(exitAttributes(o)...)
	endSpan(t.span, failure)
}

// usageAttributes count as the conventions do: input is all of it, cached or not.
func usageAttributes(u pijson.Usage) []attribute.KeyValue {
	input := pijson.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}.Tokens()
	return []attribute.KeyValue{
		semconv.GenAIUsageInputTokensKey.Int64(input), semconv.GenAIUsageOutputTokensKey.Int64(u.Output),
		semconv.GenAIUsageCacheReadInputTokensKey.Int64(u.CacheRead), semconv.GenAIUsageCacheCreationInputTokensKey.Int64(u.CacheWrite),
	}
}

func exitAttributes(o outcome) []attribute.KeyValue {
	if !o.started {
		return nil
	}
	attributes := []attribute.KeyValue{semconv.ProcessExitCode(o.exit.Code)}
	if slices.Contains(o.exit.Ladder, proc.StepKill) {
		attributes = append(attributes, attribute.Bool("pilothouse.child.killed", true))
	}
	return attributes
}
