package lanestest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pilothouse/lanes"
	"pilothouse/lanes/proc"
)

// Host starts scripted children and accounts for them. Make one with [NewHost].
type Host struct {
	// Before, when set, runs in Start before a child exists. It may return an
	// error, wait for ctx, or panic. number counts the starts of the lane from 1.
	Before func(ctx context.Context, spec lanes.Spec, number int) error
	// Prepare, when set, changes a child before it runs.
	Prepare func(*Child)
	// Spares is how many children may be started ahead of their task; none by
	// default.
	Spares int
	// Full lets lanes wait for a place until the test grants one with [Host.Grant].
	Full bool

	script Script

	mu       sync.Mutex
	starts   map[string]int
	arrivals map[string]chan *Child
	children []*Child
	alive    int
	atWork   int             // children that have their task
	peak     int             // of atWork
	places   map[*place]bool // that are not given back
	queue    chan *place     // those that wait to be granted
	fights   int
}

// NewHost makes a host whose children all follow script. At the end of the test
// it fails for every child that runs on or was never waited for.
func NewHost(t testing.TB, script Script) *Host {
	h := NewUncheckedHost(script)
	t.Cleanup(func() {
		for _, complaint := range h.Complaints() {
			t.Error(complaint)
		}
	})
	return h
}

// NewUncheckedHost makes a host whose Complaints the test asks for itself.
func NewUncheckedHost(script Script) *Host {
	return &Host{script: script, starts: map[string]int{}, arrivals: map[string]chan *Child{}, places: map[*place]bool{}, queue: make(chan *place, 64)}
}

// Start implements lanes.Host.
func (h *Host) Start(ctx context.Context, spec lanes.Spec, traceparent string) (lanes.Child, error) {
	h.mu.Lock()
	h.starts[spec.ID]++
	number := h.starts[spec.ID]
	h.mu.Unlock()
	if h.Before != nil {
		if err := h.Before(ctx, spec, number); err != nil {
			return nil, err
		}
	}
	c := newChild(h, spec, traceparent, number)
	if h.Prepare != nil {
		h.Prepare(c)
	}
	h.mu.Lock()
	h.children = append(h.children, c)
	h.alive++
	arrivals := h.lane(spec.ID)
	h.mu.Unlock()
	go c.play(h.script)
	arrivals <- c
	return c, nil
}

// lane returns the channel of a lane's children; h.mu is held.
func (h *Host) lane(id string) chan *Child {
	if h.arrivals[id] == nil {
		h.arrivals[id] = make(chan *Child, 64)
	}
	return h.arrivals[id]
}

// Next returns the next child of a lane, as soon as it is started.
func (h *Host) Next(t testing.TB, laneID string) *Child {
	t.Helper()
	h.mu.Lock()
	arrivals := h.lane(laneID)
	h.mu.Unlock()
	select {
	case c := <-arrivals:
		return c
	case <-time.After(patience):
		t.Fatalf("lane %s starts no child", laneID)
		return nil
	}
}

// Starts counts the calls of Start for a lane, failed ones included.
func (h *Host) Starts(laneID string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.starts[laneID]
}

// Children returns all children so far, in the order of their start.
func (h *Host) Children() []*Child {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*Child(nil), h.children...)
}

// Alive counts the children that nobody has waited for to the end.
func (h *Host) Alive() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.alive
}

// Peak is the largest number of children that had their tasks at once.
func (h *Host) Peak() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.peak
}

// Complaints lists children that run on or were never waited for.
func (h *Host) Complaints() []string {
	var complaints []string
	for _, c := range h.Children() {
		select {
		case <-c.gone:
		default:
			complaints = append(complaints, "a child of lane "+c.Spec.ID+" was left running")
			continue
		}
		if !c.Waited() {
			complaints = append(complaints, "a child of lane "+c.Spec.ID+" was never waited for")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.places) != 0 {
		complaints = append(complaints, fmt.Sprintf("%d places were not given back", len(h.places)))
	}
	return complaints
}

// Contended implements lanes.Host.
func (h *Host) Contended() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fights++
}

// Fights counts the calls of Contended.
func (h *Host) Fights() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fights
}

func (h *Host) fed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.atWork++
	h.peak = max(h.peak, h.atWork)
}

func (h *Host) waitedFor(fed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive--
	if fed {
		h.atWork--
	}
}

// Code is the end of a child that exits by itself.
func Code(code int) proc.Exit { return proc.Exit{Code: code} }

// Killed is the end of a child by a signal.
func Killed(name string, number int) proc.Exit { return proc.Exit{Code: 128 + number, Signal: name} }
