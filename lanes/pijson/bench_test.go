package pijson_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"pilothouse/lanes/pijson"
)

// The benchmarks read and fold a stream, that is, with the live text kept.

func BenchmarkReaderOld(b *testing.B) { benchmarkReader(b, longStream(1000, true)) }

func BenchmarkReaderNew(b *testing.B) { benchmarkReader(b, longStream(2000, false)) }

// BenchmarkReaderTools reads a recorded lane full of tool calls.
func BenchmarkReaderTools(b *testing.B) {
	data, err := os.ReadFile("testdata/pi-1.6.0-tools.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	benchmarkReader(b, string(data))
}

func benchmarkReader(b *testing.B, stream string) {
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		f := pijson.NewFold(pijson.FoldOptions{})
		r := pijson.NewReader(strings.NewReader(stream), pijson.ReaderOptions{})
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			f.Apply(e)
		}
		if !f.Answered() {
			b.Fatal("the answer was lost")
		}
	}
}
