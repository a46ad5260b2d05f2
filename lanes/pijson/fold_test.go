package pijson_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes/pijson"
)

func TestProgressFollowsTheStream(t *testing.T) {
	t.Parallel()
	f := pijson.NewFold(pijson.FoldOptions{})
	for _, step := range []struct {
		line  string
		phase string
		check func(pijson.Progress) bool
	}{
		{session, "starting", nil},
		{agentStart, "waiting", nil},
		{`{"type":"message_update","assistantMessageEvent":{"type":"thinking_delta","contentIndex":0,"delta":"hm"}}`, "thinking", nil},
		{delta("I look"), "responding", nil},
		{toolUse("read"), "waiting", func(p pijson.Progress) bool { return p.Turns == 1 && p.Model == "plain" && p.Usage.Output == 10 }},
		{`{"type":"tool_execution_start","toolCallId":"c1","toolName":"read","args":{}}`, "tool: read", func(p pijson.Progress) bool { return p.Tool == "read" }},
		{`{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{},"isError":false}`, "result: read", func(p pijson.Progress) bool { return p.Tool == "" }},
		{turnStart, "result: read", nil}, // until the model goes on
		{providerError("429 slow"), "waiting", func(p pijson.Progress) bool { return p.LastError == "429 slow" && p.Turns == 2 }},
		{agentEnd(true), "waiting", nil},
		{retryStart(2, "429 slow"), "retrying", func(p pijson.Progress) bool { return p.RetryAttempt == 2 && p.RetryMax == 3 }},
		{agentStart, "waiting", nil},
		{delta("It"), "responding", nil},
		{answer("It holds."), "exiting", func(p pijson.Progress) bool { return p.LastError == "" && p.RetryAttempt == 0 && p.Turns == 3 }},
		{agentEnd(false), "exiting", nil},
		{`{"type":"compaction_start","reason":"threshold"}`, "compacting", nil},
		{`{"type":"compaction_end","reason":"threshold","result":{"usage":` + someUsage + `},"aborted":false,"willRetry":false}`, "exiting",
			func(p pijson.Progress) bool { return p.Usage.Output == 30 && math.Abs(p.Usage.Cost-1.5) < 1e-9 }},
		{settled, "exiting", nil},
	} {
		events, _ := readAll(t, strings.NewReader(step.line), pijson.ReaderOptions{})
		f.Apply(events[0])
		p := f.Progress()
		if p.Phase != step.phase || (step.check != nil && !step.check(p)) {
			t.Errorf("after %s: %+v, want phase %q", step.line, p, step.phase)
		}
	}
}

func TestAnsweredIsTakenBackWhenTheStreamGoesOn(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a turn":            turnStart,
		"an agent run":      agentStart,
		"a message":         assistantStart,
		"a delta":           delta("more"),
		"a retry":           retryStart(1, "x"),
		"an announcement":   agentEnd(true),
		"a compaction":      `{"type":"compaction_end","willRetry":true}`,
		"a tool":            `{"type":"tool_execution_start","toolCallId":"c","toolName":"read","args":{}}`,
		"a failed attempt":  providerError("500"),
		"an empty message":  answer(""),
		"a tool call":       toolUse("read"),
		"a cut-off message": assistant("x", "length", someUsage),
	} {
		f, _ := fold(t, stream(answer("first"), line), pijson.FoldOptions{})
		if f.Answered() {
			t.Errorf("%s after the answer left Answered true", name)
		}
		if v := f.Verdict(pijson.End{}); v.Status != pijson.StatusFailed || v.Output != "" || v.Partial == "" {
			t.Errorf("%s: %+v", name, v)
		}
		f, _ = fold(t, stream(answer("first"), line, answer("second")), pijson.FoldOptions{})
		if v := f.Verdict(pijson.End{}); v.Status != pijson.StatusComplete || v.Output != "second" {
			t.Errorf("%s and another answer: %+v", name, v)
		}
	}
	for name, line := range map[string]string{
		"end of turn":       `{"type":"turn_end","message":{},"toolResults":[]}`,
		"end of run":        agentEnd(false),
		"settled":           settled,
		"compaction":        `{"type":"compaction_start","reason":"threshold"}`,
		"its end":           `{"type":"compaction_end","aborted":true,"willRetry":false}`,
		"retry succeeded":   `{"type":"auto_retry_end","success":true,"attempt":1}`,
		"unknown event":     `{"type":"queue_update","steering":[],"followUp":[]}`,
		"extension message": `{"type":"message_end","message":{"role":"custom","content":"x"}}`,
	} {
		f, _ := fold(t, stream(answer("first"), line), pijson.FoldOptions{})
		if !f.Answered() {
			t.Errorf("%s after the answer took it back", name)
		}
	}
}

