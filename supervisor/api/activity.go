package api

import (
	"context"
	"sync"
	"time"
)

// activity knows for how long nothing was asked. Time is monotonic.
type activity struct {
	mu      sync.Mutex
	busy    int // requests being answered
	since   time.Time
	changed chan struct{} // closed and replaced when the last request ends
}

func newActivity() *activity {
	return &activity{since: time.Now(), changed: make(chan struct{})}
}

// begin counts a request until the returned function is called.
func (a *activity) begin() (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.busy--
		a.since = time.Now()
		if a.busy == 0 {
			close(a.changed)
			a.changed = make(chan struct{})
		}
	}
}

// awaitIdle waits until there was no request for a time and free holds then. While it
// does not, the time starts anew.
func (a *activity) awaitIdle(ctx context.Context, quiet time.Duration, free func() bool) error {
	for {
		a.mu.Lock()
		busy, left, changed := a.busy > 0, quiet-time.Since(a.since), a.changed
		a.mu.Unlock()
		if !busy && left <= 0 {
			if free() {
				return nil
			}
			left = quiet
		}
		var passed <-chan time.Time
		if !busy {
			passed = time.After(left)
		}
		select {
		case <-passed:
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
