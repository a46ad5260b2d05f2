package bench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkDecoderMemory tells how far one line of 50 MB drives up the memory of a
// process that reads it, beyond what it needs for an empty stream. The first two are
// lines whose bodies are skipped, the third is the answer itself.
func BenchmarkDecoderMemory(b *testing.B) {
	const lineBytes = 50 << 20
	for _, kind := range []string{"agent_end", "tool_execution_end", "message_end"} {
		b.Run(kind, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "stream.jsonl")
			want := printLongLine(b, file, kind, lineBytes)
			for b.Loop() {
				compareMemory(b, kind, file, want)
			}
		})
	}
}

// memoryRuns is how often each program reads the long line.
const memoryRuns = 3

func compareMemory(b *testing.B, kind, file string, want seen) {
	b.Helper()
	decoder, node := decoderProgram(b), nodeProgram(b)
	idle, peaks := map[string][]float64{}, map[string][]float64{}
	for range memoryRuns {
		for _, p := range []program{decoder, node} {
			start, _ := p.read(b, os.DevNull)
			got, _ := p.read(b, file)
			if got.PeakKiB == 0 {
				b.Skip("the peak memory of a process is not known on this system")
			}
			idle[p.name] = append(idle[p.name], float64(start.PeakKiB)/1024)
			peaks[p.name] = append(peaks[p.name], float64(got.PeakKiB)/1024)
			got.PeakKiB = 0
			if got != want {
				b.Fatalf("%s saw %+v, want %+v", p.name, got, want)
			}
		}
	}
	added := func(p program) float64 { return median(peaks[p.name]) - median(idle[p.name]) }
	b.ReportMetric(added(decoder), "peak-MiB")
	b.ReportMetric(added(node), "peak-MiB-node")
	b.Logf("one %s line of 50 MiB: decoder %.1f MiB above its idle %.1f, node %.1f above %.1f",
		kind, added(decoder), median(idle[decoder.name]), added(node), median(idle[node.name]))
}

// printLongLine writes the stream of a short conversation whose last line of the
// kind is made lineBytes long, and returns what a reader of it should see.
func printLongLine(b *testing.B, name, kind string, lineBytes int) seen {
	b.Helper()
	const result, final = "the result", "the answer"
	c := conversation{turns: []turn{{call: &call{tool: "read", path: "a.txt", result: result}}, {text: []string{final}}}}
	unit := newConversation(size{turns: 1, resultBytes: 1 << 20}).turns[0].call.result
	quoted := quote(unit)
	quoted = quoted[1 : len(quoted)-1]
	times := lineBytes/len(quoted) + 1
	want := seen{Transcript: digestOf(final), Answer: digestOf(final)}
	replaced := result
	if kind == "message_end" {
		replaced = final
		want.Answer = digestOf(strings.TrimSpace(strings.Repeat(unit, times)))
	}
	stream := printed(b, c, newPi)
	at := strings.LastIndex(stream, `{"type":"`+kind+`"`)
	at += strings.Index(stream[at:], replaced)
	long := stream[:at] + strings.Repeat(quoted, times) + stream[at+len(replaced):]
	if err := os.WriteFile(name, []byte(long), 0o600); err != nil {
		b.Fatal(err)
	}
	return want
}
