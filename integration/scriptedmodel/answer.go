package scriptedmodel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// errDropped: the script cuts the connection here.
var errDropped = errors.New("connection cut by the script")

// errEnded: the script ends the stream here, cleanly but unfinished.
var errEnded = errors.New("stream ended by the script")

// defaultUnit is what Step.TextBytes repeats.
const defaultUnit = "The quick brown fox jumps over the lazy dog. "

// badUTF8 is a chunk whose text holds bytes that are no UTF-8: two that never
// occur in it, a broken pair and a surrogate.
const badUTF8 = `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"bad ` +
	"\xff\xfe\xc3\x28\xed\xa0\x80" + ` end"},"finish_reason":null}]}` + "\n\n"

// answer plays one step to one client.
type answer struct {
	w          http.ResponseWriter
	flush      func() error
	request    *http.Request
	completion *completion
	id         int
	step       Step

	outChars int
}

// play returns nil when the step was played to its end, errDropped when the
// connection has to be cut now, and another error when the client has left or
// the server is closing.
func (a *answer) play() error {
	if a.step.Stall == StallHeaders {
		return a.silence()
	}
	if err := a.wait(a.step.BeforeMs); err != nil {
		return err
	}
	if a.step.Reset != "" {
		return a.reset()
	}
	if a.step.Status != 0 {
		return a.fail()
	}
	err := a.stream()
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// silence lasts until the client leaves or the server closes.
func (a *answer) silence() error {
	<-a.request.Context().Done()
	return a.request.Context().Err()
}

func (a *answer) wait(ms int) error {
	if ms <= 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-a.request.Context().Done():
		return a.request.Context().Err()
	}
}

// reset makes the close that follows a TCP reset instead of an orderly end.
func (a *answer) reset() error {
	if conn, ok := a.request.Context().Value(connKey{}).(*net.TCPConn); ok {
		if err := conn.SetLinger(0); err != nil {
			return err
		}
	}
	return errDropped
}

