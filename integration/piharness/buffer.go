package piharness

import (
	"strings"
	"sync"
)

// Buffer is read by a test while a program or a model writes to it.
type Buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
