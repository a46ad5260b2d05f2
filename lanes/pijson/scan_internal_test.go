package pijson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// textGen draws texts with everything that JSON escapes or must keep.
var textGen = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOf(rapid.SampledFrom([]string{
		"a", "plain text ", `"`, `\`, "/", "\n", "\t", "\x00", "\x1b[31m", "é", "日本", "👩\u200d👧", "\u2028", "\ufffd", "M", `"type":"x"`, "}", "{", ",",
	})).Draw(t, "parts")
	return strings.Join(parts, "")
})

func TestTheScanAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	usage := map[string]any{"input": 12, "cost": map[string]any{"total": 0.5}}
	rapid.Check(t, func(rt *rapid.T) {
		text := textGen.Draw(rt, "text")
		index := rapid.IntRange(0, 12).Draw(rt, "index")
		kind := rapid.SampledFrom([]string{
			"text_start", "text_delta", "text_end", "thinking_start", "thinking_delta", "thinking_end", "toolcall_start", "toolcall_delta", "toolcall_end",
		}).Draw(rt, "kind")
		type update struct {
			Type         string         `json:"type"`
			ContentIndex int            `json:"contentIndex"`
			Delta        *string        `json:"delta,omitempty"`
			Content      *string        `json:"content,omitempty"`
			ID           string         `json:"id,omitempty"`
			ToolName     string         `json:"toolName,omitempty"`
			ToolCall     map[string]any `json:"toolCall,omitempty"`
			Partial      map[string]any `json:"partial,omitempty"`
		}
		u := update{Type: kind, ContentIndex: index}
		switch {
		case strings.HasSuffix(kind, "_delta"):
			u.Delta = &text
		case kind == "text_end" || kind == "thinking_end":
			u.Content = &text
		case kind == "toolcall_end":
			u.ToolCall = map[string]any{"id": "c1", "name": text, "arguments": map[string]any{"path": text}}
		}
		old := rapid.Bool().Draw(rt, "old")
		if old {
			u.Partial = map[string]any{"role": "assistant", "content": text}
		} else if kind == "toolcall_start" {
			u.ID, u.ToolName = "c"+text, "n"+text
		}
		line, err := json.Marshal(struct {
			Type   string         `json:"type"`
			Usage  map[string]any `json:"usage,omitempty"`
			Update update         `json:"assistantMessageEvent"`
		}{"message_update", map[bool]map[string]any{false: usage}[old], u})
		if err != nil {
			rt.Fatal(err)
		}
		want, ok := decodeWhole(line)
		if !ok {
			rt.Fatalf("encoding/json rejects %s", line)
		}
		got, ok := scanUpdate(line)
		if !ok {
			rt.Fatalf("the scan gave up on %s", line)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("%s (-json +scan):\n%s", line, diff)
		}
		// Of a line that is cut anywhere the scan gives the whole event or none.
		n := rapid.IntRange(len(updatePrefix), len(line)).Draw(rt, "n")
		if got, ok := scanUpdate(line[:n]); ok {
			if !old {
				want.Cumulative = false
			}
			got.Cumulative = want.Cumulative
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("cut at %d of %s (-json +scan):\n%s", n, line, diff)
			}
		}
	})
}

// Without this the benchmarks would measure nothing real.
func TestEveryRecordedUpdateTakesTheHotPath(t *testing.T) {
	t.Parallel()
	names, _ := filepath.Glob("testdata/*.jsonl")
	updates := 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if !hasPrefix(line, updatePrefix) {
				continue
			}
			updates++
			got, ok := scanUpdate(line)
			want, _ := decodeWhole(line)
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("%s: %t, %s (-json +scan):\n%s", name, ok, line, diff)
			}
		}
	}
	if updates < 300 {
		t.Errorf("only %d updates", updates)
	}
}

func TestEveryRecordedLineIsDecodedAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	names, _ := filepath.Glob("testdata/*.jsonl")
	answers := 0
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			got, ok := decodeLine(line, false)
			want, _ := decodeWhole(line)
			if want.Kind == KindTurnEnd || want.Kind == KindUnknown {
				want = Event{Kind: want.Kind, Type: want.Type}
			}
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Errorf("%s: %t, %s (-json +scan):\n%s", name, ok, line, diff)
			}
			if !hasPrefix(line, answerPrefix) {
				continue
			}
			answers++
			if _, ok := scanAnswer(line, false); !ok {
				t.Errorf("%s: the scan gave up on %s", name, line)
			}
		}
	}
	if answers < 30 {
		t.Errorf("only %d answers", answers)
	}
}

func TestTheScanOfAnAnswerAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	tails := []string{
		`,"model":"m","stopReason":"stop"}}`, `,"usage":{"input":1},"stopReason":"error","errorMessage":"x"}}`, `,"model":7}}`, `,"usage":{"input":NaN}}}`,
		`},"more":1}`, `}}`, `,"role":"user"}}`, `,"content":[]}}`, `,"x":1}`, `,`, ``, `,"model":"m"}`,
	}
	formats := []string{
		`{"type":"text","text":%s}`, `{"type":"text","text":%s}`, `{"type":"text","text":%s}`, `{"type":"text","text":"t","textSignature":%s}`,
		`{"type":"thinking","thinking":%s,"thinkingSignature":"reasoning_content"}`, `{"type":"thinking","thinking":"","thinkingSignature":%s}`,
		`{"type":"toolCall","id":"c1","name":%s,"arguments":{"a":[{}],"b":"}"}}`, `{"type":"toolCall","id":"c1","name":"read","arguments":{"path":%s},"thoughtSignature":"s"}`,
		`{"type":"text","text":%s,"x":1}`, `{"type":"toolCall","name":%s}`, `{"type":"text","text":7%s}`, `{"type":"toolCall","id":"c1","name":"n","arguments":{"a":%s,}}`,
		`{"type":"text","text":%s,"text":"again"}`, `{"type":"image","data":%s}`, `{"type":"thinking","thinking":"\x","thinkingSignature":%s}`,
	}
	scanned := 0
	rapid.Check(t, func(rt *rapid.T) {
		var blocks []string
		for range rapid.IntRange(0, 3).Draw(rt, "blocks") {
			text, _ := json.Marshal(textGen.Draw(rt, "text"))
			blocks = append(blocks, fmt.Sprintf(rapid.SampledFrom(formats).Draw(rt, "format"), text))
		}
		line := []byte(answerPrefix + strings.Join(blocks, ",") + "]" + rapid.SampledFrom(tails).Draw(rt, "tail"))
		before := bytes.Clone(line)
		got, ok := scanAnswer(line, false)
		if !bytes.Equal(before, line) {
			rt.Fatalf("the scan of a line that it does not own made %s of %s", line, before)
		}
		owned, ownedOK := scanAnswer(line, true)
		if !ok {
			if ownedOK || !bytes.Equal(before, line) {
				rt.Fatalf("%t, the scan that gave up made %s of %s", ownedOK, line, before)
			}
			return
		}
		scanned++
		want, ok := decodeWhole(before)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			rt.Fatalf("%s: %t (-json +scan):\n%s", before, ok, diff)
		}
		if diff := cmp.Diff(want, owned); !ownedOK || diff != "" {
			rt.Fatalf("%s: %t (-json +owned):\n%s", before, ownedOK, diff)
		}
	})
	if scanned == 0 {
		t.Error("no answer took the hot path")
	}
}

func TestUnquoteAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`""`, `"plain"`, `"a\nb\t\r\b\f\/\\\"c"`, `"\u00e9\u65e5"`, `"\ud83d\ude00"`, `"\uD83D\uDE00x"`, `"\ud83d"`, `"\ude00"`, `"\ud83dx"`,
		`"\ud83d\ud83d\ude00"`, `"\ud83d\n"`, `"\ud83d\u0041"`, `"\u0000"`, "\"\u2028\"", "\"bad \xff\xc3 utf\"", "\"cut \xe6\x97\"", `"M"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		got, rest, ok := scanString([]byte(s + ",rest"))
		if !ok || got != want || string(rest) != ",rest" {
			t.Errorf("%s: %q, %q, %t; want %q", s, got, rest, ok, want)
		}
		if n := stringLen([]byte(s + ",rest")); n != len(s) {
			t.Errorf("%s: length %d", s, n)
		}
	}
	for _, s := range []string{`"`, `"abc`, `"\`, `"\u12`, `"\u12x4"`, `"\x"`, `"\ud8`, "\"\xe6", `abc"`, ``} {
		if got, _, ok := scanString([]byte(s)); ok {
			t.Errorf("%s: read as %q", s, got)
		}
		if n := stringLen([]byte(s)); n != 0 {
			t.Errorf("%s: length %d", s, n)
		}
	}
}

