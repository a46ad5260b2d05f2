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
}

// answerTime is how long the model streams one answer.
const answerTime = 3 * time.Second

const answerChunks = 60

func newGround(b *testing.B) *ground {
	b.Helper()
	answer := scriptedmodel.Step{
		TextBytes: 3000, Chunks: answerChunks, DelayMs: int(answerTime/time.Millisecond) / answerChunks,
		Unit: "## Findings\n\nNo findings.\n\n## Checked\n\n- oven/oven.go, once more from the beginning to its end\n",
	}
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: []scriptedmodel.Rule{{Match: ".", Steps: []scriptedmodel.Step{answer}}}})
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
	g := &ground{dir: piharness.Repo(b), pi: piharness.NewPi(b), model: model}
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
