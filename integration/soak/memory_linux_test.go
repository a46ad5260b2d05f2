package soak_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"pilothouse/lanes"
	"pilothouse/supervisor"
)

const (
	lanesPerRound = 3
	maxLane       = 1 << 20 // bytes of memory for one live lane
	enoughLanes   = 300     // below, what a lane needs drowns in what the process needs
)

func TestMemoryOfALiveLaneIsBoundedWhateverItHasStreamed(t *testing.T) {
	g := newGround(t, *first)
	dirs := make([]string, *workspaces)
	for n := range dirs {
		dirs[n] = g.workspace(n)
	}
	warmUp := g.hold(dirs[:1])
	warmUp.release()
	runtime.GC()
	rss, heap := memory(t, "VmRSS"), heapInUse()
	held := g.hold(dirs)
	rss, opened := memory(t, "VmRSS")-rss, descriptors(t)
	runtime.GC()
	heap = heapInUse() - heap
	live := lanesPerRound * len(dirs)
	t.Logf("%d live lanes that streamed %d MiB each in %.1f s (%.0f MB/s): %d KiB of RSS and %d KiB of heap a lane; peak RSS %d MiB, %d descriptors",
		live, heldBytes>>20, held.took.Seconds(), float64(live)*heldBytes/1e6/held.took.Seconds(),
		rss/int64(live)>>10, heap/int64(live)>>10, memory(t, "VmHWM")>>20, opened)
	if live >= enoughLanes && !raceEnabled && max(rss, heap) > maxLane*int64(live) {
		t.Errorf("a live lane takes %d KiB of RSS and %d KiB of heap, want at most %d KiB", rss/int64(live)>>10, heap/int64(live)>>10, maxLane>>10)
	}
	held.release()
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse) //nolint:gosec // far below the limit
}

// held are rounds whose lanes have streamed and now wait.
type held struct {
	cancel context.CancelCauseFunc
	done   sync.WaitGroup
	took   time.Duration
}

// hold starts a round of three lanes in each workspace and returns when every lane
// has been read to the last event that its child has printed.
func (g *ground) hold(dirs []string) *held {
	g.t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	h := &held{cancel: cancel}
	var reading sync.WaitGroup
	began := time.Now()
	for n, dir := range dirs {
		c := &call{
			t: g.t, name: fmt.Sprintf("workspace %d", n), journal: filepath.Join(g.t.TempDir(), "journal"),
			cancelAt: -1, started: make(chan struct{}),
		}
		req := supervisor.RefineRequest{
			Session:  g.session(dir, fmt.Sprintf("hold:%d", heldBytes), c.journal),
			PlanPath: "PLAN.md", Reviewers: lanesPerRound, Model: supervisor.ModelAnswer{Answered: true},
		}
		reading.Add(lanesPerRound)
		reads := map[string]bool{}
		h.done.Go(func() {
			ok := c.run(func(_ context.Context, watch supervisor.Watch) (supervisor.RoundResult, error) {
				return g.system.Refine(ctx, req, func(event any) {
					watch(event)
					if p, ok := event.(lanes.Progress); ok && p.Phase == "tool: read" && !reads[p.LaneID] {
						reads[p.LaneID] = true
						reading.Done()
					}
				})
			})
			if !ok {
				return
			}
			c.check(g.root(dir))
			for _, lane := range c.result.Lanes {
				if lane.Status != lanes.Cancelled || lane.Attempts != 1 {
					c.errorf("lane %s is %s after %d attempts", lane.LaneID, lane.Status, lane.Attempts)
				}
			}
		})
	}
	reading.Wait()
	h.took = time.Since(began)
	return h
}

// release cancels the rounds and waits until they are checked.
func (h *held) release() {
	h.cancel(errors.New("measured"))
	h.done.Wait()
}
