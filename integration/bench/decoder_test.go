package bench_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// streamRuns is how often each program reads a stream. The programs take turns, and
// medians of their CPU times are compared.
const streamRuns = 9

// BenchmarkDecoder compares the CPU time that reading an event stream takes: by the
// decoder with its live transcript kept, by a Node program that parses every line,
// and by cat, which only moves the bytes. All read a pipe that another process
// fills; what a program needs for an empty stream, its start, is subtracted. Both
// readers prove by length and hash that they saw the same text. The bars are 15 times
// Node on the cumulative lines of the older Pi and 4 times on the newer one's.
//
//	x-node       MB per CPU second, over Node
//	x-node-best  the same of the fastest runs: on a busy machine the better measure
//	x-cat        MB per CPU second, over cat: the share that the pipe alone leaves possible
//	MB/cpu-s     of the decoder
//
// The stream of deltas is the newer Pi's without the tool results, most bytes of
// which a decoder need not look at.
func BenchmarkDecoder(b *testing.B) {
	for _, s := range []struct {
		name       string
		generation generation
		size       size
	}{
		{"pi-0.73.1", oldPi, size{turns: 14, thinking: 60, text: 200, answer: 1600, resultBytes: 50 << 10}},
		{"pi-1.6.0", newPi, size{turns: 60, thinking: 200, text: 600, answer: 3000, resultBytes: 50 << 10}},
		{"pi-1.6.0-deltas", newPi, size{turns: 60, thinking: 200, text: 1200, answer: 3000, resultBytes: 100}},
	} {
		b.Run(s.name, func(b *testing.B) {
			c := newConversation(s.size)
			file := filepath.Join(b.TempDir(), "stream.jsonl")
			written := printFile(b, file, c, s.generation)
			want := seen{Transcript: digestOf(c.transcript()), Answer: digestOf(c.answer())}
			for b.Loop() {
				compareSpeed(b, file, written, want)
			}
		})
	}
}

func compareSpeed(b *testing.B, file string, size int64, want seen) {
	b.Helper()
	decoder, node, cat := decoderProgram(b), nodeProgram(b), program{name: "cat", words: []string{"cat"}}
	programs := []program{decoder, node, cat}
	starts, runs := map[string][]float64{}, map[string][]float64{}
	for range streamRuns {
		for _, p := range programs {
			_, start := p.read(b, os.DevNull)
			got, run := p.read(b, file)
			got.PeakKiB = 0
			if p.name != cat.name && got != want {
				b.Fatalf("%s saw %+v, want %+v", p.name, got, want)
			}
			starts[p.name] = append(starts[p.name], start.Seconds())
			runs[p.name] = append(runs[p.name], run.Seconds())
		}
		slices.Reverse(programs) // whoever comes second may find the machine warmer or busier
	}
	speed := func(p program, of func([]float64) float64) float64 {
		return float64(size) / 1e6 / (of(runs[p.name]) - of(starts[p.name]))
	}
	ours, theirs, plain := speed(decoder, median), speed(node, median), speed(cat, median)
	best := speed(decoder, slices.Min[[]float64]) / speed(node, slices.Min[[]float64])
	b.ReportMetric(ours/theirs, "x-node")
	b.ReportMetric(best, "x-node-best")
	b.ReportMetric(ours/plain, "x-cat")
	b.ReportMetric(ours, "MB/cpu-s")
	b.Logf("%.0f MB of events, %d bytes of text, sha256 %.12s: decoder %.0f MB per CPU second, node %.0f, cat %.0f; %.1f times node (best runs %.1f), %.2f times cat",
		float64(size)/1e6, want.Transcript.Bytes, want.Transcript.SHA256, ours, theirs, plain, ours/theirs, best, ours/plain)
}

// printFile writes a stream to a file and returns its size.
func printFile(b *testing.B, name string, c conversation, g generation) int64 {
	b.Helper()
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	if err := c.print(f, g); err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
