package pijson_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/lanes/pijson"
)

// The right verdicts on recorded streams of real Pi, all of which ended with exit
// status 0 (Pi fact §5).
func TestRecordedStreamsGetTheRightVerdict(t *testing.T) {
	t.Parallel()
	complete := func(output string, turns int, u pijson.Usage) pijson.Verdict {
		return pijson.Verdict{
			Status: pijson.StatusComplete, Output: output, Model: "plain", StopReason: "stop", Turns: turns, Usage: u,
		}
	}
	failed := func(class pijson.Class, detail, partial string, turns int, u pijson.Usage) pijson.Verdict {
		return pijson.Verdict{
			Status: pijson.StatusFailed, Class: class, Detail: detail, Partial: partial,
			Model: "plain", StopReason: "error", Turns: turns, Usage: u, Retryable: class.Retryable(),
		}
	}
	with := func(v pijson.Verdict, change func(*pijson.Verdict)) pijson.Verdict {
		change(&v)
		return v
	}
	stopReason := func(s string) func(*pijson.Verdict) {
		return func(v *pijson.Verdict) { v.StopReason = s }
	}
	tokens := func(in, out int64, cost float64) pijson.Usage {
		return pijson.Usage{Input: in, Output: out, Cost: cost}
	}
	none := pijson.Usage{}
	unicode := "héllo 👩\u200d👩\u200d👧\u200d👦 日本語 \u2028 sep \u2029 para \x00 nul \x1b[31m esc \ufffd lone surrogate"

	want := map[string]pijson.Verdict{
		"pi-0.73.1-badutf8":        complete("aaaabad \ufffd\ufffd\ufffd(\ufffd\ufffd\ufffd end", 1, tokens(458, 1, 0.001389)),
		"pi-1.6.0-badutf8":         complete("aaaabad \ufffd\ufffd\ufffd(\ufffd\ufffd\ufffd end", 1, tokens(486, 1, 0.001473)),
		"pi-0.73.1-content-filter": failed(pijson.ClassFiltered, "Provider finish_reason: content_filter", "partial", 1, tokens(460, 2, 0.00141)),
		"pi-1.6.0-content-filter":  failed(pijson.ClassFiltered, "Provider finish_reason: content_filter", "partial", 1, tokens(489, 2, 0.001497)),
		"pi-0.73.1-drop-mid":       complete("after drop old", 2, tokens(484, 4, 0.001512)),
		"pi-1.6.0-drop-mid":        complete("after drop", 2, tokens(510, 3, 0.001575)),
		"pi-0.73.1-empty":          with(failed(pijson.ClassEmpty, "", "", 1, tokens(451, 0, 0.001353)), stopReason("stop")),
		"pi-1.6.0-empty":           with(failed(pijson.ClassEmpty, "", "", 1, tokens(479, 0, 0.001437)), stopReason("stop")),
		// The older Pi takes a broken stream for a whole answer; we do not.
		"pi-0.73.1-eof-mid": with(failed(pijson.ClassTruncated, "the stream of the provider ended without a finish reason",
			"aaaaaaaaaabb", 1, none), func(v *pijson.Verdict) { v.StopReason, v.Retryable = "stop", true }),
		"pi-1.6.0-eof-mid":         complete("after eof new", 2, tokens(510, 4, 0.00159)),
		"pi-0.73.1-err401":         failed(pijson.ClassAuth, "401 Incorrect API key provided", "", 1, none),
		"pi-1.6.0-err401":          failed(pijson.ClassAuth, `401: {"message":"Incorrect API key provided","type":"scripted","code":"scripted_401"}`, "", 1, none),
		"pi-0.73.1-err429-forever": failed(pijson.ClassRateLimit, "429 Rate limit reached forever", "", 4, none),
		"pi-1.6.0-err429-forever": failed(pijson.ClassRateLimit,
			`429: {"message":"Rate limit reached forever","type":"scripted","code":"scripted_429"}`, "", 4, none),
		"pi-0.73.1-err429-recover": complete("recovered", 1, tokens(472, 3, 0.001461)),
		"pi-1.6.0-err429-recover":  complete("recovered", 3, tokens(501, 3, 0.001548)),
		"pi-0.73.1-errorevent":     failed(pijson.ClassUnknown, "scripted in-stream error", "aaaa", 1, none),
		"pi-1.6.0-errorevent":      failed(pijson.ClassUnknown, "scripted in-stream error", "aaaa", 1, none),
		"pi-0.73.1-length": with(failed(pijson.ClassTruncated, "the model reached its limit of output tokens", "cut off", 1,
			tokens(458, 2, 0.001404)), stopReason("length")),
		"pi-1.6.0-length": with(failed(pijson.ClassTruncated, "the model reached its limit of output tokens", "cut off", 1,
			tokens(487, 2, 0.001491)), stopReason("length")),
		"pi-1.6.0-long100":         complete(strings.TrimSpace(strings.Repeat("The quick brown fox jumps over the lazy dog. ", 45)[:2000]), 1, tokens(489, 500, 0.008967)),
		"pi-0.73.1-malformed-json": failed(pijson.ClassServer, "Expected property name or '}' in JSON at position 1", "aaaa", 1, none),
		"pi-1.6.0-malformed-json": failed(pijson.ClassServer, "Error reading response: malformed server-sent event JSON.",
			"aaaa", 1, none),
		"pi-0.73.1-reset":    complete("after reset", 1, tokens(467, 3, 0.001446)),
		"pi-1.6.0-reset":     complete("after reset", 2, tokens(496, 3, 0.001533)),
		"pi-0.73.1-simple":   complete("Hello world answer", 1, tokens(459, 5, 0.001452)),
		"pi-1.6.0-simple":    complete("Hello world answer", 1, tokens(487, 5, 0.001536)),
		"pi-0.73.1-thinking": with(complete("Final.", 2, tokens(1074, 25, 0.003597)), func(v *pijson.Verdict) { v.Model = "think" }),
		"pi-1.6.0-thinking":  with(complete("Final.", 2, tokens(1132, 25, 0.003771)), func(v *pijson.Verdict) { v.Model = "think" }),
		// The model called a tool that does not exist; Pi refused it and nothing ran.
		"pi-0.73.1-tools":   complete("final answer after tools", 6, tokens(4527, 66, 0.014571)),
		"pi-1.6.0-tools":    complete("final answer after tools", 6, tokens(4513, 66, 0.014529)),
		"pi-0.73.1-unicode": complete(unicode, 1, tokens(483, 17, 0.001704)),
		"pi-1.6.0-unicode":  complete(unicode, 1, tokens(511, 17, 0.001788)),
	}

	recorded := traces(t)
	if len(recorded) != len(want) {
		t.Errorf("%d traces, %d expectations", len(recorded), len(want))
	}
	for name, text := range recorded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, stats := fold(t, text, pijson.FoldOptions{AllowedTools: readOnlyTools})
			if stats.Noise != 0 || stats.TooLong != 0 || stats.Events != stats.Lines || stats.Bytes != int64(len(text)) {
				t.Errorf("stats = %+v", stats)
			}
			got := f.Verdict(pijson.End{Stats: stats})
			if (got.Message == "") != (got.Status == pijson.StatusComplete) || !strings.Contains(got.Message, got.Detail) {
				t.Errorf("message = %q", got.Message)
			}
			got.Message = ""
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
			if diff := cmp.Diff(want[name], got, near, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if newer := strings.HasPrefix(name, "pi-1."); f.Settled() != newer {
				t.Errorf("Settled = %t", f.Settled())
			}
		})
	}
}