// fail answers with the scripted HTTP status.
func (a *answer) fail() error {
	h := a.w.Header()
	for name, value := range a.step.Headers {
		h.Set(name, value)
	}
	if a.step.RetryAfter != nil {
		h.Set("Retry-After", fmt.Sprint(a.step.RetryAfter))
	}
	if a.step.Body == "" {
		message, code := a.step.Message, a.step.Code
		if message == "" {
			message = fmt.Sprintf("scripted error %d", a.step.Status)
		}
		if code == "" {
			code = fmt.Sprintf("scripted_%d", a.step.Status)
		}
		writeError(a.w, a.step.Status, message, code)
		return nil
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	a.w.WriteHeader(a.step.Status)
	_, err := a.w.Write([]byte(a.step.Body))
	return err
}

// stream sends a whole answer as server-sent events.
func (a *answer) stream() error {
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.w.Header().Set("Cache-Control", "no-cache")
	if err := a.delta(map[string]any{"role": "assistant", "content": ""}); err != nil {
		return err
	}
	if a.step.Stall == StallStart {
		return a.silence()
	}
	if err := a.say("reasoning_content", a.step.Thinking, a.step.ThinkingChunks); err != nil {
		return err
	}
	if err := a.say("content", a.step.text(), a.step.Chunks); err != nil {
		return err
	}
	if err := a.rubbish(); err != nil {
		return err
	}
	calls := a.step.calls()
	if err := a.call(calls); err != nil {
		return err
	}
	if a.step.NoFinish {
		return errEnded
	}
	return a.finish(len(calls))
}

func (s Step) text() string {
	if s.TextBytes <= 0 {
		return s.Text
	}
	unit := s.Unit
	if unit == "" {
		unit = defaultUnit
	}
	runes := []rune(strings.Repeat(unit, s.TextBytes/utf8.RuneCountInString(unit)+1))
	return string(runes[:s.TextBytes])
}

func (s Step) calls() []ToolCall {
	if len(s.Tools) > 0 {
		return s.Tools
	}
	if s.Tool != "" {
		return []ToolCall{{Name: s.Tool, Args: s.Args}}
	}
	return nil
}

// say streams text as one field of the message, chunk by chunk, and plays the
// faults that are counted in chunks.
func (a *answer) say(field, text string, chunks int) error {
	for i, piece := range cut(text, max(chunks, 1)) {
		a.outChars += utf8.RuneCountInString(piece)
		if err := a.torn(a.chunk(map[string]any{field: piece}, nil)); err != nil {
			return err
		}
		switch sent := i + 1; {
		case int(a.step.Stall) == sent:
			return a.silence()
		case a.step.DropAfter == sent:
			return errDropped
		case a.step.EndAfter == sent:
			return errEnded
		}
		if err := a.wait(a.step.DelayMs); err != nil {
			return err
		}
	}
	return nil
}

// cut divides text into at most n pieces of whole characters, all but the last
// of one length; no pieces for an empty text.
func cut(text string, n int) []string {
	runes := []rune(text)
	size := max((len(runes)+n-1)/n, 1)
	var pieces []string
	for start := 0; start < len(runes); start += size {
		pieces = append(pieces, string(runes[start:min(start+size, len(runes))]))
	}
	return pieces
}

// torn sends an event in the pieces that SplitBytes asks for, a millisecond
// apart so that they are not joined again on the way.
func (a *answer) torn(event []byte) error {
	size := a.step.SplitBytes
	if size <= 0 {
		return a.write(event)
	}
	for len(event) > 0 {
		n := min(size, len(event))
		if err := a.write(event[:n]); err != nil {
			return err
		}
		if err := a.wait(1); err != nil {
			return err
		}
		event = event[n:]
	}
	return nil
}

// rubbish sends what does not belong into a stream.
func (a *answer) rubbish() error {
	raw, err := base64.StdEncoding.DecodeString(a.step.RawBase64)
	if err != nil {
		return fmt.Errorf("raw bytes: %w", err) // checked when the step was read
	}
	switch a.step.Malformed {
	case "json":
		raw = append(raw, "data: {not json\n\n"...)
	case "html":
		raw = append(raw, "<html><body>502 Bad Gateway</body></html>\n\n"...)
	case "utf8":
		raw = append(raw, badUTF8...)
	case "errorevent":
		raw = append(raw, `data: {"error":{"message":"scripted in-stream error","code":500}}`+"\n\n"...)
	}
	if len(raw) == 0 {
		return nil
	}
	return a.write(raw)
}

func (a *answer) call(calls []ToolCall) error {
	for i, c := range calls {
		args, ok := c.Args.(string)
		if !ok {
			args = "{}"
			if c.Args != nil {
				args = string(compactJSON(c.Args))
			}
		}
		head := map[string]any{
			"index": i, "id": fmt.Sprintf("call_%d_%d", a.id, i), "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": ""},
		}
		if err := a.delta(map[string]any{"tool_calls": []any{head}}); err != nil {
			return err
		}
		chunks := a.step.ArgChunks
		if chunks <= 0 {
			chunks = 2
		}
		for _, piece := range cut(args, chunks) {
			part := map[string]any{"index": i, "function": map[string]any{"arguments": piece}}
			if err := a.delta(map[string]any{"tool_calls": []any{part}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *answer) finish(calls int) error {
	reason := a.step.Finish
	if reason == "" {
		reason = "stop"
		if calls > 0 {
			reason = "tool_calls"
		}
	}
	if err := a.write(a.chunk(map[string]any{}, reason)); err != nil {
		return err
	}
	if !a.step.NoUsage {
		event := a.envelope([]any{})
		event["usage"] = a.usage(calls)
		if err := a.write(sse(event)); err != nil {
			return err
		}
	}
	if a.step.NoDone {
		return nil
	}
	return a.write([]byte("data: [DONE]\n\n"))
}

func (a *answer) usage(calls int) map[string]any {
	if a.step.Usage != nil {
		return a.step.Usage
	}
	in, out := a.completion.promptTokens(), tokens(a.outChars)+10*calls
	return map[string]any{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details": map[string]any{"cached_tokens": a.step.Cached},
	}
}

func (a *answer) delta(delta map[string]any) error { return a.write(a.chunk(delta, nil)) }

func (a *answer) chunk(delta map[string]any, finish any) []byte {
	return sse(a.envelope([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}))
}

func (a *answer) envelope(choices []any) map[string]any {
	model := a.step.ResponseModel
	if model == "" {
		model = a.completion.Model
	}
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-sim%d", a.id), "object": "chat.completion.chunk", "created": 1,
		"model": model, "choices": choices,
	}
}

// write sends bytes at once: a chunk that waits in a buffer would be no chunk.
func (a *answer) write(data []byte) error {
	if _, err := a.w.Write(data); err != nil {
		return err
	}
	return a.flush()
}

func sse(event map[string]any) []byte {
	return append(append([]byte("data: "), compactJSON(event)...), "\n\n"...)
}

// compactJSON renders a value that came from JSON or was built here, and keeps
// "<", ">" and "&" as real services send them.
func compactJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Steps from Go were tried at Start, the others come from JSON.
		panic(fmt.Sprintf("scriptedmodel: value has no JSON form: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
