package lanes_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/proc"
)

// transcribed runs a lane whose transcript is kept and returns its record and the
// lines of the transcript.
func transcribed(t *testing.T, script lanestest.Script) (lanes.Result, []lanes.TranscriptEntry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it.jsonl")
	s := spec("general")
	s.Transcript = path
	r := theResult(t, begin(t, lanestest.NewHost(t, script), nil, s))
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the transcript's mode is %v, %v", info.Mode(), err)
	}
	var entries []lanes.TranscriptEntry
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var entry lanes.TranscriptEntry
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		entries = append(entries, entry)
	}
	return r, entries
}

// whole puts the pieces of each block together, in the order in which blocks begin.
func whole(t *testing.T, entries []lanes.TranscriptEntry) []lanes.TranscriptEntry {
	t.Helper()
	var blocks []lanes.TranscriptEntry
	for _, e := range entries {
		at := -1
		for i, b := range blocks {
			if !b.Done && b.Attempt == e.Attempt && b.Turn == e.Turn && b.Key == e.Key && b.Type == e.Type {
				at = i
			}
		}
		if at < 0 {
			blocks = append(blocks, e)
			continue
		}
		blocks[at].Text += e.Text
		blocks[at].Done = e.Done
	}
	for _, b := range blocks {
		if !b.Done {
			t.Errorf("block %s of turn %d has no end", b.Key, b.Turn)
		}
	}
	return blocks
}

