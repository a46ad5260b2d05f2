package pijson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/lanes/pijson"
)

// This file holds what the tests share: lines as Pi prints them, long streams, and
// the way from a stream to a verdict.

// readAll returns all events of a stream.
func readAll(t testing.TB, r io.Reader, o pijson.ReaderOptions) ([]pijson.Event, pijson.ReaderStats) {
	t.Helper()
	return readFrom(t, pijson.NewReader(r, o))
}

func readFrom(t testing.TB, reader *pijson.Reader) ([]pijson.Event, pijson.ReaderStats) {
	t.Helper()
	var events []pijson.Event
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return events, reader.Stats()
		}
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		events = append(events, e)
	}
}

// fold applies a whole stream to a new Fold.
func fold(t testing.TB, stream string, o pijson.FoldOptions) (*pijson.Fold, pijson.ReaderStats) {
	t.Helper()
	events, stats := readAll(t, strings.NewReader(stream), pijson.ReaderOptions{})
	f := pijson.NewFold(o)
	for _, e := range events {
		f.Apply(e)
	}
	return f, stats
}

// judge gives the verdict on a child that printed the lines and ended so.
func judge(t testing.TB, end pijson.End, lines ...string) pijson.Verdict {
	t.Helper()
	f, stats := fold(t, stream(lines...), pijson.FoldOptions{AllowedTools: readOnlyTools})
	end.Stats = stats
	return f.Verdict(end)
}

var readOnlyTools = []string{"read", "grep", "find", "ls"}

func stream(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const (
	session    = `{"type":"session","version":3,"id":"01a22a0c-1294-76d0-aebe-3d1195a8b136","timestamp":"2026-11-30T01:22:43.989Z","cwd":"/home/dev/project"}`
	agentStart = `{"type":"agent_start"}`
	turnStart  = `{"type":"turn_start"}`
	settled    = `{"type":"agent_settled","aborted":false}`
	zeroUsage  = `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	someUsage  = `{"input":100,"output":10,"cacheRead":5,"cacheWrite":1,"totalTokens":116,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.5}}`
)

func agentEnd(willRetry bool) string {
	return fmt.Sprintf(`{"type":"agent_end","messages":[{"role":"user","content":[]}],"willRetry":%t}`, willRetry)
}

// answer is the message_end of an assistant that says text and stops.
func answer(text string) string { return assistant(text, "stop", someUsage) }

func assistant(text, stopReason, usage string) string {
	return fmt.Sprintf(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":%s}],"api":"openai-completions","provider":"sim","model":"plain","usage":%s,"stopReason":%q,"timestamp":1}}`,
		quote(text), usage, stopReason)
}

func toolUse(name string) string {
	return fmt.Sprintf(`{"type":"message_end","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":%q,"arguments":{"path":"a"}}],"provider":"sim","model":"plain","usage":%s,"stopReason":"toolUse","timestamp":1}}`,
		name, someUsage)
}

func providerError(message string) string {
	return fmt.Sprintf(`{"type":"message_end","message":{"role":"assistant","content":[],"provider":"sim","model":"plain","usage":%s,"stopReason":"error","errorMessage":%s,"timestamp":1}}`,
		zeroUsage, quote(message))
}

func retryStart(attempt int, message string) string {
	return fmt.Sprintf(`{"type":"auto_retry_start","attempt":%d,"maxAttempts":3,"delayMs":2000,"errorMessage":%s}`, attempt, quote(message))
}

func delta(text string) string {
	return fmt.Sprintf(`{"type":"message_update","usage":%s,"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":%s}}`, zeroUsage, quote(text))
}

func oldDelta(text, sofar string) string {
	p := fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}],"api":"openai-completions","provider":"sim","model":"plain","usage":%s,"stopReason":"stop","timestamp":1}`, quote(sofar), zeroUsage)
	return fmt.Sprintf(`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":%s,"partial":%s},"message":%s}`, quote(text), p, p)
}

const assistantStart = `{"type":"message_start","message":{"role":"assistant","content":[],"provider":"sim","model":"plain","usage":` + zeroUsage + `,"stopReason":"pending","timestamp":1}}`

// longStream is a lane of one answer in n pieces of 20 bytes, in the dialect of the
// newer or of the older Pi.
func longStream(n int, old bool) string {
	const piece = "The quick brown fox\n"
	var b strings.Builder
	text := ""
	for _, l := range []string{session, agentStart, turnStart, assistantStart} {
		b.WriteString(l + "\n")
	}
	for range n {
		text += piece
		line := delta(piece)
		if old {
			line = oldDelta(piece, text)
		}
		b.WriteString(line + "\n")
	}
	b.WriteString(answer(text) + "\n" + agentEnd(false) + "\n")
	return b.String()
}

// traces returns the recorded streams of real Pi by name.
func traces(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(names) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	all := make(map[string]string, len(names))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".jsonl")] = string(data)
	}
	return all
}
