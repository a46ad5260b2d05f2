package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// size says how much happens in a conversation.
type size struct {
	turns       int // that end in a tool call
	thinking    int // pieces of thinking a turn
	text        int // pieces of text a turn
	answer      int // pieces of text of the last turn
	resultBytes int // a tool result, which Pi cuts at 50 KB
}

// newConversation makes up a review: a model that thinks, says a little, reads a file, and
// so on, and ends with a long answer. It is the same at every call.
func newConversation(s size) conversation {
	w := writer{rand.New(rand.NewPCG(1, 2))}
	l := conversation{system: w.text(systemBytes), task: "Review the plan below.\n\n" + w.text(4<<10)}
	for i := range s.turns {
		l.turns = append(l.turns, turn{thinking: w.pieces(s.thinking), text: w.pieces(s.text), call: &call{
			tool: "read", path: fmt.Sprintf("oven/part%d.go", i), result: w.source(s.resultBytes), structured: true,
		}})
	}
	l.turns = append(l.turns, turn{thinking: w.pieces(s.thinking), text: w.pieces(s.answer)})
	return l
}

// systemBytes is the length of a system prompt with the schemas of four tools.
const systemBytes = 4800

// writer makes up text whose share of characters that JSON escapes, and of such
// beyond ASCII, is about that of a real answer.
type writer struct{ *rand.Rand }

var vocabulary = strings.Fields("the plan reads oven and never closes `state.json` before it is renamed: a crash loses " +
	"\"approved\" – naïve step 3 of writer.go:42 should fsync “both” folders, since 日本 readers **must** see one whole file")

func (w writer) word() string { return vocabulary[w.IntN(len(vocabulary))] }

// pieces are deltas of about 20 bytes, as providers send them.
func (w writer) pieces(n int) []string {
	pieces := make([]string, n)
	for i := range pieces {
		var b strings.Builder
		for b.Len() < 16 {
			b.WriteString(w.word())
			b.WriteString(" ")
		}
		if i%12 == 11 {
			b.WriteString("\n- ")
		}
		pieces[i] = b.String()
	}
	if n > 0 {
		pieces[n-1] = strings.TrimSpace(pieces[n-1]) + "." // as models end
	}
	return pieces
}

func (w writer) text(size int) string {
	return strings.Join(w.pieces(size/20), "")
}

// source is a file as the read tool returns it.
func (w writer) source(size int) string {
	var b strings.Builder
	for n := 1; b.Len() < size; n++ {
		fmt.Fprintf(&b, "\tif err := oven.%s(%d, \"%s\"); err != nil {\n\t\treturn err\n\t}\n", w.word(), n, w.word())
	}
	return b.String()
}

// quote writes a string as JavaScript's JSON.stringify does.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // strings always encode
	}
	return strings.TrimSuffix(b.String(), "\n")
}
