package lanestest

import (
	"testing"
	"time"

	"pilothouse/lanes"
)

// place is one that a lane has asked for.
type place struct {
	host    *Host
	granted chan struct{}
	giveWay func() // of a spare, nil else
	yields  bool
}

// Queue implements lanes.Host.
func (h *Host) Queue() lanes.Place {
	p := &place{host: h, granted: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.places[p] = true
	if h.Full {
		h.queue <- p
	} else {
		close(p.granted)
	}
	return p
}

// Spare implements lanes.Host.
func (h *Host) Spare(giveWay func()) (lanes.Place, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.spares()) >= h.Spares {
		return nil, false
	}
	p := &place{host: h, granted: make(chan struct{}), giveWay: giveWay}
	close(p.granted)
	h.places[p] = true
	return p, true
}

// spares are the places of children that have no task; h.mu is held.
func (h *Host) spares() []*place {
	var spares []*place
	for p := range h.places {
		if p.giveWay != nil {
			spares = append(spares, p)
		}
	}
	return spares
}

// Grant waits until a lane has asked a full host for a place and gives it one.
func (h *Host) Grant(t testing.TB) {
	t.Helper()
	select {
	case p := <-h.queue:
		close(p.granted)
	case <-time.After(patience):
		t.Fatal("no lane asks for a place")
	}
}

// Reclaim has all spares give way.
func (h *Host) Reclaim() {
	h.mu.Lock()
	spares := h.spares()
	for _, p := range spares {
		p.yields = true
	}
	h.mu.Unlock()
	for _, p := range spares {
		p.giveWay()
	}
}

// Places counts the places that lanes have or wait for.
func (h *Host) Places() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.places)
}

// Granted implements lanes.Place.
func (p *place) Granted() <-chan struct{} { return p.granted }

// Keep implements lanes.Place.
func (p *place) Keep() bool {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	if p.yields {
		return false
	}
	p.giveWay = nil
	return true
}

// Release implements lanes.Place.
func (p *place) Release() {
	p.host.mu.Lock()
	defer p.host.mu.Unlock()
	delete(p.host.places, p)
}
