package supervisor

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/lanes"
)

func isGranted(p lanes.Place) bool {
	select {
	case <-p.Granted():
		return true
	default:
		return false
	}
}

// asked is a place that the model of the scheduler knows of.
type asked struct {
	lanes.Place
	run     string
	seen    bool // it was granted, and the model knows
	spare   bool
	giveWay *atomic.Int32
}

// model checks a scheduler from outside.
type model struct {
	*rapid.T
	s     *scheduler
	limit int
	live  []*asked // in the order in which they asked
	// since counts, for each run that waits, the turns of each other run since it came
	// or had a turn itself.
	since map[string]map[string]int
}

func (m *model) waitingOf(run string) (all []*asked) {
	for _, a := range m.live {
		if !a.seen && !a.spare && (run == "" || a.run == run) {
			all = append(all, a)
		}
	}
	return all
}

func (m *model) spares() (all []*asked) {
	for _, a := range m.live {
		if a.spare {
			all = append(all, a)
		}
	}
	return all
}

// check takes note of grants, at most one of which an operation has made, and checks
// that each was due.
func (m *model) check() {
	var granted []*asked
	for _, a := range m.waitingOf("") {
		if isGranted(a) {
			granted = append(granted, a)
		}
	}
	if len(granted) > 1 {
		m.Fatalf("one place was given to %d lanes", len(granted))
	}
	for _, a := range granted {
		if first := m.waitingOf(a.run)[0]; first != a {
			m.Fatalf("a lane of run %s was served before one that had asked first", a.run)
		}
		a.seen = true
		for run, counts := range m.since {
			if run != a.run {
				if counts[a.run]++; counts[a.run] > 1 {
					m.Fatalf("run %s had %d turns while run %s waited for one", a.run, counts[a.run], run)
				}
			}
		}
		delete(m.since, a.run)
		if len(m.waitingOf(a.run)) > 0 {
			m.since[a.run] = map[string]int{}
		}
	}
	taken, waiting, asked := 0, len(m.waitingOf("")), 0
	for _, a := range m.live {
		if a.seen || a.spare {
			taken++
		}
	}
	for _, a := range m.spares() {
		asked += int(a.giveWay.Load())
		if a.giveWay.Load() > 1 {
			m.Fatal("a spare was asked twice to give way")
		}
	}
	switch {
	case taken > m.limit:
		m.Fatalf("%d children at once, more than %d", taken, m.limit)
	case waiting > 0 && taken < m.limit:
		m.Fatalf("%d lanes wait although only %d of %d places are taken", waiting, taken, m.limit)
	case asked < min(waiting, len(m.spares())):
		m.Fatalf("%d lanes wait and only %d of %d spares were asked to give way", waiting, asked, len(m.spares()))
	}
	if diff := cmp.Diff(placeLoad{taken - len(m.spares()), len(m.spares()), waiting}, m.s.load(), cmp.AllowUnexported(placeLoad{})); diff != "" {
		m.Fatal(diff)
	}
}

func (m *model) release(a *asked) {
	m.live = slices.DeleteFunc(m.live, func(other *asked) bool { return other == a })
	if !a.seen && !a.spare && len(m.waitingOf(a.run)) == 0 {
		delete(m.since, a.run)
	}
	a.Release()
	if rapid.Bool().Draw(m.T, "twice") {
		a.Release() // only the first counts
	}
	m.check()
}