func TestWhyWeEndedTheChildAndWhatItHadSaid(t *testing.T) {
	t.Parallel()
	working := stream(session, turnStart, delta("half"))
	answered := stream(session, turnStart, answer("whole"), agentEnd(false))
	for cause, class := range map[pijson.Cause]pijson.Class{
		pijson.CauseCancelled:    pijson.ClassCancelled,
		pijson.CauseTimedOut:     pijson.ClassTimedOut,
		pijson.CauseNoFirstEvent: pijson.ClassNoFirstEvent,
		pijson.CauseSilent:       pijson.ClassSilent,
		pijson.CauseBudget:       pijson.ClassBudget,
		pijson.CauseStartFailed:  pijson.ClassStartFailure,
		pijson.CauseDrained:      pijson.ClassEmpty,
	} {
		end := pijson.End{Cause: cause, Signal: "SIGKILL"}
		f, _ := fold(t, working, pijson.FoldOptions{})
		v := f.Verdict(end)
		status := pijson.StatusFailed
		if cause == pijson.CauseCancelled {
			status = pijson.StatusCancelled
		}
		expect(t, v, status, class)
		if v.Partial != "half" || v.Output != "" || v.Cause != cause || !strings.HasPrefix(v.Message, class.Sentence()) {
			t.Errorf("%s: %+v", cause, v)
		}
		f, _ = fold(t, answered, pijson.FoldOptions{})
		v = f.Verdict(end)
		expect(t, v, pijson.StatusComplete, pijson.ClassNone)
		if v.Output != "whole" || v.Partial != "" || v.Message != "" || v.Notes[0] != "did not exit by itself" {
			t.Errorf("%s after the answer: %+v", cause, v)
		}
	}
}

