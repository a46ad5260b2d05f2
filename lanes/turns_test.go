package lanes_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pilothouse/lanes"
)

// works has pieces of work take turns, each asking when those before it wait, and
// returns in which order they came to it. A piece is its urgency.
func works(ctx context.Context, turns *lanes.Turns, pieces ...lanes.Urgency) (order []int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for n, urgency := range pieces {
		all.Go(func() {
			defer turns.Take(ctx, urgency)()
			mu.Lock()
			defer mu.Unlock()
			order = append(order, n)
		})
		synctest.Wait()
	}
	all.Wait()
	return order
}

func TestTurnsGoToWorkUnderWayFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := lanes.NewTurns(1)
		end := turns.Take(t.Context(), lanes.Beginning)
		time.AfterFunc(time.Millisecond, end)
		order := works(t.Context(), turns, lanes.Beginning, lanes.UnderWay, lanes.Beginning, lanes.UnderWay)
		if want := []int{1, 3, 0, 2}; !slices.Equal(order, want) {
			t.Errorf("the work was done in the order %v, want %v", order, want)
		}
	})
}

func TestABeginningIsNotPutOffForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := lanes.NewTurns(1)
		end := turns.Take(t.Context(), lanes.UnderWay)
		time.AfterFunc(time.Millisecond, end)
		pieces := make([]lanes.Urgency, 30) // under way, but for the first two
		pieces[0], pieces[1] = lanes.Beginning, lanes.Beginning
		order := works(t.Context(), turns, pieces...)
		if first, second := slices.Index(order, 0), slices.Index(order, 1); first != 8 || second != 17 {
			t.Errorf("those that begin came as numbers %d and %d, want 8 and 17: %v", first, second, order)
		}
	})
}

func TestNoMoreTurnsAtOnceThanThereAre(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			turns := lanes.NewTurns(atOnce)
			var mu sync.Mutex
			var now, most, done int
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					defer turns.Take(t.Context(), lanes.UnderWay)()
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					now--
					done++
					mu.Unlock()
				})
			}
			all.Wait()
			if most != atOnce || done != 20 {
				t.Errorf("%d pieces of work were done, %d at once; want 20 and %d", done, most, atOnce)
			}
		})
	}
}

// A file system that hangs must hold up nobody but those who work on it.
func TestWorkThatHangsLosesItsTurnOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := lanes.NewTurns(1)
		hung := turns.Take(t.Context(), lanes.UnderWay)
		began := time.Now()
		end := turns.Take(t.Context(), lanes.Beginning)
		if waited := time.Since(began); waited == 0 || waited > time.Second {
			t.Errorf("the next waited %v", waited)
		}
		hung() // it goes on after all: it has no second turn to give
		second := make(chan struct{})
		go func() {
			defer close(second)
			defer turns.Take(t.Context(), lanes.UnderWay)()
		}()
		synctest.Wait()
		select {
		case <-second:
			t.Error("two have a turn at once where there is one")
		default:
		}
		end()
		<-second
	})
}

func TestWhoeverGivesUpWaitingTakesNoTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := lanes.NewTurns(1)
		end := turns.Take(t.Context(), lanes.UnderWay)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		turns.Take(ctx, lanes.UnderWay)() // returns although the turn is taken, and passes on none
		time.AfterFunc(time.Millisecond, end)
		if order := works(t.Context(), turns, lanes.Beginning, lanes.Beginning); !slices.Equal(order, []int{0, 1}) {
			t.Errorf("the work was done in the order %v", order)
		}
	})
}

// A burst of work that begins something leaves as much time to others as it takes.
func TestTurnsRestWhileMoreIsToBegin(t *testing.T) {
	t.Parallel()
	for urgency, want := range map[lanes.Urgency]time.Duration{
		lanes.UnderWay:  3 * 10 * time.Millisecond,
		lanes.Beginning: (3 + 2) * 10 * time.Millisecond, // nobody waits behind the last
	} {
		synctest.Test(t, func(t *testing.T) {
			turns := lanes.NewTurns(1)
			began := time.Now()
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					defer turns.Take(t.Context(), urgency)()
					time.Sleep(10 * time.Millisecond)
				})
			}
			all.Wait()
			if took := time.Since(began); took != want {
				t.Errorf("three pieces of urgency %d took %v, want %v", urgency, took, want)
			}
		})
	}
}

func TestWithoutTurnsAllGoOnAtOnce(t *testing.T) {
	t.Parallel()
	var turns *lanes.Turns
	first, second := turns.Take(t.Context(), lanes.Beginning), turns.Take(t.Context(), lanes.Beginning)
	first()
	second()
}