// A text is first read into a short buffer: one that ends a little beyond it, or
// far beyond, in the run after an escape, must not lose its end.
func TestATextIsWholeWhereverItPassesTheShortBuffer(t *testing.T) {
	t.Parallel()
	for before := range 40 {
		for n := shortText - 60; n < shortText+60; n++ {
			text := strings.Repeat("b", before) + "\n" + strings.Repeat("é", n%7) + strings.Repeat("a", n)
			raw, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, rest, ok := scanString(append(raw, '}')); got != text || string(rest) != "}" || !ok {
				t.Fatalf("%d bytes before and %d after an escape: %d of %d bytes, %t", before, n, len(got), len(text), ok)
			}
		}
	}
}

func TestEveryTextIsReadAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Repeat(textGen.Draw(rt, "text"), rapid.IntRange(1, 30).Draw(rt, "times"))
		raw, err := json.Marshal(text)
		if err != nil {
			rt.Fatal(err)
		}
		if rapid.Bool().Draw(rt, "invalid") {
			raw = slices.Insert(raw, rapid.IntRange(1, len(raw)-1).Draw(rt, "at"), 0xe6)
		}
		var want string
		if json.Unmarshal(raw, &want) != nil { // the byte came between a backslash and what it escapes
			return
		}
		if got, rest, ok := scanString(append(raw, '}')); got != want || string(rest) != "}" || !ok {
			rt.Fatalf("%s: %q, %q, %t", raw, got, rest, ok)
		}
		limit := rapid.IntRange(1, 100).Draw(rt, "limit")
		if got := scanStringHead(raw, limit); got != cut(want, limit) {
			rt.Fatalf("the first %d bytes of %s: %q", limit, raw, got)
		}
		n := rapid.IntRange(1, len(raw)).Draw(rt, "n")
		if got := scanStringHead(raw[:n], len(want)); !strings.HasPrefix(want, got) {
			rt.Fatalf("cut at %d of %s: %q", n, raw, got)
		}
		if utf8.Valid(raw) {
			if got := takeString(raw); got != want {
				rt.Fatalf("in place: %q, want %q", got, want)
			}
		}
	})
}