// told reads a recorded run the plain way: the blocks of whole messages and the
// tools that ran, in the order of the stream.
func told(t *testing.T, lines []string) []lanes.TranscriptEntry {
	t.Helper()
	type block struct{ Type, Text, Thinking string }
	var blocks []lanes.TranscriptEntry
	turn := 0
	for _, line := range lines {
		var e struct {
			Type, ToolCallID, ToolName string
			Args                       json.RawMessage
			IsError                    bool
			Result                     struct{ Content []block }
			Message                    struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		add := func(b lanes.TranscriptEntry) {
			b.Attempt, b.Turn, b.Done = 1, turn, true
			blocks = append(blocks, b)
		}
		switch {
		case e.Type == "turn_start":
			turn++
		case e.Type == "message_end" && e.Message.Role == "assistant":
			var content []block
			if err := json.Unmarshal(e.Message.Content, &content); err != nil {
				t.Fatal(err)
			}
			for i, b := range content {
				switch b.Type {
				case "text":
					add(lanes.TranscriptEntry{Key: fmt.Sprintf("content:%d", i), Type: "assistant-text", Text: b.Text})
				case "thinking":
					add(lanes.TranscriptEntry{Key: fmt.Sprintf("content:%d", i), Type: "thinking", Text: b.Thinking})
				}
			}
		case e.Type == "tool_execution_start":
			add(lanes.TranscriptEntry{Key: "tool:" + e.ToolCallID, Type: "tool-call", Tool: e.ToolName, Text: string(e.Args)})
		case e.Type == "tool_execution_end":
			add(lanes.TranscriptEntry{Key: "tool:" + e.ToolCallID, Type: "tool-result", Tool: e.ToolName, Text: e.Result.Content[0].Text, IsError: e.IsError})
		}
	}
	return blocks
}

func TestATranscriptHasEveryBlockOfARecordedRunInOrder(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"pi-1.6.0-tools", "pi-1.6.0-thinking", "pi-1.6.0-unicode", "pi-1.6.0-long100",
		"pi-0.73.1-tools", "pi-0.73.1-thinking", "pi-0.73.1-unicode",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := lanestest.Trace(t, name)
			want := told(t, lines)
			if len(want) == 0 {
				t.Fatal("the trace says nothing")
			}
			_, entries := transcribed(t, printing(lanestest.Code(0), lines))
			if diff := cmp.Diff(want, whole(t, entries)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// delta is an update of a streaming block.
func delta(kind string, index int, text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":"message_update","assistantMessageEvent":{"type":"%s_delta","contentIndex":%d,"delta":%s}}`, kind, index, quoted)
}

func blockEnd(kind string, index int, text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":"message_update","assistantMessageEvent":{"type":"%s_end","contentIndex":%d,"content":%s}}`, kind, index, quoted)
}

func TestTheAppendedPiecesOfABlockAreItsText(t *testing.T) {
	t.Parallel()
	var lines []string
	var thought, said strings.Builder
	for i := range 4000 {
		piece := fmt.Sprintf("%d <ü> \"\n\u2028", i)
		lines = append(lines, delta("thinking", 0, piece), delta("text", 1, piece+"!"))
		thought.WriteString(piece)
		said.WriteString(piece + "!")
	}
	// The end of a block carries the whole text again, which must not be there twice.
	lines = append(lines, blockEnd("thinking", 0, thought.String()), blockEnd("text", 1, said.String()), blockEnd("text", 2, "no delta came before"))
	r, entries := transcribed(t, printing(lanestest.Code(0), lanestest.Opening(), lines, lanestest.Says("done"), lanestest.Closing()))
	if r.Status != lanes.Complete || r.Notes != nil {
		t.Errorf("%s, notes %v", r.Status, r.Notes)
	}
	want := []lanes.TranscriptEntry{
		{Attempt: 1, Turn: 1, Key: "content:0", Type: "thinking", Text: thought.String(), Done: true},
		{Attempt: 1, Turn: 1, Key: "content:1", Type: "assistant-text", Text: said.String(), Done: true},
		{Attempt: 1, Turn: 1, Key: "content:2", Type: "assistant-text", Text: "no delta came before", Done: true},
		{Attempt: 1, Turn: 1, Key: "content:0", Type: "assistant-text", Text: "done", Done: true},
	}
	if diff := cmp.Diff(want, whole(t, entries)); diff != "" {
		t.Error(diff)
	}
	// Pieces are neither single tokens nor the whole.
	if n := len(entries); n < 20 || n > 400 {
		t.Errorf("8000 deltas became %d lines", n)
	}
}

func TestAnUnfinishedBlockOfAFailureIsKept(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]lanestest.Script{
		"of the provider": printing(lanestest.Code(0), lanestest.Opening(), lanestest.Streams("half a sen"), lanestest.Fails("401: no"), lanestest.Closing()),
		"of the child":    printing(lanestest.Killed("SIGSEGV", 11), lanestest.Opening(), lanestest.Streams("half a sen")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, entries := transcribed(t, inTurn(script, answering("done")))
			want := []lanes.TranscriptEntry{{Attempt: 1, Turn: 1, Key: "content:0", Type: "assistant-text", Text: "half a sen", Done: true}}
			if r.Attempts == 2 {
				want = append(want, lanes.TranscriptEntry{Attempt: 2, Turn: 1, Key: "content:0", Type: "assistant-text", Text: "done", Done: true})
			}
			if diff := cmp.Diff(want, whole(t, entries)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABlockIsReadableWhileItStreams(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	s := spec("general")
	s.Transcript = path
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		_, _ = c.Task()
		c.Print(lanestest.Join(lanestest.Opening(), lanestest.Streams("so far"))...)
		c.Hold("work")
		c.Print(lanestest.Answer("done")...)
		return lanestest.Code(0)
	})
	stage := begin(t, host, nil, s)
	lanestest.Await(t, stage, func(p lanes.Progress) bool { return p.Phase == "responding" }) // the report comes after the write
	data, err := os.ReadFile(path)
	want := `{"attempt":1,"turn":1,"key":"content:0","type":"assistant-text","text":"so far"}` + "\n"
	if err != nil || string(data) != want {
		t.Errorf("the transcript is %q, %v; want %q", data, err, want)
	}
	host.Next(t, "general").Release("work")
	stage.AwaitEnd(t)
}

func TestATranscriptTellsTheAttemptsApart(t *testing.T) {
	t.Parallel()
	r, entries := transcribed(t, inTurn(printing(lanestest.Code(0), lanestest.GivesUp("503 no")), answering("done")))
	if r.Attempts != 2 {
		t.Fatalf("%d attempts, want 2", r.Attempts)
	}
	want := []lanes.TranscriptEntry{
		{Attempt: 1, Turn: 1, Key: "tool:c1", Type: "tool-call", Tool: "read", Text: "{}", Done: true},
		{Attempt: 1, Turn: 1, Key: "tool:c1", Type: "tool-result", Tool: "read", Text: "ok", Done: true},
		{Attempt: 2, Turn: 1, Key: "content:0", Type: "assistant-text", Text: "done", Done: true},
	}
	if diff := cmp.Diff(want, whole(t, entries)); diff != "" {
		t.Error(diff)
	}
}

func TestATranscriptThatCannotBeWrittenCostsOnlyANote(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a-file")
	write(t, file, "", 0o600)
	gone := filepath.Join(t.TempDir(), "gone")
	paths := map[string]string{
		"its folder is a file": filepath.Join(file, "t.jsonl"), "it is a folder": t.TempDir(),
		"its folder is not there": filepath.Join(gone, "t.jsonl"),
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		paths["the disk is full"] = "/dev/full"
	}
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec("general")
			s.Transcript = path
			r := theResult(t, begin(t, lanestest.NewHost(t, answering("done")), nil, s))
			if r.Status != lanes.Complete || r.Attempts != 1 || r.Output != "done" {
				t.Errorf("%s after %d attempts with %q", r.Status, r.Attempts, r.Output)
			}
			if len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "the transcript is not complete: ") {
				t.Errorf("notes %q", r.Notes)
			}
			if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a folder was made: %v", err)
			}
		})
	}
}

func TestBlocksThatAreOpenAtOnceKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var lines []string
	var want []lanes.TranscriptEntry
	for i := range 12 {
		lines = append(lines, delta("text", i, fmt.Sprintf("part %d", i)))
		want = append(want, lanes.TranscriptEntry{
			Attempt: 1, Turn: 1, Key: fmt.Sprintf("content:%d", i), Type: "assistant-text", Text: fmt.Sprintf("part %d", i), Done: true,
		})
	}
	_, entries := transcribed(t, printing(lanestest.Code(0), lanestest.Opening(), lines, lanestest.Fails("401: no"), lanestest.Closing()))
	if diff := cmp.Diff(want, whole(t, entries)); diff != "" {
		t.Error(diff)
	}
}
