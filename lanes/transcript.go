package lanes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"pilothouse/lanes/pijson"
)

// transcriptPiece is how much of a streaming block is gathered before it is
// written, so that a token is not a line of its own.
const transcriptPiece = 4 << 10

// transcriptBuffer is how much is gathered before it is written out, and how much
// memory is kept for that.
const transcriptBuffer = 16 << 10

// TranscriptEntry is one line of a lane's transcript: a content block, or a
// piece of one, as it came (spec: subagents 4.3, "Progress events").
type TranscriptEntry struct {
	Attempt int `json:"attempt"`
	Turn    int `json:"turn"` // 1-based, of the attempt
	// Key names the block in its turn: content:<i> or tool:<callId>.
	Key string `json:"key"`
	// Type is assistant-text, thinking, tool-call or tool-result.
	Type string `json:"type"`
	// Text is to be appended to what the block has so far.
	Text    string `json:"text,omitempty"`
	Tool    string `json:"tool,omitempty"`
	IsError bool   `json:"isError,omitempty"`
	// Done marks the last entry of a block.
	Done bool `json:"done,omitempty"`
}

// transcript spools what a lane says and does to a file, so that a viewer can
// read it from any offset while the lane's memory stays flat. It is a cache: it is
// not fsynced, and a transcript that cannot be written costs the lane nothing but
// a note.
type transcript struct {
	file    *os.File
	out     bytes.Buffer
	attempt int
	turn    int
	open    map[int]*openBlock // streaming blocks by content index
	err     error              // the first failure; nothing is written after it
}

type openBlock struct {
	kind    string
	text    strings.Builder
	written bool
}

// openTranscript appends to the transcript at path; "" spools nothing. The directory is
// there or there is no transcript: made again, it would be left where a repository
// was before it was moved (faults F91).
func openTranscript(path string, attempt int) *transcript {
	t := &transcript{attempt: attempt, open: map[int]*openBlock{}}
	if path == "" {
		return t
	}
	t.file, t.err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return t
}

// take folds an event into the transcript. What it gathers reaches the file at
// the next flush.
func (t *transcript) take(e pijson.Event) {
	if t.file == nil || t.err != nil {
		return
	}
	switch e.Kind {
	case pijson.KindTurnStart:
		t.turn++
	case pijson.KindTextDelta:
		t.grow(e, "assistant-text")
	case pijson.KindThinkingDelta:
		t.grow(e, "thinking")
	case pijson.KindTextEnd:
		t.end(e, "assistant-text")
	case pijson.KindThinkingEnd:
		t.end(e, "thinking")
	case pijson.KindMessageEnd:
		t.endAll() // a block that a failing provider left open
	case pijson.KindToolStart:
		t.write(TranscriptEntry{Key: "tool:" + e.ToolCallID, Type: "tool-call", Tool: e.ToolName, Text: e.ToolArgs, Done: true})
	case pijson.KindToolEnd:
		t.write(TranscriptEntry{Key: "tool:" + e.ToolCallID, Type: "tool-result", Tool: e.ToolName, Text: e.Text, IsError: e.IsError, Done: true})
	}
}

func (t *transcript) grow(e pijson.Event, kind string) {
	b := t.block(e.ContentIndex, kind)
	b.text.WriteString(e.Text)
	if b.text.Len() >= transcriptPiece {
		t.writeOpen()
	}
}

// end closes a block. Its whole text comes with the event and is only needed when
// no delta came before.
func (t *transcript) end(e pijson.Event, kind string) {
	b := t.block(e.ContentIndex, kind)
	if !b.written && b.text.Len() == 0 {
		b.text.WriteString(e.Text)
	}
	t.writeBlock(e.ContentIndex, b, true)
	delete(t.open, e.ContentIndex)
}

func (t *transcript) endAll() {
	for _, index := range t.indices() {
		t.writeBlock(index, t.open[index], true)
		delete(t.open, index)
	}
}

// indices are the places of the open blocks in their message, in order.
func (t *transcript) indices() []int { return slices.Sorted(maps.Keys(t.open)) }

func (t *transcript) block(index int, kind string) *openBlock {
	b := t.open[index]
	if b == nil || b.kind != kind {
		b = &openBlock{kind: kind}
		t.open[index] = b
	}
	return b
}

// writeOpen writes what the open blocks have gathered, in their order.
func (t *transcript) writeOpen() {
	for _, index := range t.indices() {
		if b := t.open[index]; b.text.Len() > 0 {
			t.writeBlock(index, b, false)
		}
	}
}

func (t *transcript) writeBlock(index int, b *openBlock, done bool) {
	t.write(TranscriptEntry{Key: fmt.Sprintf("content:%d", index), Type: b.kind, Text: b.text.String(), Done: done})
	b.text.Reset()
	b.written = true
}

func (t *transcript) write(entry TranscriptEntry) {
	entry.Attempt, entry.Turn = t.attempt, t.turn
	encoder := json.NewEncoder(&t.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(entry); err != nil && t.err == nil {
		t.err = err
	}
	if t.out.Len() >= transcriptBuffer {
		t.writeOut()
	}
}

// flush writes what was gathered, streaming blocks included, so that a viewer
// lags behind by no more than the interval of the lane's progress.
func (t *transcript) flush() {
	if t.file == nil || t.err != nil {
		return
	}
	t.writeOpen()
	t.writeOut()
}

func (t *transcript) writeOut() {
	if t.err == nil && t.out.Len() > 0 {
		_, t.err = t.file.Write(t.out.Bytes())
	}
	t.out.Reset()
	if t.out.Cap() > 2*transcriptBuffer { // a single block was long
		t.out = bytes.Buffer{}
	}
}

// close ends the transcript and returns why it is not complete, if it is not.
func (t *transcript) close() error {
	t.endAll()
	t.flush()
	if t.file != nil {
		if err := t.file.Close(); t.err == nil {
			t.err = err
		}
	}
	return t.err
}