func TestHowAChildEndsByItself(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lines []string
		end   pijson.End
		class pijson.Class
		words string
	}{
		"could not start":      {nil, pijson.End{Cause: pijson.CauseStartFailed, Err: errors.New("exec: pi: not found")}, pijson.ClassStartFailure, "exec: pi: not found"},
		"status at start":      {nil, pijson.End{Code: 3, Stderr: "boom"}, pijson.ClassStartFailure, "exit status 3 before the answer was complete: boom"},
		"not found":            {nil, pijson.End{Code: 127, Stderr: "sh: pi: command not found"}, pijson.ClassStartFailure, "command not found"},
		"unknown provider":     {nil, pijson.End{Code: 1, Stderr: `Error: Unknown provider "x"`}, pijson.ClassModelUnknown, `"x"`},
		"status in the middle": {[]string{session, toolUse("read")}, pijson.End{Code: 1, Stderr: "TypeError: x"}, pijson.ClassUnknown, "TypeError: x"},
		"missing file later":   {[]string{session, toolUse("read")}, pijson.End{Code: 1, Stderr: "no such file or directory"}, pijson.ClassUnknown, "no such"},
		"status zero":          {[]string{session, toolUse("read")}, pijson.End{}, pijson.ClassProtocol, "in the middle"},
		"hung up":              {[]string{session, turnStart, delta("x")}, pijson.End{Code: 129}, pijson.ClassKilled, "SIGHUP"},
		"killed with no text":  {[]string{session, answer("")}, pijson.End{Signal: "SIGKILL"}, pijson.ClassKilled, "SIGKILL"},
		"killed in a retry":    {[]string{session, providerError("429"), agentEnd(true)}, pijson.End{Signal: "SIGKILL"}, pijson.ClassKilled, "SIGKILL, after the provider's error: 429"},
		"crashed after error":  {[]string{session, providerError("401")}, pijson.End{Signal: "SIGSEGV"}, pijson.ClassAuth, "401"},
		"aborted request":      {[]string{session, assistant("x", "aborted", someUsage)}, pijson.End{}, pijson.ClassUnknown, "aborted"},
		"aborted run":          {[]string{session, turnStart, `{"type":"agent_settled","aborted":true}`}, pijson.End{}, pijson.ClassUnknown, "the run was aborted"},
		"error without reason": {[]string{session, providerError("")}, pijson.End{}, pijson.ClassUnknown, "no reason"},
		"reading failed":       {[]string{session, turnStart}, pijson.End{Err: errors.New("read: input/output error")}, pijson.ClassInternal, "input/output"},
		"died in attempt two":  {[]string{session, providerError("503"), agentEnd(true), turnStart, delta("x")}, pijson.End{Code: 1}, pijson.ClassServer, "503"},
		"stop with tool calls": {[]string{session, strings.Replace(toolUse("read"), "toolUse", "stop", 1)}, pijson.End{}, pijson.ClassProtocol, "in the middle"},
	} {
		v := judge(t, tc.end, tc.lines...)
		if v.Status != pijson.StatusFailed || v.Class != tc.class || !strings.Contains(v.Message, tc.words) {
			t.Errorf("%s: %s (%s): %s; want %s and %q", name, v.Status, v.Class, v.Message, tc.class, tc.words)
		}
	}
}

// An older Pi reports a broken stream as a whole answer with no usage. A provider
// that never reports usage must not fail for it where the two can be told apart.
func TestAnAnswerWithoutUsageFromAnOlderPi(t *testing.T) {
	t.Parallel()
	zeroTool := strings.Replace(toolUse("read"), someUsage, zeroUsage, 1)
	final := assistant("text", "stop", zeroUsage)
	for name, tc := range map[string]struct {
		lines []string
		class pijson.Class
	}{
		"only message, older pi":           {[]string{oldDelta("text", "text"), final}, pijson.ClassTruncated},
		"others had usage, older pi":       {[]string{oldDelta("x", "x"), toolUse("read"), final}, pijson.ClassTruncated},
		"some had, some had not, older pi": {[]string{oldDelta("x", "x"), toolUse("read"), zeroTool, final}, pijson.ClassTruncated},
		"none has usage, older pi":         {[]string{oldDelta("x", "x"), zeroTool, final}, pijson.ClassNone},
		"only message, newer pi":           {[]string{delta("text"), final, settled}, pijson.ClassNone},
		"only message, pi of unknown age":  {[]string{final}, pijson.ClassNone},
		"no usage key at all, older pi":    {[]string{oldDelta("x", "x"), strings.Replace(final, `"usage":`+zeroUsage+`,`, "", 1)}, pijson.ClassNone},
		"usage with an error first, older": {[]string{oldDelta("x", "x"), providerError("429"), final}, pijson.ClassTruncated},
	} {
		v := judge(t, pijson.End{}, tc.lines...)
		if v.Class != tc.class || v.Retryable != (tc.class == pijson.ClassTruncated) {
			t.Errorf("%s: %+v", name, v)
		}
		if tc.class == pijson.ClassTruncated && (v.Partial != "text" || v.Output != "") {
			t.Errorf("%s: partial %q, output %q", name, v.Partial, v.Output)
		}
	}
}

func TestTheAnswerIsTheTextBlocksJoinedAndTrimmed(t *testing.T) {
	t.Parallel()
	v := judge(t, pijson.End{}, `{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"\n one"},{"type":"image","data":"x"},{"type":"text","text":"two \n"}],"stopReason":"stop"}}`)
	if v.Output != "one\ntwo" {
		t.Errorf("output %q", v.Output)
	}
}

