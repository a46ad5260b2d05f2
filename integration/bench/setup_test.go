// Package bench_test measures the real program against what it has to be
// compared with, both in one run and in turn, so that the ratios mean the same on
// every machine.
package bench_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// ground is a workspace with a plan, and a model whose answers take as long as
// real ones.
type ground struct {
	dir, plan string
	env       []string
	pi        piharness.Command
	model     *scriptedmodel.Server
	turns     int // answers to a task
}

// chunkTime is how long the model takes for a piece of an answer.
const chunkTime = 50 * time.Millisecond

// streamed is an answer that the model streams for that long.
func streamed(took time.Duration) scriptedmodel.Step {
	return scriptedmodel.Step{
		TextBytes: 3000, Chunks: int(took / chunkTime), DelayMs: int(chunkTime / time.Millisecond),
		Unit: "## Findings\n\nNo findings.\n\n## Checked\n\n- oven/oven.go, once more from the beginning to its end\n",
	}
}

// newGround makes a workspace whose model answers every task in these steps.
func newGround(b *testing.B, steps ...scriptedmodel.Step) *ground {
	b.Helper()
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: []scriptedmodel.Rule{{Match: ".", Steps: steps}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := model.Close(); err != nil {
			b.Error(err)
		}
	})
	agentDir := filepath.Join(b.TempDir(), "agent")
	if err := scriptedmodel.AgentDir(agentDir, model.BaseURL()); err != nil {
		b.Fatal(err)
	}
	g := &ground{dir: piharness.Repo(b), pi: piharness.NewPi(b), model: model, turns: len(steps)}
	g.plan = filepath.Join(g.dir, "docs", "decision.md")
	g.env = append(piharness.Env(b, agentDir), "PILOTHOUSE_PI="+g.pi.String())
	return g
}

// command is a program that starts in the workspace.
func (g *ground) command(words ...string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = g.dir, g.env
	return cmd
}

// median sorts times.
func median(times []float64) float64 {
	slices.Sort(times)
	middle := len(times) / 2
	if len(times)%2 == 1 {
		return times[middle]
	}
	return (times[middle-1] + times[middle]) / 2
}
