package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// asking is a session of every client that asks before ten tool calls a second, which is
// more than an agent makes, and after each the daemon how it is.
type asking struct {
	cancel context.CancelFunc
	asking sync.WaitGroup
	enough sync.WaitGroup // until every client has asked as often as it has to

	mu           sync.Mutex
	hooks, plain []time.Duration
}

// roundTrips are those of hooks and of questions that need no work, sorted.
type roundTrips struct{ hooks, plain []time.Duration }

func (r roundTrips) String() string {
	if len(r.hooks) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, round trip p50 %v p99 %v, %.1f and %.1f times that of a question without work", len(r.hooks),
		quantile(r.hooks, 0.5), quantile(r.hooks, 0.99), over(r.hooks, r.plain, 0.5), over(r.hooks, r.plain, 0.99))
}

func quantile(sorted []time.Duration, share float64) time.Duration {
	return sorted[int(share*float64(len(sorted)-1))].Round(10 * time.Microsecond)
}

// over is a quantile of some times over that of others.
func over(some, others []time.Duration, share float64) float64 {
	return some[int(share*float64(len(some)-1))].Seconds() / others[int(share*float64(len(others)-1))].Seconds()
}

// ask begins to ask.
func (g *ground) ask(connections []*api.Client, workdir string) *asking {
	ctx, cancel := context.WithCancel(g.t.Context())
	a := &asking{cancel: cancel}
	event := json.RawMessage(`{"toolName":"bash","toolCallId":"1","input":{"command":"git status"}}`)
	a.enough.Add(len(connections))
	for n, client := range connections {
		session := supervisor.Session{ID: fmt.Sprintf("hooks-%d", n), Workdir: workdir}
		a.asking.Go(func() {
			left := *hooks
			defer func() {
				if left > 0 {
					a.enough.Done()
				}
			}()
			offset := time.Duration(n) * 100 * time.Millisecond / time.Duration(len(connections))
			pause := time.NewTimer(offset) // sessions do not ask in step
			defer pause.Stop()
			for {
				select {
				case <-pause.C:
					pause.Reset(100 * time.Millisecond)
				case <-ctx.Done():
					return
				}
				began := time.Now()
				_, err := client.Hook(g.t.Context(), session, "tool_call", event)
				hooked := time.Since(began)
				if err == nil {
					_, err = client.Health(g.t.Context())
				}
				asked := time.Since(began) - hooked
				if err != nil {
					g.t.Errorf("session %s: the daemon did not answer: %v", session.ID, err)
					return
				}
				a.mu.Lock()
				a.hooks, a.plain = append(a.hooks, hooked), append(a.plain, asked)
				a.mu.Unlock()
				if left--; left == 0 {
					a.enough.Done()
				}
			}
		})
	}
	return a
}

// awaitAll returns when every client has asked for *hooks times.
func (a *asking) awaitAll() { a.enough.Wait() }

// stop returns what was measured.
func (a *asking) stop() roundTrips {
	a.cancel()
	a.asking.Wait()
	slices.Sort(a.hooks)
	slices.Sort(a.plain)
	return roundTrips{a.hooks, a.plain}
}
