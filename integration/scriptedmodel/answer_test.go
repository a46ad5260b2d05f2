package scriptedmodel_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/integration/scriptedmodel"
)

type step = scriptedmodel.Step

func TestAnAnswerIsStreamedAsItsStepSays(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	tests := []struct {
		name string
		step step
		want func(reply) any
		is   any
	}{
		{"text in chunks of whole characters", step{Text: "añb€c😀d", Chunks: 3},
			func(r reply) any { return r.text }, []string{"añb", "€c😀", "d"}},
		{"text in one chunk by default", step{Text: "hello"},
			func(r reply) any { return r.text }, []string{"hello"}},
		{"generated text, the default unit", step{TextBytes: 50},
			func(r reply) any { return r.said() }, "The quick brown fox jumps over the lazy dog. The q"},
		{"generated text, a unit, in chunks", step{TextBytes: 7, Unit: "né", Chunks: 2},
			func(r reply) any { return r.text }, []string{"néné", "nén"}},
		{"thinking before the text", step{Thinking: "hmmmm", ThinkingChunks: 2, Text: "yes"},
			func(r reply) any { return [][]string{r.thinking, r.text} }, [][]string{{"hmm", "mm"}, {"yes"}}},
		{"a step without fields is an empty message", step{},
			func(r reply) any { return []any{r.said(), r.finish, r.done} }, []any{"", "stop", true}},
		{"finish reason", step{Text: "cut", Finish: "length"},
			func(r reply) any { return r.finish }, "length"},
		{"usage as given", step{Text: "x", Usage: map[string]any{"prompt_tokens": 7}},
			func(r reply) any { return r.usage }, map[string]any{"prompt_tokens": 7.0}},
		{"no usage", step{Text: "x", NoUsage: true},
			func(r reply) any { return []any{r.usage == nil, r.finish, r.done} }, []any{true, "stop", true}},
		{"no done mark", step{Text: "x", NoDone: true},
			func(r reply) any { return []any{r.usage != nil, r.finish, r.done} }, []any{true, "stop", false}},
		{"no finish reason", step{Text: "x", NoFinish: true},
			func(r reply) any { return []any{r.said(), r.usage == nil, r.finish, r.done, r.readErr} }, []any{"x", true, "", false, nil}},
		{"the requested model", step{Text: "x"},
			func(r reply) any { return r.models }, map[string]bool{"plain": true}},
		{"another model", step{Text: "x", ResponseModel: "plain-2026"},
			func(r reply) any { return r.models }, map[string]bool{"plain-2026": true}},
		{"a clean end after some chunks", step{Text: "abcdef", Chunks: 6, EndAfter: 2},
			func(r reply) any { return []any{r.said(), r.finish, r.done, r.readErr} }, []any{"ab", "", false, nil}},
		{"torn characters arrive whole", step{Text: "añb€c😀d", SplitBytes: 1},
			func(r reply) any { return r.said() }, "añb€c😀d"},
		{"a line of HTML is skipped by a client", step{Text: "x", Malformed: "html"},
			func(r reply) any { return []any{strings.Contains(string(r.body), "\n\n<html>"), r.said(), r.finish} }, []any{true, "x", "stop"}},
		{"an event that is no JSON", step{Text: "x", Malformed: "json"},
			func(r reply) any { return strings.Contains(string(r.body), "data: {not json\n\n") }, true},
		{"an error within the stream", step{Text: "x", Malformed: "errorevent"},
			func(r reply) any {
				return strings.Contains(string(r.body), `data: {"error":{"message":"scripted in-stream error"`)
			}, true},
		{"bytes that are no UTF-8", step{Text: "x", Malformed: "utf8"},
			func(r reply) any { return strings.Contains(string(r.body), "bad \xff\xfe\xc3\x28\xed\xa0\x80 end") }, true},
		{"raw bytes", step{Text: "x", RawBase64: base64.StdEncoding.EncodeToString([]byte("\x00: raw\n\n"))},
			func(r reply) any { return strings.Contains(string(r.body), "\n\n\x00: raw\n\ndata: ") }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := ask(t, srv, scripted(tt.step))
			if r.status != 200 || r.header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("status %d, type %s", r.status, r.header.Get("Content-Type"))
			}
			if diff := cmp.Diff(tt.is, tt.want(r)); diff != "" {
				t.Errorf("(-want +got):\n%s\nbody:\n%s", diff, r.body)
			}
		})
	}
}

