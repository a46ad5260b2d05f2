package pijson_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pilothouse/lanes/pijson"
)

// Faults that were seen in the field, by their number in the catalogue of faults.

func TestFaultA1AnswerCompleteButTheChildDoesNotExit(t *testing.T) {
	t.Parallel()
	f, _ := fold(t, stream(session, agentStart, turnStart, answer("LGTM"), agentEnd(false), settled), pijson.FoldOptions{})
	if !f.Answered() || !f.Settled() {
		t.Fatalf("Answered = %t, Settled = %t", f.Answered(), f.Settled())
	}
	v := f.Verdict(pijson.End{Cause: pijson.CauseDrained, Signal: "SIGKILL"})
	expect(t, v, pijson.StatusComplete, pijson.ClassNone)
	if v.Output != "LGTM" || !slices.Equal(v.Notes, []string{"did not exit by itself"}) {
		t.Errorf("output %q, notes %q", v.Output, v.Notes)
	}
}

func TestFaultA3AnswerWithoutAToolCallAndNothingMore(t *testing.T) {
	t.Parallel()
	f, _ := fold(t, stream(session, agentStart, turnStart, answer("done")), pijson.FoldOptions{})
	if !f.Answered() {
		t.Fatal("a message that stops without a tool call must count as the answer")
	}
	expect(t, f.Verdict(pijson.End{Cause: pijson.CauseDrained, Code: 143}), pijson.StatusComplete, pijson.ClassNone)
}

func TestFaultA8StandardOutputClosedWithoutAFinalEvent(t *testing.T) {
	t.Parallel()
	end := pijson.End{Cause: pijson.CauseDrained, Signal: "SIGTERM"}
	expect(t, judge(t, end, session, agentStart, turnStart), pijson.StatusFailed, pijson.ClassEmpty)
	v := judge(t, end, session, turnStart, toolUse("read"))
	expect(t, v, pijson.StatusFailed, pijson.ClassProtocol)
}

func TestFaultA9BrokenPipeOnStandardErrorAfterTheAnswer(t *testing.T) {
	t.Parallel()
	end := pijson.End{Code: 1, Stderr: "Error: write EPIPE\n    at afterWriteDispatched (node:internal/stream_base_commons:161:15)"}
	v := judge(t, end, session, answer("done"), settled)
	expect(t, v, pijson.StatusComplete, pijson.ClassNone)
	if !slices.Equal(v.Notes, []string{"exit status 1 after the answer"}) {
		t.Errorf("notes %q", v.Notes)
	}
}

func TestFaultA11KilledAfterToolUse(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]pijson.End{
		"by signal": {Signal: "SIGKILL"},
		"by status": {Code: 137},
	} {
		v := judge(t, end, session, agentStart, turnStart, toolUse("read"))
		expect(t, v, pijson.StatusFailed, pijson.ClassKilled)
		if !v.Retryable || !strings.Contains(v.Message, "SIGKILL") || v.Output != "" {
			t.Errorf("%s: verdict %+v", name, v)
		}
	}
}

func TestFaultA12ModelErrorWithExitStatusZero(t *testing.T) {
	t.Parallel()
	v := judge(t, pijson.End{}, session, providerError("401 Incorrect API key provided"), agentEnd(false), settled)
	expect(t, v, pijson.StatusFailed, pijson.ClassAuth)
	if v.Detail != "401 Incorrect API key provided" || v.BeforeFirstEvent || v.Retryable {
		t.Errorf("verdict %+v", v)
	}
}

