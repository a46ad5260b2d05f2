package lanestest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/lanes/pijson"
)

// The lines that pi 1.6.0 prints, in the order of its traces.

// Opening begins a run: what comes before the first assistant message.
func Opening() []string {
	return []string{
		`{"type":"session","version":3,"id":"01a22a07-3539-7470-9215-968823c00d22","timestamp":"2026-11-30T01:17:25.178Z","cwd":"/home/dev/project"}`,
		`{"type":"agent_start"}`,
		`{"type":"turn_start"}`,
		`{"type":"message_start","message":{"role":"system","content":"(left out)","timestamp":1796001445268}}`,
		`{"type":"message_end","message":{"role":"system","content":"(left out)","timestamp":1796001445268}}`,
		`{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"Task"}],"timestamp":1796001445267}}`,
		`{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"Task"}],"timestamp":1796001445267}}`,
	}
}

// Cost is the usage of every message that the functions below print.
var Cost = pijson.Usage{Input: 487, Output: 5, CacheRead: 11, CacheWrite: 3, Cost: 0.25}

// costJSON is Cost as pi prints it.
const costJSON = `{"input":487,"output":5,"cacheRead":11,"cacheWrite":3,"totalTokens":506,"cost":{"input":0.1,"output":0.15,"cacheRead":0,"cacheWrite":0,"total":0.25}}`

// Says is an assistant message with a text.
func Says(text string) []string {
	return append(Streams(text), message(fmt.Sprintf(`"content":[{"type":"text","text":%s}]`, quote(text)), "stop", ""))
}

// Streams is the beginning of an assistant message whose end does not come.
func Streams(text string) []string {
	update := func(event string) string {
		return `{"type":"message_update","usage":` + costJSON + `,"assistantMessageEvent":` + event + `}`
	}
	return []string{
		`{"type":"message_start","message":{"role":"assistant","content":[],"api":"openai-completions","provider":"sim","model":"plain","stopReason":"pending","timestamp":1796001445287}}`,
		update(`{"type":"text_start","contentIndex":0}`),
		update(`{"type":"text_delta","contentIndex":0,"delta":` + quote(text) + `}`),
	}
}

// Uses is an assistant message that calls a tool, and the call.
func Uses(tool string) []string {
	return []string{
		message(fmt.Sprintf(`"content":[{"type":"toolCall","id":"c1","name":%q,"arguments":{}}]`, tool), "toolUse", ""),
		fmt.Sprintf(`{"type":"tool_execution_start","toolCallId":"c1","toolName":%q,"args":{}}`, tool),
		fmt.Sprintf(`{"type":"tool_execution_end","toolCallId":"c1","toolName":%q,"result":{"content":[{"type":"text","text":"ok"}]},"isError":false}`, tool),
		`{"type":"message_end","message":{"role":"toolResult","toolCallId":"c1","content":[{"type":"text","text":"ok"}],"isError":false}}`,
	}
}

// Fails is an assistant message that ends with a provider's error.
func Fails(reason string) []string { return []string{message(`"content":[]`, "error", reason)} }

// Closing ends a run.
func Closing() []string {
	return []string{`{"type":"agent_end","messages":[],"willRetry":false}`, `{"type":"agent_settled","aborted":false}`}
}

// Answer is a whole run that answers with text.
func Answer(text string) []string { return Join(Opening(), Says(text), Closing()) }

// GivesUp is a whole run that fails, after pi has tried again, with a provider's error.
func GivesUp(reason string) []string {
	return Join(Opening(), Uses("read"), Fails(reason), []string{
		`{"type":"agent_end","messages":[],"willRetry":true}`,
		`{"type":"auto_retry_start","attempt":1,"maxAttempts":1,"delayMs":200,"errorMessage":` + quote(reason) + `}`,
	}, Fails(reason), []string{
		`{"type":"agent_end","messages":[],"willRetry":false}`,
		`{"type":"auto_retry_end","success":false,"attempt":1,"finalError":` + quote(reason) + `}`,
		`{"type":"agent_settled","aborted":false}`,
	})
}

// Join puts parts of a run together.
func Join(parts ...[]string) []string {
	var lines []string
	for _, part := range parts {
		lines = append(lines, part...)
	}
	return lines
}

func message(content, stop, reason string) string {
	failure := ""
	if reason != "" {
		failure = `,"errorMessage":` + quote(reason)
	}
	return `{"type":"message_end","message":{"role":"assistant",` + content +
		`,"api":"openai-completions","provider":"sim","model":"plain","usage":` + costJSON +
		`,"stopReason":"` + stop + `","timestamp":1796001445287` + failure + `,"rawStopReason":"` + stop + `"}}`
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Trace returns the lines of a recorded run, such as "pi-1.6.0-err401".
func Trace(t testing.TB, name string) []string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the root of the module is not found")
		}
		dir = filepath.Dir(dir)
	}
	data, err := os.ReadFile(filepath.Join(dir, "lanes/pijson/testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(data), "\n"), "\n")
}
