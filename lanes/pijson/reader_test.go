package pijson_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes/pijson"
)

func TestFaultB26CharactersCutByChunksStayWhole(t *testing.T) {
	t.Parallel()
	for name, text := range traces(t) {
		want, wantStats := readAll(t, strings.NewReader(text), pijson.ReaderOptions{})
		got, stats := readAll(t, iotest.OneByteReader(strings.NewReader(text)), pijson.ReaderOptions{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-whole +bytewise):\n%s", name, diff)
		}
		if stats != wantStats {
			t.Errorf("%s: stats %+v, want %+v", name, stats, wantStats)
		}
	}
}

// Where the pipe cuts the stream makes no difference, for lines of every length.
func TestChunkBoundariesMakeNoDifference(t *testing.T) {
	t.Parallel()
	const buffer = 8 << 10
	cut := oldDelta("a", strings.Repeat("b", 3000))[:5000] + "\n" + // not as long as the buffer, so it is no event
		`{"type":"turn_end","x":"` + strings.Repeat("c", 6000) + "\x1b[0m\n" +
		oldDelta("d", strings.Repeat("e", 3000)) + "\x1b[0m \r\n" +
		oldDelta("f", strings.Repeat("g", 5000))[:9000] + "\n" // longer
	for _, n := range []int{40, buffer - 100, buffer + 100, 3 * buffer} {
		text := longLines(n) + cut
		read := func(sizes ...int) ([]pijson.Event, pijson.ReaderStats) {
			return readFrom(t, pijson.NewSmallReader(&chunked{text: text, sizes: sizes}, pijson.ReaderOptions{MaxLine: buffer * 3 / 2}, buffer))
		}
		want, wantStats := read(len(text))
		if wantStats.Noise != 2 {
			t.Errorf("lines of %d bytes: stats %+v", n, wantStats)
		}
		for _, sizes := range [][]int{{7}, {4095}, {buffer - 1}, {buffer}, {buffer + 1}, {1, 9_000}, {3, 5, 5_000, 1, 1, 8_200, 100}} {
			got, stats := read(sizes...)
			if !reflect.DeepEqual(want, got) { // cmp.Diff is slow on long texts that are equal
				t.Errorf("lines of %d bytes, chunks of %d (-whole +chunked):\n%s", n, sizes, cmp.Diff(want, got))
			}
			if stats != wantStats {
				t.Errorf("lines of %d bytes, chunks of %d: stats %+v, want %+v", n, sizes, stats, wantStats)
			}
		}
	}
}

// The same with the buffer as it is.
func TestChunksAroundTheSizeOfTheBufferMakeNoDifference(t *testing.T) {
	t.Parallel()
	text := longLines(258 << 10)
	want, wantStats := readAll(t, strings.NewReader(text), pijson.ReaderOptions{MaxLine: 400 << 10})
	for _, sizes := range [][]int{{64 << 10}, {256<<10 - 1}, {256 << 10}, {256<<10 + 1}, {1, 280_000}, {3, 5, 40_000, 1, 1, 65_000, 100}} {
		got, stats := readAll(t, &chunked{text: text, sizes: sizes}, pijson.ReaderOptions{MaxLine: 400 << 10})
		if !reflect.DeepEqual(want, got) || stats != wantStats {
			t.Errorf("chunks of %d bytes: %d events, stats %+v, want %d, %+v", sizes, len(got), stats, len(want), wantStats)
		}
	}
}

