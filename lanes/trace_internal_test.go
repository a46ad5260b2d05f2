package lanes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// drawn are the spans of an attempt whose child printed these lines, without those
// of the same name: attributes by span name.
func drawn(t *testing.T, spec Spec, o outcome, lines ...string) (spans map[string]map[string]string, count map[string]int) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	_, attempt := beginAttempt(context.Background(), tracer, spec, 2)
	reader := pijson.NewReader(strings.NewReader(strings.Join(lines, "\n")+"\n"), pijson.ReaderOptions{})
	for {
		event, err := reader.Next()
		if err != nil {
			break
		}
		attempt.take(event)
	}
	attempt.end(o)
	spans, count = map[string]map[string]string{}, map[string]int{}
	for _, s := range recorder.Ended() {
		count[s.Name()]++
		spans[s.Name()] = map[string]string{}
		for _, a := range s.Attributes() {
			spans[s.Name()][string(a.Key)] = a.Value.String()
		}
		if s.Name() != "attempt" && s.Parent().SpanID() != attempt.span.SpanContext().SpanID() {
			t.Errorf("span %s is not below the attempt", s.Name())
		}
	}
	if started := len(recorder.Started()); started != len(recorder.Ended()) {
		t.Errorf("%d of %d spans have not ended", started-len(recorder.Ended()), started)
	}
	return spans, count
}

func message(content, stop, failure string) string {
	return `{"type":"message_end","message":{"role":"assistant","content":[` + content + `],"provider":"sim","model":"plain",` +
		`"usage":{"input":100,"output":5,"cacheRead":20,"cacheWrite":3,"cost":{"total":0.25}},"stopReason":"` + stop + `"` + failure + `}}`
}

const (
	turnStart = `{"type":"turn_start"}`
	callsTool = `{"type":"toolCall","id":"c1","name":"read","arguments":{}}`
	secret    = "sk-very-secret"
)

func TestAnAttemptIsDrawnWithItsModelCallsAndTools(t *testing.T) {
	t.Parallel()
	spec := Spec{ID: "general", Role: "reviewer", Model: "sim/plain", Tools: []string{"read"}, Task: secret, SystemPrompt: secret, Dir: "/home/somebody"}
	o := outcome{started: true, exit: proc.Exit{Code: 0}, verdict: pijson.Verdict{
		Status: pijson.StatusComplete, Model: "plain-2", Turns: 2, Output: secret,
		Usage: pijson.Usage{Input: 200, Output: 10, CacheRead: 40, CacheWrite: 6, Cost: 0.5},
	}}
	spans, count := drawn(t, spec, o,
		turnStart, `{"type":"message_start","message":{"role":"assistant"}}`, message(callsTool, "toolUse", ""),
		`{"type":"tool_execution_start","toolCallId":"c1","toolName":"read","args":{"path":"/home/somebody/`+secret+`"}}`,
		`{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{"content":[{"type":"text","text":"`+secret+`"}]},"isError":true}`,
		turnStart, message(`{"type":"text","text":"`+secret+`"}`, "stop", ""),
	)
	if diff := cmp.Diff(map[string]int{"attempt": 1, "chat plain": 2, "execute_tool read": 1}, count); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	want := map[string]map[string]string{
		"attempt": {
			"pilothouse.lane.id": "general", "pilothouse.role": "reviewer", "pilothouse.attempt": "2", "pilothouse.status": "complete",
			"pilothouse.turns": "2", "pilothouse.cost_usd": "0.5", "process.exit.code": "0",
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "reviewer", "gen_ai.provider.name": "sim",
			"gen_ai.request.model": "plain", "gen_ai.response.model": "plain-2",
			"gen_ai.usage.input_tokens": "246", "gen_ai.usage.output_tokens": "10",
			"gen_ai.usage.cache_read.input_tokens": "40", "gen_ai.usage.cache_creation.input_tokens": "6",
		},
		"chat plain": {
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "sim", "gen_ai.request.model": "plain", "gen_ai.response.model": "plain",
			"gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.usage.input_tokens": "123", "gen_ai.usage.output_tokens": "5",
			"gen_ai.usage.cache_read.input_tokens": "20", "gen_ai.usage.cache_creation.input_tokens": "3",
		},
		"execute_tool read": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", "error.type": "tool_error"},
	}
	if diff := cmp.Diff(want, spans); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if all := fmt.Sprint(spans); strings.Contains(all, secret) || strings.Contains(all, "/home") {
		t.Errorf("the trace tells what it should not: %s", all)
	}
}

func TestWhatIsUnderWayWhenAChildEndsFailsWithIt(t *testing.T) {
	t.Parallel()
	o := outcome{started: true, exit: proc.Exit{Code: 137, Signal: "SIGKILL", Ladder: []string{proc.StepTerm, proc.StepKill}}, verdict: pijson.Verdict{
		Status: pijson.StatusFailed, Class: pijson.ClassSilent, Detail: secret, Message: secret,
	}}
	spans, _ := drawn(t, Spec{Tools: []string{"read"}}, o,
		turnStart, message(callsTool, "toolUse", ""),
		`{"type":"tool_execution_start","toolCallId":"c1","toolName":"the model's `+secret+`","args":{}}`,
		turnStart,
	)
	for name, attribute := range map[string]string{
		"attempt": "error.type=silent", "chat": "error.type=silent", "execute_tool other": "error.type=silent",
	} {
		key, value, _ := strings.Cut(attribute, "=")
		if got := spans[name][key]; got != value {
			t.Errorf("span %s has %s %q, want %q", name, key, got, value)
		}
	}
	if spans["attempt"]["pilothouse.child.killed"] != "true" || strings.Contains(fmt.Sprint(spans), secret) {
		t.Errorf("%v", spans)
	}
}

func TestAModelCallThatFailsIsDrawnWithItsClass(t *testing.T) {
	t.Parallel()
	spans, count := drawn(t, Spec{}, outcome{verdict: pijson.Verdict{Status: pijson.StatusFailed, Class: pijson.ClassRateLimit}},
		turnStart, message("", "error", `,"errorMessage":"429: {\"message\":\"`+secret+`\"}"`),
		`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"429"}`,
		turnStart, message("", "error", `,"errorMessage":"429: {\"message\":\"`+secret+`\"}"`),
	)
	if count["chat"] != 2 || spans["chat"]["error.type"] != "rate_limit" {
		t.Errorf("%d calls, the last %v", count["chat"], spans["chat"])
	}
}

func TestAnAttemptThatLoopsDrawsABoundedNumberOfSpans(t *testing.T) {
	t.Parallel()
	var lines []string
	for range 3 * maxAttemptSpans / 2 {
		lines = append(lines, turnStart, message(callsTool, "toolUse", ""),
			`{"type":"tool_execution_start","toolCallId":"c1","toolName":"read","args":{}}`, `{"type":"tool_execution_end","toolCallId":"c1","toolName":"read"}`)
	}
	spans, count := drawn(t, Spec{Tools: []string{"read"}}, outcome{verdict: pijson.Verdict{Status: pijson.StatusComplete}}, lines...)
	if n := count["chat"] + count["execute_tool read"]; n != maxAttemptSpans {
		t.Errorf("%d spans, want %d", n, maxAttemptSpans)
	}
	if spans["attempt"]["pilothouse.spans_left_out"] == "" {
		t.Error("the attempt does not tell that it has left spans out")
	}
}
