package pijson_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/lanes/pijson"
)

// lineGen draws a line of a stream, sensible or not.
var lineGen = rapid.SampledFrom([]string{
	session, agentStart, turnStart, assistantStart, settled, answer("LGTM"), answer(""), answer(" "), toolUse("read"), toolUse("bash"),
	assistant("cut", "length", someUsage), assistant("x", "aborted", zeroUsage), assistant("x", "", "null"), assistant("zero", "stop", zeroUsage),
	assistant("odd", "stop", `{"input":-1,"output":1e400,"cost":{"total":1e308}}`), providerError("429: slow"), providerError(""),
	retryStart(1, "429: slow"), retryStart(1, ""), `{"type":"auto_retry_end","success":true}`, `{"type":"auto_retry_end","success":false}`,
	agentEnd(true), agentEnd(false), delta("a"), oldDelta("a", "ab"),
	`{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{}}`,
	`{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"Tool bash not found"}]},"isError":true}`,
	`{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{},"isError":false}`,
	`{"type":"message_end","message":{"role":"toolResult","content":[],"usage":` + someUsage + `}}`,
	`{"type":"message_end","message":null}`, `{"type":"message_end"}`, `{"type":"agent_settled","aborted":true}`,
	`{"type":"compaction_start"}`, `{"type":"compaction_end","willRetry":true}`, `{"type":"novelty"}`, "null", "noise", "", "{", "{}",
})

var endGen = rapid.Custom(func(t *rapid.T) pijson.End {
	return pijson.End{
		Code:   rapid.SampledFrom([]int{0, 1, 3, 127, 137, 143, -1}).Draw(t, "code"),
		Signal: rapid.SampledFrom([]string{"", "", "SIGKILL", "SIGTERM"}).Draw(t, "signal"),
		Cause: rapid.SampledFrom([]pijson.Cause{
			pijson.CauseNone, pijson.CauseNone, pijson.CauseCancelled, pijson.CauseTimedOut, pijson.CauseNoFirstEvent, pijson.CauseSilent,
			pijson.CauseBudget, pijson.CauseDrained, pijson.CauseStartFailed, "novelty",
		}).Draw(t, "cause"),
		Stderr: rapid.SampledFrom([]string{"", "boom", "No API key found", "Lock file is already being held"}).Draw(t, "stderr"),
		Err:    rapid.SampledFrom([]error{nil, nil, errors.New("broken")}).Draw(t, "err"),
	}
})

// Whatever a child prints and however it ends: one verdict, and one that holds
// together.
func TestEveryChildEndsInExactlyOneVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOf(lineGen).Draw(rt, "lines")
		end := endGen.Draw(rt, "end")
		f, _ := fold(t, stream(lines...), pijson.FoldOptions{AllowedTools: readOnlyTools})
		if problem := inconsistency(f, end); problem != "" {
			rt.Fatalf("%s: %+v", problem, f.Verdict(end))
		}
	})
}

// inconsistency says what is wrong with the verdict on f, if anything is.
func inconsistency(f *pijson.Fold, end pijson.End) string {
	v := f.Verdict(end)
	complete := v.Status == pijson.StatusComplete
	switch {
	case !complete && v.Status != pijson.StatusFailed && v.Status != pijson.StatusCancelled:
		return "no terminal status"
	case complete != (v.Class == pijson.ClassNone):
		return "a complete lane has no class, any other has one"
	case !complete && !slices.Contains(pijson.Classes(), v.Class):
		return "a class that is not in the table"
	case complete && (v.Output == "" || v.Output != strings.TrimSpace(v.Output) || v.Partial != "" || v.Message != ""):
		return "a complete lane has an answer and nothing else"
	case !complete && (v.Output != "" || v.Message == ""):
		return "a lane that is not complete has no answer but a sentence"
	case complete && !f.Answered():
		return "complete without an answer"
	case complete && f.Trespass() != "":
		return "complete although a foreign tool ran"
	case complete && v.StopReason != "stop" && v.StopReason != "":
		return "complete although the message did not stop by itself"
	case (v.Status == pijson.StatusCancelled) != (v.Class == pijson.ClassCancelled):
		return "cancelled is both a status and its class"
	case v.Status == pijson.StatusCancelled && end.Cause != pijson.CauseCancelled:
		return "cancelled by nobody"
	case end.Cause == pijson.CauseCancelled && v.Status == pijson.StatusFailed && !f.Answered():
		return "a cancelled lane without an answer did not fail by itself"
	case v.Retryable && complete, v.RetryAfter < 0, v.RetryAfter > 0 && !v.Retryable:
		return "retry advice that makes no sense"
	case v.Usage.Input < 0 || v.Usage.Output < 0 || v.Usage.CacheRead < 0 || v.Usage.CacheWrite < 0:
		return "negative usage"
	case v.Usage.Cost < 0 || math.IsNaN(v.Usage.Cost) || math.IsInf(v.Usage.Cost, 0):
		return "a cost that is no number"
	case !cmp.Equal(v, f.Verdict(end)):
		return "two verdicts on the same end"
	}
	return ""
}

// Usage and turns only grow, and the exit status alone changes no success.
func TestMonotonicFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOf(lineGen).Draw(rt, "lines")
		events, _ := readAll(t, strings.NewReader(stream(lines...)), pijson.ReaderOptions{})
		f := pijson.NewFold(pijson.FoldOptions{})
		before := f.Progress()
		for _, e := range events {
			f.Apply(e)
			now := f.Progress()
			if now.Turns < before.Turns || now.Usage.Input < before.Usage.Input || now.Usage.Cost < before.Usage.Cost || now.Phase == "" {
				rt.Fatalf("%s: %+v after %+v", e.Kind, now, before)
			}
			before = now
		}
		clean := f.Verdict(pijson.End{})
		if end := endGen.Draw(rt, "end"); clean.Status == pijson.StatusComplete && f.Verdict(end).Output != clean.Output {
			rt.Fatalf("%+v lost the answer of %+v", end, clean)
		}
	})
}