// longLines has one line of each kind with a body of about n bytes, each with what
// matters at its end.
func longLines(n int) string {
	body := strings.Repeat(`é\n"`[:4], n/4)
	q := quote(body)
	return stream(
		session,
		`{"type":"message_start","message":{"role":"system","content":`+q+`}}`,
		`{"type":"message_end","message":{"role":"user","content":`+q+`}}`,
		assistantStart,
		delta(body),
		oldDelta("tiny", body),
		oldDelta(body, body),
		`{"type":"message_update","usage":`+zeroUsage+`,"assistantMessageEvent":{"type":"text_end","contentIndex":3,"content":`+q+`}}`,
		`{"type":"message_update","usage":`+zeroUsage+`,"assistantMessageEvent":{"type":"toolcall_end","contentIndex":1,"toolCall":{"type":"toolCall","id":"c9","name":"read","arguments":{"path":`+q+`}}}}`,
		`{"type":"tool_execution_start","toolCallId":"c9","toolName":"read","args":{"path":`+q+`}}`,
		`{"type":"tool_execution_update","toolCallId":"c9","toolName":"read","args":{"path":"a"},"partialResult":{"content":[{"type":"text","text":`+q+`}]}}`,
		`{"type":"tool_execution_end","toolCallId":"c9","toolName":"read","result":{"content":[{"type":"text","text":`+q+`}]},"isError":true,"durationMs":12}`,
		`{"type":"tool_execution_end","toolCallId":"c9","toolName":"read","result":{"content":[{"type":"text","text":`+q+`}],"isError":true},"isError":false}`,
		`{"type":"message_end","message":{"role":"toolResult","toolCallId":"c9","toolName":"read","content":[{"type":"text","text":`+q+`}],"usage":`+someUsage+`,"isError":false}}`,
		answer(body),
		`{"type":"turn_end","message":{"role":"assistant","content":[{"type":"text","text":`+q+`}]},"toolResults":[]}`,
		`{"type":"agent_end","messages":[{"role":"user","content":`+q+`}],"willRetry":true}`,
		`{"type":"agent_end","messages":[{"role":"user","content":`+q+`}]}`,
		`{"type":"compaction_end","reason":"threshold","result":{"summary":`+q+`,"usage":`+someUsage+`},"aborted":false,"willRetry":true}`,
		answer(strings.Repeat("x", 2*n)),
		settled,
	)
}

type chunked struct {
	text  string
	sizes []int
	i     int
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := min(len(p), len(c.text), c.sizes[c.i%len(c.sizes)])
	c.i++
	copy(p, c.text[:n])
	c.text = c.text[n:]
	return n, nil
}

// A line that does not fit the read buffer gives the same event as one that does.
func TestLongLinesGiveWhatShortOnesGive(t *testing.T) {
	t.Parallel()
	short, _ := readAll(t, strings.NewReader(longLines(40)), pijson.ReaderOptions{})
	long, stats := readAll(t, strings.NewReader(longLines(300<<10)), pijson.ReaderOptions{})
	if stats.Noise != 0 || stats.TooLong != 0 || len(short) != len(long) {
		t.Fatalf("stats %+v, %d events, want %d", stats, len(long), len(short))
	}
	for i := range long {
		s, l := short[i], long[i]
		if len(l.Text) < len(s.Text) || !strings.HasPrefix(l.Text, s.Text[:len(s.Text)/2]) {
			t.Errorf("event %d (%s): text of %d bytes begins otherwise", i, l.Kind, len(l.Text))
		}
		if l.Message != nil {
			if (len(l.Message.Text) > len(s.Message.Text)) != (l.Role == pijson.RoleAssistant) {
				t.Errorf("event %d: message text of %d bytes", i, len(l.Message.Text))
			}
			m := *l.Message
			m.Text = s.Message.Text
			l.Message = &m
		}
		if (l.ToolArgs == "") != (s.ToolArgs == "") {
			t.Errorf("event %d: arguments %q", i, l.ToolArgs)
		}
		l.Text, l.ToolArgs = s.Text, s.ToolArgs
		if diff := cmp.Diff(s, l); diff != "" {
			t.Errorf("event %d (-short +long):\n%s", i, diff)
		}
	}
	want := map[int]string{4: "text_delta", 7: "text_end", 11: "tool_execution_end", 12: "tool_execution_end", 16: "agent_end", 17: "agent_end", 18: "compaction_end"}
	for i, kind := range want {
		if long[i].Kind.String() != kind {
			t.Errorf("event %d is %s, want %s", i, long[i].Kind, kind)
		}
	}
	if !long[11].IsError || long[12].IsError || !long[16].WillRetry || long[17].WillRetry || !long[18].WillRetry {
		t.Error("a flag at the end of a long line was lost")
	}
	if n := len(long[4].Text); n < 300<<10-4 {
		t.Errorf("a long delta has %d bytes", n)
	}
}

