package main

import (
	"fmt"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"pilothouse/lanes"
)

// drawn is a transcript without colours.
func drawn(t *transcriptText, width int) string {
	return ansi.Strip(strings.Join(t.draw(width), "\n"))
}

func TestATranscriptIsDrawnBlockByBlock(t *testing.T) {
	t.Parallel()
	var text transcriptText
	text.take([]lanes.TranscriptEntry{
		{Attempt: 1, Turn: 1, Key: "content:0", Type: "thinking", Text: "let me "},
		{Attempt: 1, Turn: 1, Key: "content:1", Type: "assistant-text", Text: "I will re"},
		{Attempt: 1, Turn: 1, Key: "content:0", Type: "thinking", Text: "see", Done: true},
		{Attempt: 1, Turn: 1, Key: "content:1", Type: "assistant-text", Text: "ad \x1b[2Jit", Done: true},
		{Attempt: 1, Turn: 1, Key: "tool:t", Type: "tool-call", Tool: "read\x1b", Text: `{"path":"a"}`, Done: true},
		{Attempt: 1, Turn: 1, Key: "tool:t", Type: "tool-result", Tool: "read", Text: "gone\n", IsError: true, Done: true},
		{Attempt: 2, Turn: 1, Key: "content:0", Type: "assistant-text", Text: "again, more slowly"},
	})
	want := `│ let me see

I will read ␛[2Jit

▸ read␛
  {"path":"a"}

✗ read failed
  gone

attempt 2

again, more slowly`
	trimmed := func(s string) string {
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " ")
		}
		return strings.Join(lines, "\n")
	}
	if got := trimmed(drawn(&text, 40)); got != want {
		t.Errorf("drawn:\n%s\nwant:\n%s", got, want)
	}
	if got := trimmed(drawn(&text, 12)); !strings.HasSuffix(got, "again, more\nslowly") {
		t.Errorf("drawn more narrowly:\n%s", got)
	}
	text.take([]lanes.TranscriptEntry{{Attempt: 2, Turn: 1, Key: "content:0", Type: "assistant-text", Text: " this time"}})
	if got := trimmed(drawn(&text, 40)); !strings.HasSuffix(got, "again, more slowly this time") {
		t.Errorf("drawn after it has grown:\n%s", got)
	}
}

func TestLongOutputOfAToolIsCutShort(t *testing.T) {
	t.Parallel()
	var text transcriptText
	text.take([]lanes.TranscriptEntry{{Attempt: 1, Turn: 1, Key: "tool:t", Type: "tool-result", Tool: "read", Text: strings.Repeat("line\n", toolLines+3), Done: true}})
	got := drawn(&text, 40)
	if n := strings.Count(got, "  line"); n != toolLines || !strings.HasSuffix(got, "… 3 more lines") {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

func TestOfALongTranscriptTheEndIsKept(t *testing.T) {
	t.Parallel()
	var text transcriptText
	for turn := range 40 {
		text.take([]lanes.TranscriptEntry{{Attempt: 1, Turn: turn + 1, Key: "content:0", Type: "assistant-text", Text: fmt.Sprintf("turn %d\n", turn+1) + strings.Repeat("x\n", 8<<10)}})
	}
	got := drawn(&text, 40)
	if text.size > transcriptKept || !strings.HasPrefix(got, "… what came before is not shown") || strings.Contains(got, "turn 1\n") || !strings.Contains(got, "turn 40\n") {
		t.Errorf("%d bytes are kept, from %.60q", text.size, got)
	}
}

func TestHowATranscriptIsCutIntoPagesDoesNotShow(t *testing.T) {
	t.Parallel()
	entry := rapid.Custom(func(t *rapid.T) lanes.TranscriptEntry {
		return lanes.TranscriptEntry{
			Attempt: 1, Turn: rapid.IntRange(1, 3).Draw(t, "turn"), Key: rapid.SampledFrom([]string{"content:0", "content:1", "tool:a"}).Draw(t, "key"),
			Type: rapid.SampledFrom([]string{"assistant-text", "thinking", "tool-call", "tool-result"}).Draw(t, "type"), Tool: "t", Text: wild().Draw(t, "text"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(entry, 0, 12).Draw(t, "entries")
		width := rapid.IntRange(10, 60).Draw(t, "width")
		var once, pieces transcriptText
		once.take(entries)
		for _, e := range entries {
			pieces.take([]lanes.TranscriptEntry{e})
			pieces.draw(width)
		}
		if one, other := drawn(&once, width), drawn(&pieces, width); one != other {
			t.Fatalf("at once:\n%s\npiece by piece:\n%s", one, other)
		}
		for _, line := range once.draw(width) {
			if lipgloss.Width(line) > width || strings.Contains(line, "\n") {
				t.Fatalf("line %q is %d wide, want at most %d", line, lipgloss.Width(line), width)
			}
		}
	})
}
