package pijson_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes/pijson"
)

// FuzzReader: no input breaks the reader, no chunking changes what it reads, and its
// counts add up.
func FuzzReader(f *testing.F) {
	for _, text := range traces(f) {
		f.Add([]byte(text))
	}
	f.Add([]byte("\ufeff" + session + "\r\n\x1b[0m" + delta(`"\`) + "\nwarning " + answer("x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		small := func(r io.Reader) ([]pijson.Event, pijson.ReaderStats) {
			return readFrom(t, pijson.NewSmallReader(r, pijson.ReaderOptions{MaxLine: 12 << 10}, smallBuffer))
		}
		compare(t, data, small, iotest.HalfReader)
		compare(t, data, small, iotest.OneByteReader)
		_, smallStats := small(bytes.NewReader(data))
		whole, stats := readAll(t, bytes.NewReader(data), pijson.ReaderOptions{})
		if smallStats.Bytes != stats.Bytes || smallStats.Lines != stats.Lines {
			t.Fatalf("a small buffer makes %+v of %+v", smallStats, stats)
		}
		if stats.Bytes != int64(len(data)) || stats.Events != int64(len(whole)) || stats.Events+stats.Noise > stats.Lines {
			t.Fatalf("%d bytes, %d events, stats %+v", len(data), len(whole), stats)
		}
		for _, e := range whole {
			if !utf8.ValidString(e.Text) || !utf8.ValidString(e.ToolName) || (e.Message != nil && !utf8.ValidString(e.Message.Text)) {
				t.Fatalf("invalid UTF-8 in %+v", e)
			}
		}
	})
}

// smallBuffer makes lines that the fuzzing can reach long ones.
const smallBuffer = 8 << 10

// compare reads the data at once and in pieces.
func compare(t *testing.T, data []byte, read func(io.Reader) ([]pijson.Event, pijson.ReaderStats), cut func(io.Reader) io.Reader) {
	t.Helper()
	whole, stats := read(bytes.NewReader(data))
	pieces, pieceStats := read(cut(bytes.NewReader(data)))
	if diff := cmp.Diff(whole, pieces); diff != "" || stats != pieceStats {
		t.Fatalf("%+v, %+v (-whole +pieces):\n%s", stats, pieceStats, diff)
	}
}

// FuzzFold: every stream and end gives one verdict that holds together.
func FuzzFold(f *testing.F) {
	for _, text := range traces(f) {
		f.Add([]byte(text), 0, "", "", "")
	}
	f.Add([]byte(stream(session, toolUse("read"))), 137, "SIGKILL", "timed_out", "Lock file is already being held")
	f.Fuzz(func(t *testing.T, data []byte, code int, signal, cause, stderr string) {
		r := pijson.NewReader(bytes.NewReader(data), pijson.ReaderOptions{})
		fold := pijson.NewFold(pijson.FoldOptions{AllowedTools: readOnlyTools})
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			fold.Apply(e)
		}
		end := pijson.End{Code: code, Signal: signal, Cause: pijson.Cause(cause), Stderr: stderr, Stats: r.Stats()}
		if problem := inconsistency(fold, end); problem != "" {
			t.Fatalf("%s: %+v", problem, fold.Verdict(end))
		}
	})
}

// FuzzClassify: every text has a class of the table, whatever its case, and a wait
// within bounds.
func FuzzClassify(f *testing.F) {
	for _, text := range []string{
		"401 Incorrect API key provided", `429: {"error":{"code":"insufficient_quota"}}`, "terminated: other side closed (UND_ERR_SOCKET)",
		"Please try again in 1.5s", "retry_after: 99999999h", "Error: 503",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		class := pijson.Classify(text)
		if class.Sentence() == "" {
			t.Fatalf("class %q", class)
		}
		if isASCII(text) && pijson.Classify(strings.ToUpper(text)) != class {
			t.Fatalf("upper case changes the class from %q", class)
		}
		if d := pijson.RetryAfter(text); d < 0 || d.Hours() > 24 {
			t.Fatalf("wait %v", d)
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
