package supervisor

import (
	"slices"
	"sync"
	"time"

	"pilothouse/lanes"
)

// scheduler has the places of all children of this process. Lanes of one run get them
// in the order in which they ask; of several runs that wait, each gets one in turn. So
// a run that comes waits at most one turn of each other run, however much those have
// queued. Children without a task (spares) take only places that nobody waits for, and
// are ended when somebody does.
//
// Invariant: while somebody waits, all places are taken, and as many spares as there
// are waiters, if there are so many, have been asked to give way.
type scheduler struct {
	limit  int // places, from 1
	spares int // of them for children without a task
	// waited is told of each lane that got a place how long it had waited.
	waited func(time.Duration)

	mu      sync.Mutex
	taken   int
	warm    []*place // spares that may stay, the oldest first
	leaving int      // spares that were asked to give way and are not gone
	waiting int
	turns   []*runQueue // runs that wait, the next first
	byRun   map[runKey]*runQueue
}

// runQueue are the places that one run waits for, in the order in which it asked.
type runQueue struct {
	run    runKey
	places []*place
}

func newScheduler(limit, spares int) *scheduler {
	return &scheduler{limit: limit, spares: spares, waited: func(time.Duration) {}, byRun: map[runKey]*runQueue{}}
}

// of are the places as the lanes of one run see them.
func (s *scheduler) of(run runKey) lanes.Places { return runPlaces{s, run} }

type runPlaces struct {
	*scheduler
	run runKey
}

// standing is where a place stands.
type standing int

const (
	placeQueued standing = iota
	placeAtWork          // a child with a task has it
	placeSpare           // a child without a task has it
	placeYields          // the same, and somebody else waits for it
	placeFree
)

// place implements [lanes.Place]. All but granted is guarded by the scheduler.
type place struct {
	*scheduler
	run      runKey
	standing standing
	granted  chan struct{}
	giveWay  func() // of a spare
	asked    time.Time
}

// Queue implements [lanes.Places].
func (r runPlaces) Queue() lanes.Place {
	p := &place{scheduler: r.scheduler, run: r.run, granted: make(chan struct{}), asked: time.Now()}
	r.mu.Lock()
	t := r.byRun[r.run]
	if t == nil {
		t = &runQueue{run: r.run}
		r.byRun[r.run] = t
		r.turns = append(r.turns, t)
	}
	t.places = append(t.places, p)
	r.waiting++
	r.grant()
	displaced := r.displace()
	r.mu.Unlock()
	for _, spare := range displaced { // may end in a mailbox whose owner is asking us something
		spare.giveWay()
	}
	return p
}

// Spare implements [lanes.Places].
func (r runPlaces) Spare(giveWay func()) (lanes.Place, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken >= r.limit || len(r.warm)+r.leaving >= r.spares {
		return nil, false
	}
	p := &place{scheduler: r.scheduler, run: r.run, standing: placeSpare, granted: make(chan struct{}), giveWay: giveWay}
	close(p.granted)
	r.taken++
	r.warm = append(r.warm, p)
	return p, true
}

// grant gives free places to those whose turn it is.
func (s *scheduler) grant() {
	for s.taken < s.limit && s.waiting > 0 {
		t := s.turns[0]
		s.turns = s.turns[1:]
		p := t.places[0]
		t.places = t.places[1:]
		if len(t.places) > 0 {
			s.turns = append(s.turns, t)
		} else {
			delete(s.byRun, t.run)
		}
		s.waiting--
		s.taken++
		p.standing = placeAtWork
		close(p.granted)
		s.waited(time.Since(p.asked))
	}
}

// displace chooses the spares whose places are needed, the youngest first: their tasks
// are the farthest away.
func (s *scheduler) displace() (chosen []*place) {
	for s.leaving < s.waiting && len(s.warm) > 0 {
		last := len(s.warm) - 1
		p := s.warm[last]
		s.warm = s.warm[:last]
		s.leaving++
		p.standing = placeYields
		chosen = append(chosen, p)
	}
	return chosen
}

// Granted implements [lanes.Place].
func (p *place) Granted() <-chan struct{} { return p.granted }

// Keep implements [lanes.Place].
func (p *place) Keep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.standing == placeSpare {
		p.forgetSpare()
		p.standing = placeAtWork
	}
	return p.standing == placeAtWork
}

func (p *place) forgetSpare() {
	p.warm = slices.DeleteFunc(p.warm, func(other *place) bool { return other == p })
}

// Release implements [lanes.Place].
func (p *place) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.standing
	p.standing = placeFree
	switch was {
	case placeFree:
		return
	case placeQueued:
		p.leaveQueue()
		return
	case placeSpare:
		p.forgetSpare()
	case placeYields:
		p.leaving--
	}
	p.taken--
	p.grant()
}

// leaveQueue takes back what a lane has asked for.
func (p *place) leaveQueue() {
	t := p.byRun[p.run]
	t.places = slices.DeleteFunc(t.places, func(other *place) bool { return other == p })
	p.waiting--
	if len(t.places) == 0 {
		delete(p.byRun, t.run)
		p.turns = slices.DeleteFunc(p.turns, func(other *runQueue) bool { return other == t })
	}
}

// placeLoad is what the places are used for.
type placeLoad struct{ atWork, spare, waiting int }

func (s *scheduler) load() placeLoad {
	s.mu.Lock()
	defer s.mu.Unlock()
	spares := len(s.warm) + s.leaving
	return placeLoad{s.taken - spares, spares, s.waiting}
}
