package bench_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pilothouse/actors"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// references is how many references a load has: four batches.
const references = 4 * lanes.BatchSize

// BenchmarkReferences compares the makespan of a load of short references, each one
// second of the model's time, when the children of the next batch wait warm for
// their tasks, when every child is started with its task, and when the same children
// are started by hand, three at a time. The bar of the first against the second is
// 0.8.
//
//	x-cold     warm over cold
//	x-by-hand  warm over by hand
//	s-warm     makespan of the warm load
func BenchmarkReferences(b *testing.B) {
	look := scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "oven.go"}, BeforeMs: 300}
	g := newGround(b, look, streamed(700*time.Millisecond))
	warm, cold := g.system(b, 0), g.system(b, -1)
	req := g.references()
	makespan := func(system *supervisor.System) float64 { return g.analyze(b, system, req).Seconds() }
	makespan(cold) // warms the file cache, and tells the tasks
	load := g.lanesHeard(b, "ref-analyst")
	if len(load) != references {
		b.Fatalf("the model heard of %d references, want %d", len(load), references)
	}
	for i := range load {
		load[i].dir = req.Refs[i].LocalPath
	}
	byHand := func() float64 {
		var took time.Duration
		for batch := range slices.Chunk(load, lanes.BatchSize) {
			took += g.byHand(b, batch)
		}
		return took.Seconds()
	}
	for b.Loop() {
		times := map[string][]float64{}
		measure := []func(){
			func() { times["warm"] = append(times["warm"], makespan(warm)) },
			func() { times["cold"] = append(times["cold"], makespan(cold)) },
			func() { times["by hand"] = append(times["by hand"], byHand()) },
		}
		for range pairs {
			for _, m := range measure {
				m()
			}
			slices.Reverse(measure) // whoever comes second may find the machine warmer or busier
		}
		w, c, h := median(times["warm"]), median(times["cold"]), median(times["by hand"])
		b.ReportMetric(w/c, "x-cold")
		b.ReportMetric(w/h, "x-by-hand")
		b.ReportMetric(w, "s-warm")
		b.Logf("%d references in batches of %d: warm %.2f s, cold %.2f s, by hand %.2f s; warm takes %.2f of cold and %.2f of by hand",
			references, lanes.BatchSize, w, c, h, w/c, w/h)
	}
}

// system is the product inside this process; see supervisor.Options about spares.
func (g *ground) system(b *testing.B, spares int) *supervisor.System {
	b.Helper()
	system, err := supervisor.New(supervisor.Options{ChildrenDir: filepath.Join(b.TempDir(), "children"), Spares: spares})
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
	return system
}

// references asks for an analysis of as many references, which are all alike.
func (g *ground) references() supervisor.AnalyzeRequest {
	req := supervisor.AnalyzeRequest{
		Session: supervisor.Session{Workdir: g.dir, Environ: g.env, Pi: g.pi.String()},
		Model:   supervisor.ModelAnswer{Answered: true, Selector: "sim/plain"},
	}
	for i := range references {
		req.Refs = append(req.Refs, actors.Reference{ID: fmt.Sprintf("r%d", i+1), LocalPath: filepath.Join(g.dir, "oven")})
	}
	return req
}

// analyze runs the load and returns its makespan.
func (g *ground) analyze(b *testing.B, system *supervisor.System, req supervisor.AnalyzeRequest) time.Duration {
	b.Helper()
	begin := time.Now()
	result, err := system.AnalyzeRefs(context.Background(), req, nil)
	took := time.Since(begin)
	if err != nil {
		b.Fatal(err)
	}
	for _, lane := range result.Lanes {
		if lane.Status != lanes.Complete || lane.Attempts != 1 {
			b.Fatalf("lane %s is %s after %d attempts: %v", lane.LaneID, lane.Status, lane.Attempts, lane.Error)
		}
	}
	return took
}