func TestFaultA13NoAnswerIsNeverAnEmptySuccess(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"no output at all":     {},
		"no assistant message": {session, agentStart, turnStart, agentEnd(false), settled},
		"empty content":        {session, `{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"stop"}}`, settled},
		"only white space":     {session, answer(" \n\t"), settled},
		"only thinking": {session,
			`{"type":"message_end","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}],"stopReason":"stop"}}`},
	} {
		v := judge(t, pijson.End{}, lines...)
		if v.Status != pijson.StatusFailed || v.Class != pijson.ClassEmpty || v.Retryable {
			t.Errorf("%s: %+v", name, v)
		}
	}
	for _, code := range []int{0, 1} {
		v := judge(t, pijson.End{Code: code}, session, providerError("400 This model's maximum context length is 8192 tokens"))
		expect(t, v, pijson.StatusFailed, pijson.ClassContextOverflow)
	}
}

func TestFaultA15RetriesExhaustedWithExitStatusZero(t *testing.T) {
	t.Parallel()
	const limit = "429 Too Many Requests, retry after 20 s"
	lines := []string{session, agentStart, turnStart, toolUse("read"),
		retryStart(1, limit), retryStart(2, limit), retryStart(3, limit),
		`{"type":"auto_retry_end","success":false,"attempt":3,"finalError":"429 Too Many Requests, retry after 20 s"}`}
	v := judge(t, pijson.End{}, lines...)
	expect(t, v, pijson.StatusFailed, pijson.ClassRateLimit)
	if !v.Retryable || v.RetryAfter != 20*time.Second || v.Usage.Cost != 0.5 {
		t.Errorf("verdict %+v", v)
	}
	// The same, when Pi does not repeat the reason and an earlier message looked final.
	lines[3] = answer("No changes needed.")
	lines[7] = `{"type":"auto_retry_end","success":false,"attempt":3}`
	expect(t, judge(t, pijson.End{}, lines...), pijson.StatusFailed, pijson.ClassRateLimit)
	lines[4], lines[5], lines[6] = "", "", ""
	expect(t, judge(t, pijson.End{}, lines...), pijson.StatusFailed, pijson.ClassUnknown)
}

func TestFaultA16ErrorsWhileRetryingAreNotFinal(t *testing.T) {
	t.Parallel()
	first := []string{session, agentStart, turnStart, providerError("529 overloaded"), agentEnd(true), retryStart(1, "529 overloaded"), agentStart, turnStart}
	good := append(slices.Clone(first), answer("second try"), `{"type":"auto_retry_end","success":true,"attempt":1}`, agentEnd(false), settled)
	v := judge(t, pijson.End{}, good...)
	expect(t, v, pijson.StatusComplete, pijson.ClassNone)
	if v.Output != "second try" || v.Turns != 2 {
		t.Errorf("verdict %+v", v)
	}
	bad := append(slices.Clone(first), providerError("529 overloaded"), agentEnd(false),
		`{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"529 overloaded"}`, settled)
	v = judge(t, pijson.End{}, bad...)
	expect(t, v, pijson.StatusFailed, pijson.ClassOverloaded)
	if strings.Count(v.Message, "529 overloaded") != 1 {
		t.Errorf("the error must be told once: %q", v.Message)
	}
	// An announced attempt that never comes is no success either.
	v = judge(t, pijson.End{}, session, answer("too early"), agentEnd(true))
	expect(t, v, pijson.StatusFailed, pijson.ClassProtocol)
}

func TestFaultA17OurTimeOutKeepsTheProviderErrorAsTheClass(t *testing.T) {
	t.Parallel()
	v := judge(t, pijson.End{Cause: pijson.CauseTimedOut, Signal: "SIGTERM"},
		session, agentStart, turnStart, providerError("429: rate limit"), agentEnd(true), retryStart(1, "429: rate limit"))
	expect(t, v, pijson.StatusFailed, pijson.ClassRateLimit)
	if v.Cause != pijson.CauseTimedOut || !strings.Contains(v.Message, "ran out of time") || !strings.Contains(v.Message, "429: rate limit") {
		t.Errorf("verdict %+v", v)
	}
	v = judge(t, pijson.End{Cause: pijson.CauseTimedOut, Signal: "SIGTERM"}, session, turnStart, delta("half a sen"))
	expect(t, v, pijson.StatusFailed, pijson.ClassTimedOut)
	if v.Partial != "half a sen" {
		t.Errorf("partial %q", v.Partial)
	}
}

