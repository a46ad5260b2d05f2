package lanes

import (
	"context"
	"sync"
	"time"
)

// Children start side by side. When some of them fight for pi's lock files
// (faults C34), starts are kept apart for a while: by paceGap, long enough for a
// pi to have its locks and be done with them, until paceTime has passed without
// another fight.
const (
	paceGap  = 150 * time.Millisecond
	paceTime = time.Minute
)

// Pace spreads the starts of children after a fight for pi's lock files. One Pace
// serves all hosts of a process, because they share pi's folder. The zero value is
// ready.
type Pace struct {
	mu     sync.Mutex
	spread time.Time // until when starts are spread
	next   time.Time // the earliest next start
}

// Contended notes a fight.
func (p *Pace) Contended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spread = time.Now().Add(paceTime)
}

// wait returns when a child may be started, or with the error of ctx.
func (p *Pace) wait(ctx context.Context) error {
	delay := p.delay(time.Now())
	if delay == 0 {
		return nil
	}
	due := time.NewTimer(delay)
	defer due.Stop()
	select {
	case <-due.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// delay takes the next place in the queue of starts.
func (p *Pace) delay(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !now.Before(p.spread) {
		return 0
	}
	start := now
	if p.next.After(now) {
		start = p.next
	}
	p.next = start.Add(paceGap)
	return start.Sub(now)
}
