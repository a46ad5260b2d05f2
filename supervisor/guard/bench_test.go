package guard_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pilothouse/supervisor/guard"
)

const ordinary = `cd packages/core && git log --oneline -20 -- src | head -5`

// verdicts measures a command and reports the 99th percentile beside the mean.
func verdicts(b *testing.B, command string, want guard.Decision) {
	b.Helper()
	policy := guard.Policy{Workspace: "/w/repo"}
	if got := policy.Shell(command); got.Decision != want {
		b.Fatalf("%s: %s", got.Decision, got.Reason)
	}
	b.ReportAllocs()
	times := make([]time.Duration, 0, b.N)
	for b.Loop() {
		start := time.Now()
		policy.Shell(command)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns/op")
}

func BenchmarkOrdinaryCommand(b *testing.B) { verdicts(b, ordinary, guard.Allow) }

func BenchmarkFiftySegments(b *testing.B) {
	verdicts(b, strings.TrimSuffix(strings.Repeat("git log -1 -- src | sort -k1,1; ", 25), "; "), guard.Allow)
}

func BenchmarkHostileCommand(b *testing.B) {
	for name, command := range hostile() {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) { verdicts(b, command, guard.Block) })
	}
}