// The older Pi prints lines of megabytes for every few bytes of text. None of it may
// stay, or even be collected.
func TestMemoryStaysBoundedOnLongCumulativeLines(t *testing.T) {
	const lines, partial = 50, 1 << 20
	head, tail, _ := strings.Cut(oldDelta("0123456789", "PARTIAL"), "PARTIAL")
	mid, tail, _ := strings.Cut(tail, "PARTIAL")
	var parts []io.Reader
	for range lines {
		parts = append(parts, strings.NewReader(head), &repeat{n: partial}, strings.NewReader(mid), &repeat{n: partial}, strings.NewReader(tail+"\n"))
	}
	r := pijson.NewReader(io.MultiReader(parts...), pijson.ReaderOptions{})
	f := pijson.NewFold(pijson.FoldOptions{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	events := 0
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if e.Text != "0123456789" || !e.Cumulative {
			t.Fatalf("event %+v", e)
		}
		f.Apply(e)
		events++
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated for %d bytes of text", got, lines*10)
	}
	if events != lines || r.Stats().Bytes < lines*2*partial {
		t.Errorf("%d events, stats %+v", events, r.Stats())
	}
}

// A long answer costs its line, and that once more in one piece, which becomes the text.
func TestAnAnswerOfManyMegabytesIsHeldTwiceAtMost(t *testing.T) {
	const size = 40 << 20
	head, tail, _ := strings.Cut(answer(`ANSWER "\é`), "ANSWER")
	line := io.MultiReader(strings.NewReader(head), &repeat{n: size}, strings.NewReader(tail+"\n"))
	r := pijson.NewReader(line, pijson.ReaderOptions{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, err := r.Next()
	runtime.ReadMemStats(&after)
	if err != nil || len(e.Message.Text) != size+len(` "\é`) || !strings.HasSuffix(e.Message.Text, `x "\é`) {
		t.Fatalf("%d bytes, %v", len(e.Message.Text), err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > size*22/10 {
		t.Errorf("%d bytes allocated for an answer of %d", got, size)
	}
}

func TestOfAToolResultOnlyTheUsageIsTold(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]*pijson.Usage{
		`"content":[{"type":"text","text":"a file"}],"isError":false,"timestamp":1`:                                        nil,
		`"content":[{"type":"text","text":"{\"usage\":{\"input\":7}}"}],"isError":false`:                                   nil,
		`"content":[{"type":"text","text":"x"}],"details":{"usage":{"input":7}},"isError":false`:                           nil,
		`"content":[{"type":"text","text":"x"}],"usage":{"input":7,"cost":{"total":0.5}},"isError":false`:                  {Input: 7, Cost: 0.5},
		`"content":[{"type":"text","text":"\"usage\":{}"}],"details":{},"usage":{"input":7},"isError":true,"durationMs":3`: {Input: 7},
		`"content":[{"type":"text","text":"x"}],"usage":null,"isError":false`:                                              nil,
		`"usage" : {"output":1},"content":"x"`:                                                                             {Output: 1},
	} {
		for _, size := range []int{0, 20 << 10} {
			text := `{"type":"message_end","message":{"role":"toolResult","toolCallId":"` + strings.Repeat("c", size) + `","toolName":"read",` + line + `}}`
			events, stats := readFrom(t, pijson.NewSmallReader(strings.NewReader(text), pijson.ReaderOptions{}, 8<<10))
			if diff := cmp.Diff([]pijson.Event{{Kind: pijson.KindMessageEnd, Role: "toolResult", Message: &pijson.Message{Usage: want}}}, events); diff != "" {
				t.Errorf("%s: stats %+v (-want +got):\n%s", line, stats, diff)
			}
		}
	}
}

func TestAReadErrorIsReportedAfterTheLastEventAndStays(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	r := pijson.NewReader(io.MultiReader(strings.NewReader(session+"\n"+turnStart), iotest.ErrReader(broken)), pijson.ReaderOptions{})
	for _, want := range []pijson.Kind{pijson.KindSession, pijson.KindTurnStart} {
		if e, err := r.Next(); err != nil || e.Kind != want {
			t.Fatalf("Next = %v, %v; want %v", e.Kind, err, want)
		}
	}
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, broken) {
			t.Fatalf("error %v", err)
		}
	}
}

func TestEventsInAnUnusualKeyOrderAreDecodedToo(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]pijson.Event{
		`{"assistantMessageEvent":{"delta":"x","contentIndex":2,"type":"text_delta"},"type":"message_update"}`:                                           {Kind: pijson.KindTextDelta, ContentIndex: 2, Text: "x"},
		"\t" + `{ "type" : "message_update" , "assistantMessageEvent" : { "type" : "thinking_delta", "delta" : "y" } }` + "\r":                           {Kind: pijson.KindThinkingDelta, Text: "y"},
		`{"type":"message_update","message":{},"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"z"}}`:                              {Kind: pijson.KindTextDelta, Text: "z"},
		`{"type":"agent_end","willRetry":true,"messages":[{}]}`:                                                                                          {Kind: pijson.KindAgentEnd, WillRetry: true},
		`{"type":"agent_end","messages":[{"willRetry":true}]}`:                                                                                           {Kind: pijson.KindAgentEnd},
		`{"type":"agent_end","messages":[],"willRetry":true,"more":1}`:                                                                                   {Kind: pijson.KindAgentEnd, WillRetry: true},
		`{"type":"tool_execution_end","isError":true,"toolCallId":"a","toolName":"b"}`:                                                                   {Kind: pijson.KindToolEnd, ToolCallID: "a", ToolName: "b", IsError: true},
		`{"type":"tool_execution_end","toolCallId":"a","toolName":"b","isError":false,"result":{"content":[{"text":"t","type":"text"}],"isError":true}}`: {Kind: pijson.KindToolEnd, ToolCallID: "a", ToolName: "b", Text: "t"},
		`{"type":"message_start","message":{"content":[],"role":"assistant"}}`:                                                                           {Kind: pijson.KindMessageStart, Role: "assistant"},
		`{"type":"message_end","message":{"role":"user","content":"hi"}}`:                                                                                {Kind: pijson.KindMessageEnd, Role: "user"},
		`{"type":"turn\u005fend"}`: {Kind: pijson.KindTurnEnd},
		`{"type":"novelty"}`:       {Type: "novelty"},
		`{"type":"message_update","assistantMessageEvent":{"type":"novelty"}}`: {Type: "message_update"},
		`{"type":"message_update"}`: {Type: "message_update"},
		`{"type":"compaction_end","reason":"x","aborted":true,"willRetry":false,"errorMessage":"no"}`: {Kind: pijson.KindCompactionEnd, Aborted: true, Text: "no", IsError: true},
	} {
		got, _ := readAll(t, strings.NewReader(line), pijson.ReaderOptions{})
		if diff := cmp.Diff([]pijson.Event{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestUsageToleratesEverythingThatIsNoSensibleNumber(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]pijson.Usage{
		`{"input":-5,"output":null,"cacheRead":"7","cacheWrite":1.9,"cost":{"total":-1}}`: {CacheWrite: 1},
		`{"input":NaN,"output":3,"cost":{"total":-Infinity}}`:                             {Output: 3},
		`{"input":1e300,"output":1e999}`:                                                  {Input: 1 << 53},
		`{"input":{},"output":[1],"cacheRead":true,"cost":"x"}`:                           {},
		`{"input":1,"cost":0.25}`:                                                         {Input: 1, Cost: 0.25},
		`{"input":1,"cost":{"input":0.5,"output":0.25}}`:                                  {Input: 1, Cost: 0.75},
		`[]`:   {},
		`"x"`:  {},
		`7`:    {},
		`null`: {},
	} {
		v := judge(t, pijson.End{}, assistant("a NaN stays text", "stop", usage))
		if v.Usage != want || v.Output != "a NaN stays text" {
			t.Errorf("%s: usage %+v, output %q", usage, v.Usage, v.Output)
		}
	}
}

func ExampleReader() {
	stdout := strings.NewReader(
		`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"Looks "}}` + "\n" +
			"npm notice: a new version is available\n" +
			`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"Looks good."}],"stopReason":"stop"}}` + "\n")
	r := pijson.NewReader(stdout, pijson.ReaderOptions{})
	f := pijson.NewFold(pijson.FoldOptions{})
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		f.Apply(e)
		fmt.Printf("%s, answered: %t\n", e.Kind, f.Answered())
	}
	v := f.Verdict(pijson.End{Stats: r.Stats()})
	fmt.Println(v.Status, v.Output, v.Notes)
	// Output:
	// text_delta, answered: false
	// message_end, answered: true
	// complete Looks good. [1 lines on standard output were no events]
}
