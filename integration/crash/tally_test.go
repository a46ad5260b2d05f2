package crash_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// tally counts what all workspaces have seen.
type tally struct {
	mu     sync.Mutex
	counts map[kind]int

	temporary, scratch int // files and prompts, the most that was left at once
}

func (a *tally) add(counts map[kind]int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts == nil {
		a.counts = map[kind]int{}
	}
	for what, n := range counts {
		a.counts[what] += n
	}
}

// litter keeps the most that was left behind at once.
func (a *tally) litter(l litter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.temporary, a.scratch = max(a.temporary, len(l.temporary)), max(a.scratch, len(l.scratch))
}

func (a *tally) report(t *testing.T, took time.Duration) {
	t.Helper()
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(a.counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", a.counts[what], what))
	}
	t.Logf("seed %d, %.0f s: %s; at most %d temporary files and %d prompts were left at once",
		*seed, took.Seconds(), strings.Join(parts, ", "), a.temporary, a.scratch)
}

// tail keeps the end of what a driver writes to its standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailLength = 64 << 10

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if over := len(b.text) - tailLength; over > 0 {
		b.text = b.text[over:]
	}
	return len(p), nil
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}

// defect tells that the driver found a defect of its own.
func (b *tail) defect() bool {
	text := b.String()
	return strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") || strings.Contains(text, "goroutine ")
}