func TestToolCallsCarryTheirArgumentsInPieces(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	tests := []struct {
		name string
		step step
		want []call
	}{
		{"one", step{Tool: "read", Args: map[string]any{"path": "a<b>.txt"}},
			[]call{{Name: "read", Args: `{"path":"a<b>.txt"}`, Pieces: 2}}},
		{"without arguments", step{Tool: "ls", ArgChunks: 1},
			[]call{{Name: "ls", Args: `{}`, Pieces: 1}}},
		{"several, in five pieces", step{ArgChunks: 5, Tools: []scriptedmodel.ToolCall{
			{Name: "read", Args: map[string]any{"n": json.Number("12345678901234567890")}}, {Name: "ls", Args: "{broken"}}},
			[]call{{Name: "read", Args: `{"n":12345678901234567890}`, Pieces: 5}, {Name: "ls", Args: "{broken", Pieces: 4}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := ask(t, srv, scripted(tt.step))
			ids := map[string]bool{}
			for i := range r.calls {
				ids[r.calls[i].ID] = true
				r.calls[i].ID = ""
			}
			if len(ids) != len(tt.want) || ids[""] {
				t.Errorf("call ids are not distinct: %v", ids)
			}
			if diff := cmp.Diff(tt.want, r.calls); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r.finish != "tool_calls" {
				t.Errorf("finish reason %q", r.finish)
			}
		})
	}
}

func TestUsageGrowsWithTheConversationAndTheAnswer(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{Rules: []scriptedmodel.Rule{
		{Match: "^short", Steps: []step{{Text: "12345678", Cached: 3}}},
		{Match: "^long", Steps: []step{{Text: strings.Repeat("x", 400), Tool: "ls"}}},
	}})
	count := func(r reply, key string) int { return int(r.usage[key].(float64)) } //nolint:errcheck // a panic fails the test as well
	short, long := ask(t, srv, user("short")), ask(t, srv, user("long"+strings.Repeat("y", 400)))
	if got := count(short, "completion_tokens"); got != 2 {
		t.Errorf("8 characters are %d tokens, want 2", got)
	}
	if got := count(long, "completion_tokens"); got != 110 {
		t.Errorf("400 characters and a tool call are %d tokens, want 110", got)
	}
	if got := count(long, "prompt_tokens") - count(short, "prompt_tokens"); got < 98 || got > 101 {
		t.Errorf("about 400 characters more in the prompt are %d tokens more", got)
	}
	if got := count(short, "total_tokens") - count(short, "prompt_tokens"); got != 2 {
		t.Errorf("total is %d above the prompt, want 2", got)
	}
	if diff := cmp.Diff(map[string]any{"cached_tokens": 3.0}, short.usage["prompt_tokens_details"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAScriptedStatusComesWithItsBodyAndHeaders(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})

	r := ask(t, srv, scripted(step{Status: 429, RetryAfter: 3, Message: "slow down", Code: "rate", Headers: map[string]string{"X-Request": "7"}}))
	message, code := r.errorOf(t)
	got := []any{r.status, r.header.Get("Retry-After"), r.header.Get("X-Request"), r.header.Get("Content-Type"), message, code}
	if diff := cmp.Diff([]any{429, "3", "7", "application/json", "slow down", "rate"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	message, code = ask(t, srv, scripted(step{Status: 500})).errorOf(t)
	if message != "scripted error 500" || code != "scripted_500" {
		t.Errorf("by default: message %q, code %q", message, code)
	}

	r = ask(t, srv, scripted(step{Status: 502, Body: "<h1>no</h1>", Headers: map[string]string{"Content-Type": "text/html"}, RetryAfter: "Wed, 21 Oct 2026 07:28:00 GMT"}))
	got = []any{r.status, string(r.body), r.header.Get("Content-Type"), r.header.Get("Retry-After")}
	if diff := cmp.Diff([]any{502, "<h1>no</h1>", "text/html", "Wed, 21 Oct 2026 07:28:00 GMT"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAStepForTheFirstAttemptsGivesWayToTheNext(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	again := scripted(step{Status: 429, Times: 2, Then: &step{Text: "at last"}})
	var got []any
	for range 4 {
		r := ask(t, srv, again)
		got = append(got, r.status, r.said())
	}
	if diff := cmp.Diff([]any{429, "", 429, "", 200, "at last", 200, "at last"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	byDefault := scripted(step{Status: 500, Times: 1})
	ask(t, srv, byDefault)
	if got := ask(t, srv, byDefault).said(); got != "recovered after 1 failures" {
		t.Errorf("without then: %q", got)
	}
}

func TestDelaysPassBeforeAndBetweenChunks(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	begin := time.Now()
	ask(t, srv, scripted(step{BeforeMs: 30, Text: "abc", Chunks: 3, Thinking: "x", DelayMs: 10}))
	if got, least := time.Since(begin), 70*time.Millisecond; got < least {
		t.Errorf("took %v, at least %v were scripted", got, least)
	}
}

func TestAnyTextSurvivesTheScriptTheStreamAndItsChunks(t *testing.T) {
	t.Parallel()
	srv := start(t, scriptedmodel.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a >> b", "<<SIM x>>", "data: \n\n", "\u2028", "\\\""})).Draw(rt, "text")
		chunks := rapid.IntRange(0, 40).Draw(rt, "chunks")
		r := ask(t, srv, scripted(step{Text: text, Chunks: chunks}))
		if r.said() != text || !r.done {
			rt.Fatalf("said %q of %q, done %v; status %d, %s", r.said(), text, r.done, r.status, r.body)
		}
		if len(r.text) > max(chunks, 1) {
			rt.Fatalf("%d chunks, at most %d were asked for", len(r.text), chunks)
		}
	})
}
