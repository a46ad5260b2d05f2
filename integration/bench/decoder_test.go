package bench_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// streamRuns is how often each program reads a stream, in turn with the others.
const streamRuns = 13

// BenchmarkDecoder compares the CPU time that reading an event stream takes: by the
// decoder with its live transcript kept, by a Node program that parses every line,
// and by cat, which only moves the bytes. All read a pipe that another process
// fills; what a program needs for an empty stream, its start, is subtracted. Both
// readers prove by length and hash that they saw the same text. The bars are 15 times
// Node on the cumulative lines of the older Pi and 4 times on the newer one's.
//
//	x-node    MB per CPU second, over Node in the run next to it; the median of all runs
//	x-cat     the same over cat: the share that the pipe alone leaves possible
//	MB/cpu-s  of the decoder
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
	// speeds are those of a program's runs in MB per CPU second.
	speeds := func(p program) []float64 {
		start := median(starts[p.name])
		var all []float64
		for _, run := range runs[p.name] {
			all = append(all, float64(size)/1e6/(run-start))
		}
		return all
	}
	ours, theirs, plain := speeds(decoder), speeds(node), speeds(cat)
	xNode, xCat := quotients(ours, theirs), quotients(ours, plain)
	b.ReportMetric(median(xNode), "x-node")
	b.ReportMetric(median(xCat), "x-cat")
	b.ReportMetric(median(ours), "MB/cpu-s")
	b.Logf("%.0f MB of events, %d bytes of text, sha256 %.12s: decoder %.0f MB per CPU second, node %.0f, cat %.0f; "+
		"%.1f times node (half of the runs between %.1f and %.1f), %.2f times cat",
		float64(size)/1e6, want.Transcript.Bytes, want.Transcript.SHA256, median(ours), median(theirs), median(plain),
		median(xNode), xNode[len(xNode)/4], xNode[len(xNode)*3/4], median(xCat))
}

// quotients divides pair by pair and sorts.
func quotients(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	slices.Sort(all)
	return all
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
