package bench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes/pijson"
)

// These tests hold the streams of the benchmarks against those of the real Pi.

var generations = []generation{oldPi, newPi}

func TestAGeneratedStreamIsCompleteWithTheRightText(t *testing.T) {
	t.Parallel()
	for _, g := range generations {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			c := newConversation(size{turns: 3, thinking: 20, text: 40, answer: 200, resultBytes: 50 << 10})
			var live, block string
			reader := pijson.NewReader(strings.NewReader(printed(t, c, g)), pijson.ReaderOptions{})
			fold := pijson.NewFold(pijson.FoldOptions{AllowedTools: []string{"read"}})
			for {
				e, err := reader.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				switch e.Kind {
				case pijson.KindTextDelta:
					live += e.Text
					if e.Cumulative != (g == oldPi) {
						t.Fatalf("an update of the other generation: %+v", e)
					}
				case pijson.KindTextEnd:
					block += e.Text
				default:
				}
				fold.Apply(e)
			}
			stats := reader.Stats()
			if stats.Noise+stats.TooLong+stats.Unknown != 0 || stats.Events != stats.Lines {
				t.Errorf("stats = %+v", stats)
			}
			verdict := fold.Verdict(pijson.End{Stats: stats})
			if verdict.Status != pijson.StatusComplete || len(verdict.Notes) > 0 || verdict.Turns != 4 {
				t.Errorf("verdict = %+v", verdict)
			}
			if fold.Settled() != (g == newPi) {
				t.Errorf("Settled = %t", fold.Settled())
			}
			if verdict.Output != c.answer() {
				t.Errorf("answer (-want +got):\n%s", cmp.Diff(c.answer(), verdict.Output))
			}
			if live != c.transcript() || block != live {
				t.Errorf("%d bytes of deltas, %d of blocks, want %d", len(live), len(block), len(c.transcript()))
			}
		})
	}
}

// The recorded conversation, printed by the generator, gives the recorded lines, in
// their order and with their keys in order. Only identifiers, times and counters
// differ, and how far the partial message of an older Pi runs ahead of the update
// that carries it (Pi fact §3).
func TestAGeneratedStreamHasTheBytesOfARecordedOne(t *testing.T) {
	t.Parallel()
	for _, g := range generations {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			recorded := recording(t, g, "thinking")
			c := conversation{
				system: "(system prompt and tool schemas left out)",
				task:   taskOf(t, recorded),
				turns: []turn{{
					thinking: []string{"I am thin", "king abou", "t it care", "fully."},
					text:     []string{"Answ", "er."},
					call:     &call{tool: "ls", path: ".", result: ".git/\na.txt\nnums.txt\nsrc/", structured: false},
				}, {
					thinking: []string{"Done thinking."}, text: []string{"Final."},
				}},
			}
			want, got := shape(t, recorded), shape(t, printed(t, c, g))
			if diff := cmp.Diff(want.lines, got.lines); diff != "" {
				t.Errorf("lines (-recorded +generated):\n%s", diff)
			}
			if diff := cmp.Diff(want.blocks, got.blocks); diff != "" {
				t.Errorf("blocks of partial messages (-recorded +generated):\n%s", diff)
			}
		})
	}
}

// The trace with the tools has one whose result the newer Pi repeats.
func TestAGeneratedReadResultHasTheBytesOfARecordedOne(t *testing.T) {
	t.Parallel()
	for _, g := range generations {
		const start, text = `{"type":"tool_execution_end",`, "hello from a.txt\n"
		c := conversation{turns: []turn{{call: &call{tool: "read", path: "a.txt", result: text, structured: true}}, {text: []string{"Read."}}}}
		got := lineOf(t, strings.Join(shape(t, printed(t, c, g)).lines, "\n"), start)
		if want := shape(t, recording(t, g, "tools")).lines; !slices.Contains(want, got) {
			t.Errorf("%s never printed %s", g, got)
		}
	}
}

func printed(t testing.TB, c conversation, g generation) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.print(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func recording(t testing.TB, g generation, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "lanes", "pijson", "testdata", g.String()+"-"+name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// taskOf is what the user of a recorded stream asked.
func taskOf(t testing.TB, stream string) string {
	t.Helper()
	var event struct {
		Message struct{ Content []struct{ Text string } }
	}
	line := lineOf(t, stream, `{"type":"message_end","message":{"role":"user"`)
	if err := json.Unmarshal([]byte(line), &event); err != nil || len(event.Message.Content) != 1 {
		t.Fatalf("no task in %s: %v", line, err)
	}
	return event.Message.Content[0].Text
}

// lineOf returns the first line that starts so.
func lineOf(t testing.TB, stream, start string) string {
	t.Helper()
	for line := range strings.Lines(stream) {
		if strings.HasPrefix(line, start) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	t.Fatalf("no line starts with %s", start)
	return ""
}

// shaped is a stream without what differs from run to run.
type shaped struct {
	lines  []string
	blocks []string // the kinds of blocks that partial messages hold, sorted
}

var (
	identifier = regexp.MustCompile(`"(id|toolCallId|responseId|timestamp|cwd)":"[^"]*"`)
	counter    = regexp.MustCompile(`"(timestamp|durationMs|input|output|cacheRead|cacheWrite|reasoning|totalTokens|total)":[0-9.e+-]+`)
	blockText  = regexp.MustCompile(`"(text|thinking|partialArgs)":"([^"\\]|\\.)*"`)
	stopReason = regexp.MustCompile(`"stopReason":"\w+"`)
)

func shape(t testing.TB, stream string) shaped {
	t.Helper()
	var s shaped
	for line := range strings.Lines(stream) {
		line = strings.TrimSuffix(line, "\n")
		line = identifier.ReplaceAllString(line, `"$1":"x"`)
		line = counter.ReplaceAllString(line, `"$1":0`)
		if strings.HasPrefix(line, `{"type":"message_update"`) && strings.Contains(line, `,"partial":{`) {
			content, blocks := contentOf(t, line)
			line = strings.ReplaceAll(line, `"content":`+content, `"content":[]`)
			line = stopReason.ReplaceAllString(line, `"stopReason":"x"`)
			for _, block := range blocks {
				s.blocks = append(s.blocks, blockText.ReplaceAllString(string(block), `"$1":""`))
			}
		}
		s.lines = append(s.lines, line)
	}
	slices.Sort(s.blocks)
	s.blocks = slices.Compact(s.blocks)
	return s
}

// contentOf is the content of the message that an update carries, as printed.
func contentOf(t testing.TB, line string) (raw string, blocks []json.RawMessage) {
	t.Helper()
	var update struct {
		Message struct{ Content json.RawMessage }
	}
	err := json.Unmarshal([]byte(line), &update)
	if err == nil {
		err = json.Unmarshal(update.Message.Content, &blocks)
	}
	if err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	return string(update.Message.Content), blocks
}
