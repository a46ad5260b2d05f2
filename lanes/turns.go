package lanes

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turnPatience is after how long a piece of work is taken to wait for something, a
// program, a disk that is slow or hangs: that needs no processor, so its turn goes on.
const turnPatience = 50 * time.Millisecond

// mostAhead is how many pieces under way go before one that waits to begin, so that it
// does not wait for ever on a machine that has too much to do.
const mostAhead = 8

// Turns bound how much work on files and processes goes on at once. A system call keeps
// a processor that the program cannot take away, so a hundred rounds that are set up at
// the same moment would have everybody who asks something meanwhile wait behind them
// all. Work under way goes before work that begins something, though not for ever, else
// in the order of asking. While more of it waits, work that begins something has its turn
// rest for as long as it took. A nil *Turns bounds nothing.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting [2][]chan struct{} // by urgency
	ahead   int                // how many under way went before one that waits to begin
}

// Urgency is who gets the next turn.
type Urgency int

// UnderWay is what somebody waits for who has begun, Beginning what adds to the load.
const (
	UnderWay Urgency = iota
	Beginning
)

// NewTurns lets so many pieces of work go on at once.
func NewTurns(atOnce int) *Turns { return &Turns{free: atOnce} }

// Take waits for a turn. The work that has it calls end when it is done; the turn ends
// by itself when that takes long. When ctx ends first the work goes on without one,
// which is the end of it soon.
func (t *Turns) Take(ctx context.Context, urgency Urgency) (end func()) {
	if t == nil {
		return func() {}
	}
	mine := t.queue(urgency)
	select {
	case <-mine:
	case <-ctx.Done():
		if t.leave(urgency, mine) {
			return func() {}
		}
	}
	began := time.Now()
	var once sync.Once
	pass := func() { once.Do(func() { t.pass(urgency, time.Since(began)) }) }
	overdue := time.AfterFunc(turnPatience, pass)
	return func() {
		overdue.Stop()
		pass()
	}
}

// queue returns what is closed when the turn has come.
func (t *Turns) queue(urgency Urgency) chan struct{} {
	mine := make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting[urgency] = append(t.waiting[urgency], mine)
	t.grant()
	return mine
}

// leave gives up waiting; it is false when the turn has come meanwhile.
func (t *Turns) leave(urgency Urgency, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting[urgency], mine)
	if at < 0 {
		return false
	}
	t.waiting[urgency] = slices.Delete(t.waiting[urgency], at, at+1)
	return true
}

// pass ends a turn that took so long.
func (t *Turns) pass(urgency Urgency, took time.Duration) {
	t.mu.Lock()
	rests := urgency == Beginning && len(t.waiting[Beginning]) > 0
	t.mu.Unlock()
	if rests {
		time.AfterFunc(took, t.put)
		return
	}
	t.put()
}

// put gives a turn back.
func (t *Turns) put() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	t.grant()
}

// grant gives free turns to those who wait.
func (t *Turns) grant() {
	for t.free > 0 {
		urgency := t.next()
		if len(t.waiting[urgency]) == 0 {
			return
		}
		close(t.waiting[urgency][0])
		t.waiting[urgency] = t.waiting[urgency][1:]
		t.free--
	}
}

// next is whose turn it is.
func (t *Turns) next() Urgency {
	if len(t.waiting[UnderWay]) == 0 || len(t.waiting[Beginning]) > 0 && t.ahead == mostAhead {
		t.ahead = 0
		return Beginning
	}
	if len(t.waiting[Beginning]) > 0 {
		t.ahead++
	}
	return UnderWay
}
