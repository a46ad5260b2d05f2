package scriptedmodel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"pilothouse/integration/scriptedmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// msg is a message of a conversation as a client sends it.
type msg map[string]any

func user(text string) msg      { return msg{"role": "user", "content": text} }
func assistant(text string) msg { return msg{"role": "assistant", "content": text} }
func result(id string) msg      { return msg{"role": "tool", "tool_call_id": id, "content": "found"} }

func calling(ids ...string) msg {
	var calls []any
	for _, id := range ids {
		calls = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "read", "arguments": "{}"}})
	}
	return msg{"role": "assistant", "content": nil, "tool_calls": calls}
}

// scripted is a user message that carries the steps.
func scripted(steps ...scriptedmodel.Step) msg {
	return user("Task: go " + scriptedmodel.Script(steps...))
}

// start runs a server for the length of the test.
func start(t testing.TB, opts scriptedmodel.Options) *scriptedmodel.Server {
	t.Helper()
	srv, err := scriptedmodel.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return srv
}

// reply is what a client makes of a response.
type reply struct {
	status   int
	header   http.Header
	body     []byte
	readErr  error // what ended the body, nil for a clean end
	models   map[string]bool
	text     []string // pieces, the empty first one left out
	thinking []string
	calls    []call
	finish   string
	usage    map[string]any
	done     bool
}

type call struct {
	ID, Name, Args string
	Pieces         int
}

func (r reply) said() string { return strings.Join(r.text, "") }

// errorOf is the message and the code of an error response.
func (r reply) errorOf(t testing.TB) (message, code string) {
	t.Helper()
	var body struct {
		Error struct{ Message, Code string }
	}
	if err := json.Unmarshal(r.body, &body); err != nil {
		t.Fatalf("error body %q: %v", r.body, err)
	}
	return body.Error.Message, body.Error.Code
}

func request(t testing.TB, ctx context.Context, srv *scriptedmodel.Server, messages ...msg) *http.Request { //nolint:revive // t first, as in every helper
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model": "plain", "stream": true, "messages": messages,
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "read"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.BaseURL()+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// client keeps no connection: each request has its own, ended with it.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask sends a conversation and reads the whole response.
func ask(t testing.TB, srv *scriptedmodel.Server, messages ...msg) reply {
	t.Helper()
	resp, err := client.Do(request(t, t.Context(), srv, messages...))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header, models: map[string]bool{}}
	r.body, r.readErr = io.ReadAll(resp.Body)
	for event := range strings.SplitSeq(string(r.body), "\n\n") {
		if data, ok := strings.CutPrefix(event, "data: "); ok {
			r.add(data)
		}
	}
	return r
}

// add takes in one event, as a forgiving client would.
func (r *reply) add(data string) {
	if data == "[DONE]" {
		r.done = true
		return
	}
	var chunk struct {
		Model   string
		Usage   map[string]any
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Delta        struct {
				Content   string
				Thinking  string `json:"reasoning_content"`
				ToolCalls []struct {
					Index    int
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if json.Unmarshal([]byte(data), &chunk) != nil {
		return
	}
	r.models[chunk.Model] = true
	if chunk.Usage != nil {
		r.usage = chunk.Usage
	}
	for _, c := range chunk.Choices {
		if c.FinishReason != "" {
			r.finish = c.FinishReason
		}
		if c.Delta.Content != "" {
			r.text = append(r.text, c.Delta.Content)
		}
		if c.Delta.Thinking != "" {
			r.thinking = append(r.thinking, c.Delta.Thinking)
		}
		for _, tc := range c.Delta.ToolCalls {
			if tc.ID != "" {
				r.calls = append(r.calls, call{ID: tc.ID, Name: tc.Function.Name})
				continue
			}
			r.calls[tc.Index].Args += tc.Function.Arguments
			r.calls[tc.Index].Pieces++
		}
	}
}

// await waits for the server's counts, as long as the test may run.
func await(t testing.TB, srv *scriptedmodel.Server, reached func(scriptedmodel.Stats) bool) {
	t.Helper()
	if err := srv.Await(t.Context(), reached); err != nil {
		t.Fatal(err)
	}
}

func open(n int) func(scriptedmodel.Stats) bool {
	return func(s scriptedmodel.Stats) bool { return s.Open == n }
}