func TestPlacesGoRoundTheRunsAndNoneIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit, spares := rapid.IntRange(1, 6).Draw(rt, "limit"), rapid.IntRange(-1, 4).Draw(rt, "spares")
		m := &model{T: rt, s: newScheduler(limit, spares), limit: limit, since: map[string]map[string]int{}}
		runs := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		rt.Repeat(map[string]func(*rapid.T){
			"queue": func(rt *rapid.T) {
				a := &asked{run: runs.Draw(rt, "run"), giveWay: new(atomic.Int32)}
				a.Place = m.s.of(runKey{"root", a.run}).Queue()
				m.live = append(m.live, a)
				if m.since[a.run] == nil {
					m.since[a.run] = map[string]int{}
				}
				m.check()
			},
			"spare": func(rt *rapid.T) {
				a := &asked{run: runs.Draw(rt, "run"), spare: true, giveWay: new(atomic.Int32)}
				l := m.s.load()
				place, ok := m.s.of(runKey{"root", a.run}).Spare(func() { a.giveWay.Add(1) })
				if want := l.waiting == 0 && l.atWork+l.spare < limit && l.spare < spares; ok != want {
					rt.Fatalf("a spare was given a place: %v, with %+v", ok, l)
				}
				if ok {
					a.Place = place
					m.live = append(m.live, a)
				}
				m.check()
			},
			"keep": func(rt *rapid.T) {
				all := m.spares()
				if len(all) == 0 {
					rt.Skip()
				}
				a := rapid.SampledFrom(all).Draw(rt, "place")
				if kept := a.Keep(); kept != (a.giveWay.Load() == 0) {
					rt.Fatalf("kept %v, asked to give way %d times", kept, a.giveWay.Load())
				} else if kept {
					a.spare, a.seen = false, true
				}
				m.check()
			},
			"release": func(rt *rapid.T) {
				if len(m.live) == 0 {
					rt.Skip()
				}
				m.release(rapid.SampledFrom(m.live).Draw(rt, "place"))
			},
		})
		for len(m.live) > 0 { // who waits is served when those before are gone
			before := len(m.live)
			for _, a := range slices.Clone(m.live) {
				if a.seen || a.spare {
					m.release(a)
				}
			}
			if len(m.live) == before {
				rt.Fatalf("%d lanes wait for ever", before)
			}
		}
		if len(m.s.byRun)+len(m.s.turns)+len(m.s.warm) != 0 {
			rt.Fatal("the scheduler keeps something of runs that are gone")
		}
	})
}

func TestARunThatComesWaitsOneTurnHoweverMuchAnotherHasQueued(t *testing.T) {
	t.Parallel()
	s := newScheduler(2, 0)
	var burst []lanes.Place
	for range 102 {
		burst = append(burst, s.of(runKey{"root", "burst"}).Queue())
	}
	late := s.of(runKey{"root", "late"})
	first, second := late.Queue(), late.Queue()
	for n, step := range []struct{ first, second bool }{{false, false}, {false, false}, {true, false}, {true, false}, {true, true}} {
		if isGranted(first) != step.first || isGranted(second) != step.second {
			t.Errorf("after %d places were given back, the run has its first %v and its second %v, want %+v", n, isGranted(first), isGranted(second), step)
		}
		burst[n].Release()
	}
}

func TestAPlaceOfALaneThatLeftTheQueueGoesToTheNext(t *testing.T) {
	t.Parallel()
	s := newScheduler(1, 0)
	places := s.of(runKey{"root", "run"})
	first, gone, next := places.Queue(), places.Queue(), places.Queue()
	gone.Release()
	first.Release()
	if isGranted(gone) || !isGranted(next) {
		t.Errorf("the one that left has the place: %v, the next: %v", isGranted(gone), isGranted(next))
	}
	if gone.Keep() {
		t.Error("a place that was given back is kept")
	}
}

func TestManyLanesAtOnceNeverHaveMoreThanThereIs(t *testing.T) {
	t.Parallel()
	const limit = 3
	s := newScheduler(limit, 2)
	var (
		all  sync.WaitGroup
		have atomic.Int32
	)
	for n := range 24 {
		all.Go(func() {
			places := s.of(runKey{"root", fmt.Sprint(n % 5)})
			for range 200 {
				if yields := make(chan struct{}, 1); n%3 == 0 {
					if warm, ok := places.Spare(func() { yields <- struct{}{} }); ok {
						if !warm.Keep() {
							<-yields
						} else if have.Add(1) > limit {
							t.Error("too many")
						} else {
							have.Add(-1)
						}
						warm.Release()
						continue
					}
				}
				p := places.Queue()
				<-p.Granted()
				if have.Add(1) > limit {
					t.Error("too many")
				}
				have.Add(-1)
				p.Release()
			}
		})
	}
	all.Wait()
	if l := s.load(); l != (placeLoad{}) {
		t.Errorf("%+v is left", l)
	}
}

func TestTheMachineHasRoomForItsMemoryAndItsCores(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		memory uint64
		known  bool
		cores  int
		want   int
	}{
		"memory for less than its cores serve": {8 << 30, true, 16, 40},
		"cores that serve less than fits":      {8 << 30, true, 2, 16},
		"hardly any memory":                    {100 << 20, true, 2, 3},
		"memory that is not known":             {0, false, 2, 16},
	} {
		if got := roomFor(test.memory, test.known, test.cores); got != test.want {
			t.Errorf("%s: %d children, want %d", name, got, test.want)
		}
	}
	if memory, known := availableMemory(); known && (memory < 1<<20 || memory > 1<<50) {
		t.Errorf("this machine has %d bytes available", memory)
	}
}