func TestAMessageWithoutAStopReasonCountsAsEnded(t *testing.T) {
	t.Parallel()
	const line = `{"type":"message_end","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"fine"}]}}`
	v := judge(t, pijson.End{}, line)
	expect(t, v, pijson.StatusComplete, pijson.ClassNone)
	if v.Output != "fine" || v.Model != "m" || v.Turns != 1 {
		t.Errorf("%+v", v)
	}
	v = judge(t, pijson.End{}, strings.Replace(line, `"model":"m"`, `"stopReason":"novelty"`, 1))
	expect(t, v, pijson.StatusFailed, pijson.ClassProtocol)
}

func TestThePartialTextIsWhatWasSeenLast(t *testing.T) {
	t.Parallel()
	block := func(kind string, index, key, text string) string {
		return `{"type":"message_update","assistantMessageEvent":{"type":"text_` + kind + `","contentIndex":` + index + `,"` + key + `":` + quote(text) + `}}`
	}
	for name, tc := range map[string]struct {
		lines []string
		want  string
	}{
		"nothing":                     {[]string{session}, ""},
		"deltas":                      {[]string{delta("a"), delta("b")}, "ab"},
		"two blocks":                  {[]string{block("delta", "0", "delta", "a"), block("end", "0", "content", "a"), block("start", "2", "x", ""), block("delta", "2", "delta", "b")}, "a\nb"},
		"a block without deltas":      {[]string{block("start", "0", "x", ""), block("end", "0", "content", "all")}, "all"},
		"an earlier message":          {[]string{delta("a"), assistant("I will look.", "toolUse", someUsage), turnStart}, "I will look."},
		"a newer message":             {[]string{assistant("old", "toolUse", someUsage), assistantStart, delta("new")}, "new"},
		"a failed message":            {[]string{delta("aaa"), assistant("aaab", "error", zeroUsage)}, "aaab"},
		"a failed message that ended": {[]string{assistant("aaab", "error", zeroUsage), assistantStart, delta("x"), providerError("y")}, "aaab"},
		"long":                        {[]string{delta(strings.Repeat("é", 100<<10)), delta(strings.Repeat("é", 100<<10)), delta("end")}, strings.Repeat("é", 32<<10)},
	} {
		if v := judge(t, pijson.End{Cause: pijson.CauseCancelled}, tc.lines...); v.Partial != tc.want {
			t.Errorf("%s: %d bytes %.40q, want %d bytes %.40q", name, len(v.Partial), v.Partial, len(tc.want), tc.want)
		}
	}
}

func TestLongProviderTextIsCut(t *testing.T) {
	t.Parallel()
	v := judge(t, pijson.End{}, providerError("500 "+strings.Repeat("é", 5000)))
	expect(t, v, pijson.StatusFailed, pijson.ClassServer)
	if len(v.Detail) > 2<<10 || !strings.HasSuffix(v.Message, "é") {
		t.Errorf("detail of %d bytes", len(v.Detail))
	}
}

func TestUsageSumsSaturate(t *testing.T) {
	t.Parallel()
	big := pijson.Usage{Input: math.MaxInt64 - 1, CacheRead: 5, Cost: math.MaxFloat64}
	sum := big.Plus(big)
	if sum.Input != math.MaxInt64 || sum.CacheRead != 10 || sum.Cost != math.MaxFloat64 || sum.Tokens() != math.MaxInt64 {
		t.Errorf("sum %+v, %d tokens", sum, sum.Tokens())
	}
}

// Usage is written to the ledger and read back by us, and read from Pi's messages.
func TestUsageSurvivesJSON(t *testing.T) {
	t.Parallel()
	want := pijson.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.25}
	data, err := json.Marshal(want)
	if err != nil || string(data) != `{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cost":0.25}` {
		t.Fatalf("%s, %v", data, err)
	}
	got := pijson.Usage{Input: 99}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