func TestAPileIsTheSumOfItsPieces(t *testing.T) {
	t.Parallel()
	var p pile
	var want []byte
	for i, n := range []int{1, minPiece - 1, 1, 3 * minPiece, 0, maxPiece + 7, 2*maxPiece + minPiece, 5} {
		piece := bytes.Repeat([]byte{byte('a' + i)}, n)
		p.add(piece)
		want = append(want, piece...)
		if i%3 == 2 && !bytes.Equal(p.joined(), want) || p.size != len(want) {
			t.Fatalf("after piece %d: %d bytes, want %d", i, p.size, len(want))
		}
	}
	if !bytes.Equal(p.joined(), want) {
		t.Errorf("%d bytes, want %d", len(p.joined()), len(want))
	}
}

func TestCutNeverSplitsACharacter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.String().Draw(rt, "s")
		n := rapid.IntRange(0, 40).Draw(rt, "n")
		got := cut(s, n)
		if len(got) > n || !strings.HasPrefix(s, got) || len(got) < min(len(s), n-3) || strings.ToValidUTF8(got, "") != got {
			rt.Fatalf("cut(%q, %d) = %q", s, n, got)
		}
	})
}

func TestTerminalSequencesAroundAnEventAreCutAway(t *testing.T) {
	t.Parallel()
	const event = `{"type":"x"}`
	for _, line := range []string{
		event, "\x1b[0m" + event, "\x1b[1;31m \x1b[?25h" + event + "\x1b[0m", "\x1b]0;title\x07" + event, "\x1b]8;;http://x\x1b\\" + event,
		"\x1b(B" + event, "\ufeff" + event, "\r\n\t " + event + " \r", "\x1b]0;unterminated " + event, "notice:" + event, "\x00\x7f" + event + "\x07",
	} {
		if got, blank := clean([]byte(line)); string(got) != event || blank {
			t.Errorf("%q: %q", line, got)
		}
	}
	for _, line := range []string{"", " ", "\r", "\x1b", "\x1b[", "\x1b[0m", "\ufeff", "\x1b[0m\r"} {
		if got, blank := clean([]byte(line)); !blank {
			t.Errorf("%q: %q", line, got)
		}
	}
}
