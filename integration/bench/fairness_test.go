package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pilothouse/actors"
	"pilothouse/integration/piharness"
	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// burstRounds is how many rounds, of a batch each, one session asks for at once.
const burstRounds = 20

// shortPi is a program in the place of pi whose model takes 50 ms.
const shortPi = `#!/bin/sh
cat >/dev/null
sleep 0.05
printf '%s\n' '{"type":"session","version":3,"id":"stub"}' '{"type":"agent_start"}' '{"type":"turn_start"}'
printf '%s\n' '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"# Fine"}],"model":"stub","stopReason":"stop","usage":{"input":10,"output":5,"cost":{"total":0.25}}}}'
printf '%s\n' '{"type":"agent_end","messages":[],"willRetry":false}' '{"type":"agent_settled","aborted":false}'
`

// BenchmarkFairness compares how long a small round takes that comes when another
// session has a burst of rounds queued for three places, with the same round of the
// session of the burst, which waits behind all of it as in one plain queue, and with
// the round alone.
//
//	x-queue  of another session over in the queue
//	x-alone  of another session over alone
//	ms       of another session
func BenchmarkFairness(b *testing.B) {
	g := &ground{dir: piharness.Repo(b), env: piharness.Env(b, b.TempDir())}
	program := filepath.Join(b.TempDir(), "pi")
	if err := os.WriteFile(program, []byte(shortPi), 0o700); err != nil { //nolint:gosec // a program
		b.Fatal(err)
	}
	system, err := supervisor.New(supervisor.Options{MaxChildren: lanes.BatchSize, Spares: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := system.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	round := func(session string) supervisor.AnalyzeRequest {
		req := supervisor.AnalyzeRequest{
			Session: supervisor.Session{ID: session, Workdir: g.dir, Environ: g.env, Pi: program}, Model: supervisor.ModelAnswer{Answered: true},
		}
		for n := range lanes.BatchSize {
			req.Refs = append(req.Refs, actors.Reference{ID: fmt.Sprintf("r%d", n+1), LocalPath: filepath.Join(g.dir, "oven")})
		}
		return req
	}
	behindBurst := func(session string) float64 {
		var queued, ended sync.WaitGroup
		for range burstRounds {
			queued.Add(1)
			ended.Go(func() {
				known := map[string]bool{}
				_, err := system.AnalyzeRefs(b.Context(), round("burst"), func(event any) {
					if p, ok := event.(lanes.Progress); ok && !known[p.LaneID] {
						if known[p.LaneID] = true; len(known) == lanes.BatchSize {
							queued.Done()
						}
					}
				})
				if err != nil {
					b.Error(err)
				}
				if len(known) < lanes.BatchSize { // it failed, and nobody shall wait for it
					queued.Done()
				}
			})
		}
		queued.Wait()
		took := g.analyze(b, system, round(session))
		ended.Wait()
		return took.Seconds()
	}
	g.analyze(b, system, round("alone")) // warms the file cache
	for b.Loop() {
		times := map[string][]float64{}
		for range pairs {
			times["another"] = append(times["another"], behindBurst("another"))
			times["queue"] = append(times["queue"], behindBurst("burst"))
			times["alone"] = append(times["alone"], g.analyze(b, system, round("alone")).Seconds())
		}
		another, queue, alone := median(times["another"]), median(times["queue"]), median(times["alone"])
		b.ReportMetric(another/queue, "x-queue")
		b.ReportMetric(another/alone, "x-alone")
		b.ReportMetric(another*1000, "ms")
	}
}