// The live text is the sum of the deltas, and equals what the message ends with.
func TestTheDeltasOfARecordedStreamAddUpToTheAnswer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pi-0.73.1-simple", "pi-1.6.0-simple", "pi-1.6.0-long100", "pi-0.73.1-tools", "pi-1.6.0-tools"} {
		events, _ := readAll(t, strings.NewReader(traces(t)[name]), pijson.ReaderOptions{})
		live, block, answer := "", "", ""
		for _, e := range events {
			switch e.Kind {
			case pijson.KindTextDelta:
				live += e.Text
			case pijson.KindTextEnd:
				block = e.Text
			case pijson.KindMessageEnd:
				if e.Role == pijson.RoleAssistant {
					answer = e.Message.Text
				}
			default:
			}
		}
		if answer == "" || live != answer || block != answer {
			t.Errorf("%s: live %q, block %q, answer %q", name, live, block, answer)
		}
	}
}

func TestToolEventsCarryWhatALiveViewShows(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pi-0.73.1-tools", "pi-1.6.0-tools"} {
		events, _ := readAll(t, strings.NewReader(traces(t)[name]), pijson.ReaderOptions{})
		var starts, ends, calls []string
		for _, e := range events {
			switch e.Kind {
			case pijson.KindToolStart:
				starts = append(starts, e.ToolName+" "+e.ToolArgs)
			case pijson.KindToolEnd:
				if e.IsError {
					ends = append(ends, e.ToolName+" failed: "+e.Text)
				}
			case pijson.KindToolCallEnd:
				calls = append(calls, e.ToolName+" "+e.ToolArgs)
			default:
			}
		}
		want := []string{
			`read {"path":"a.txt"}`, `ls {"path":"."}`, `grep {"pattern":"TODO","path":"src"}`, `find {"pattern":"*.js"}`,
			`read {"path":"missing.txt"}`, `nosuch {}`,
		}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Errorf("%s: starts (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", name, diff)
		}
		wantEnds := []string{
			"read failed: ENOENT: no such file or directory, access '/home/dev/project/missing.txt'",
			"nosuch failed: Tool nosuch not found",
		}
		if diff := cmp.Diff(wantEnds, ends[max(0, len(ends)-2):]); diff != "" {
			t.Errorf("%s: failed tools (-want +got):\n%s", name, diff)
		}
	}
}