func TestFaultA18TurnsAreCountedForTheCap(t *testing.T) {
	t.Parallel()
	f := pijson.NewFold(pijson.FoldOptions{})
	events, _ := readAll(t, strings.NewReader(stream(turnStart, toolUse("done"))), pijson.ReaderOptions{})
	for range 10_000 {
		for _, e := range events {
			f.Apply(e)
		}
	}
	if p := f.Progress(); p.Turns != 10_000 || p.Usage.Input != 1_000_000 {
		t.Errorf("progress %+v", p)
	}
	expect(t, f.Verdict(pijson.End{Cause: pijson.CauseBudget}), pijson.StatusFailed, pijson.ClassBudget)
}

func TestFaultB24LongLinesDoNotEndTheStream(t *testing.T) {
	t.Parallel()
	for name, big := range map[string]string{
		"noise":          "x",
		"turn_end":       `{"type":"turn_end","message":{"x":"`,
		"tool result":    `{"type":"tool_execution_end","toolCallId":"c1","toolName":"read","result":{"content":[{"type":"text","text":"`,
		"user message":   `{"type":"message_end","message":{"role":"user","content":"`,
		"answer":         `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"`,
		"unknown event":  `{"type":"novelty","x":"`,
		"update":         `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"a","partial":{"x":"`,
		"unknown update": `{"type":"message_update","assistantMessageEvent":{"type":"novelty","x":"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := io.MultiReader(
				strings.NewReader(session+"\n"),
				strings.NewReader(big), &repeat{n: 3 << 20}, strings.NewReader("\n"),
				strings.NewReader(big), &repeat{n: 70 << 20}, strings.NewReader("\n"),
				strings.NewReader(answer("still read")+"\n"),
			)
			events, stats := readAll(t, r, pijson.ReaderOptions{MaxLine: 1 << 20})
			f := pijson.NewFold(pijson.FoldOptions{})
			for _, e := range events {
				f.Apply(e)
			}
			v := f.Verdict(pijson.End{Stats: stats})
			expect(t, v, pijson.StatusComplete, pijson.ClassNone)
			if v.Output != "still read" || stats.Lines != 4 {
				t.Errorf("output %q, stats %+v", v.Output, stats)
			}
			if lost := name == "answer" || name == "unknown update"; lost != (stats.TooLong == 2) {
				t.Errorf("stats %+v", stats)
			}
			if (name == "noise") != (stats.Noise == 2) {
				t.Errorf("stats %+v", stats)
			}
		})
	}
}

func TestFaultB24AnAnswerTooLongToReadIsNoSuccess(t *testing.T) {
	t.Parallel()
	text := stream(session, answer("short"), turnStart, delta("seen"), answer(strings.Repeat("x", 400<<10)), settled)
	events, stats := readAll(t, strings.NewReader(text), pijson.ReaderOptions{MaxLine: 100 << 10})
	f := pijson.NewFold(pijson.FoldOptions{})
	for _, e := range events {
		f.Apply(e)
	}
	v := f.Verdict(pijson.End{Stats: stats})
	expect(t, v, pijson.StatusFailed, pijson.ClassProtocol)
	if v.Partial != "seen" || !slices.Contains(v.Notes, "1 events were too long and were skipped") {
		t.Errorf("verdict %+v", v)
	}
}

func TestFaultB25LineSeparatorsInsideAStringAreText(t *testing.T) {
	t.Parallel()
	const text = "a\u2028b\u2029c\u0085d"
	line := `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"` + text + `"}],"stopReason":"stop"}}`
	if v := judge(t, pijson.End{}, session, line); v.Output != text {
		t.Errorf("output %q", v.Output)
	}
	d := `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"` + text + `"}}`
	events, _ := readAll(t, strings.NewReader(d), pijson.ReaderOptions{})
	if len(events) != 1 || events[0].Text != text {
		t.Errorf("events %+v", events)
	}
}

func TestFaultB28NoiseBetweenEventsIsTolerated(t *testing.T) {
	t.Parallel()
	noise := []string{
		"warning: foo", "null", "[]", `"x"`, `{"type":7}`, `{}`, `{"type":""}`, `{"type":"turn_start"`, "\xff\xfe", `{"type":`,
		"npm notice {}", "{", "}",
	}
	text := "\ufeff" + session + "\r\n" + strings.Join(noise, "\n") + "\n" + strings.Repeat("\n", 1<<20) +
		"\x1b[?25l\x1b]0;title\x07" + turnStart + "\x1b[0m\r\n" +
		"warning: no line feed" + delta("do") + "\n" +
		answer("done") // and no line feed at the end
	f, stats := fold(t, text, pijson.FoldOptions{})
	v := f.Verdict(pijson.End{Stats: stats})
	expect(t, v, pijson.StatusComplete, pijson.ClassNone)
	if v.Output != "done" || !slices.Equal(v.Notes, []string{"13 lines on standard output were no events"}) {
		t.Errorf("output %q, notes %q", v.Output, v.Notes)
	}
	want := pijson.ReaderStats{Bytes: int64(len(text)), Lines: 13 + 1<<20 + 4, Events: 4, Noise: 13}
	if stats != want {
		t.Errorf("stats %+v, want %+v", stats, want)
	}
}

func TestFaultB30ProviderErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]pijson.Class{
		"401 Incorrect API key provided": pijson.ClassAuth,
		"402 Insufficient Balance":       pijson.ClassBilling,
		"429":                            pijson.ClassRateLimit,
		"529 overloaded":                 pijson.ClassOverloaded,
		"prompt exceeds the model context length": pijson.ClassContextOverflow,
		"usage limit reached":                     pijson.ClassBilling,
	} {
		v := judge(t, pijson.End{}, session, providerError(text))
		expect(t, v, pijson.StatusFailed, want)
		if v.Detail != text {
			t.Errorf("the raw text must be kept: %q", v.Detail)
		}
	}
}

func TestFaultC34LockContentionAtStartIsNoAuthFailure(t *testing.T) {
	t.Parallel()
	v := judge(t, pijson.End{Code: 1, Stderr: "No API key found for sim: Lock file is already being held"})
	expect(t, v, pijson.StatusFailed, pijson.ClassStartContention)
	if !v.Retryable || !v.BeforeFirstEvent {
		t.Errorf("verdict %+v", v)
	}
	// Without a word about a lock it may still be one: the lane can tell by the burst.
	v = judge(t, pijson.End{Code: 1, Stderr: "No API key found for sim."})
	expect(t, v, pijson.StatusFailed, pijson.ClassAuth)
	if !v.BeforeFirstEvent {
		t.Error("BeforeFirstEvent must be set")
	}
}

func TestFaultC35SilenceAtStartIsStarting(t *testing.T) {
	t.Parallel()
	if p := pijson.NewFold(pijson.FoldOptions{}).Progress(); p.Phase != "starting" {
		t.Errorf("phase %q", p.Phase)
	}
	v := judge(t, pijson.End{Cause: pijson.CauseNoFirstEvent, Signal: "SIGKILL"})
	expect(t, v, pijson.StatusFailed, pijson.ClassNoFirstEvent)
}

func TestFaultC36TheLockMessageReachesTheUser(t *testing.T) {
	t.Parallel()
	const stderr = "Error: Lock file is already being held: /agent/auth.json.lock"
	for _, cause := range []pijson.Cause{pijson.CauseNone, pijson.CauseNoFirstEvent} {
		v := judge(t, pijson.End{Code: 1, Cause: cause, Stderr: stderr})
		expect(t, v, pijson.StatusFailed, pijson.ClassStartContention)
		if !strings.Contains(v.Message, stderr) {
			t.Errorf("message %q", v.Message)
		}
	}
}

func TestFaultG103AToolThatWasNotAllowedFailsTheLane(t *testing.T) {
	t.Parallel()
	start := `{"type":"tool_execution_start","toolCallId":"c1","toolName":"bash","args":{"command":"rm -rf x"}}`
	end := func(result string, isError string) string {
		return `{"type":"tool_execution_end","toolCallId":"c1","toolName":"bash","result":{"content":[{"type":"text","text":"` + result + `"}]},"isError":` + isError + `}`
	}
	for name, tc := range map[string]struct {
		lines []string
		class pijson.Class
	}{
		"ran":                {[]string{start, end("ok", "false"), answer("done")}, pijson.ClassProtocol},
		"ran and failed":     {[]string{start, end("no such directory", "true"), answer("done")}, pijson.ClassProtocol},
		"never ended":        {[]string{start, answer("done")}, pijson.ClassProtocol},
		"no start was told":  {[]string{end("ok", "false"), answer("done")}, pijson.ClassProtocol},
		"pi has no such one": {[]string{start, end("Tool bash not found", "true"), answer("done")}, pijson.ClassNone},
	} {
		v := judge(t, pijson.End{}, tc.lines...)
		if v.Class != tc.class || (tc.class != pijson.ClassNone && !strings.Contains(v.Message, `"bash"`)) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	f, _ := fold(t, stream(start), pijson.FoldOptions{AllowedTools: readOnlyTools})
	if f.Trespass() != "bash" {
		t.Error("a running tool that is not allowed must be seen before it ends")
	}
	f, _ = fold(t, stream(start, end("Tool bash not found", "true")), pijson.FoldOptions{AllowedTools: readOnlyTools})
	if f.Trespass() != "" {
		t.Error("a refused call must clear the suspicion")
	}
}

func TestFaultI109AnAnswerCutInTheMiddleIsNoSuccess(t *testing.T) {
	t.Parallel()
	v := judge(t, pijson.End{}, session, assistant(`{"findings":[{"id":"F-0`, "length", someUsage), settled)
	expect(t, v, pijson.StatusFailed, pijson.ClassTruncated)
	if v.Retryable || v.Partial != `{"findings":[{"id":"F-0` {
		t.Errorf("verdict %+v", v)
	}
	// A last line that was torn off by the end of the child.
	whole := answer("whole")
	v = judge(t, pijson.End{}, session, turnStart, delta("who"), whole[:len(whole)-30])
	expect(t, v, pijson.StatusFailed, pijson.ClassEmpty)
	if v.Partial != "who" {
		t.Errorf("verdict %+v", v)
	}
}

func TestFaultJ113CacheReadsAndCostsAreCounted(t *testing.T) {
	t.Parallel()
	costly := strings.Replace(toolUse("read"), `"cacheRead":5`, `"cacheRead":1000000`, 1)
	f, _ := fold(t, strings.Repeat(costly+"\n", 7), pijson.FoldOptions{})
	u := f.Progress().Usage
	if u.CacheRead != 7_000_000 || u.Cost != 3.5 || u.Tokens() != 7_000_777 {
		t.Errorf("usage %+v", u)
	}
}

func expect(t testing.TB, v pijson.Verdict, status pijson.Status, class pijson.Class) {
	t.Helper()
	if v.Status != status || v.Class != class {
		t.Errorf("verdict %s (%s), want %s (%s): %s", v.Status, v.Class, status, class, v.Message)
	}
}

// repeat reads as n times the letter x.
type repeat struct{ n int }

func (r *repeat) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.n)
	for i := range p[:n] {
		p[i] = 'x'
	}
	r.n -= n
	return n, nil
}
