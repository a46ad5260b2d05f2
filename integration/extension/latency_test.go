package extension_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// BenchmarkHooksOfAToolCall measures in the real Pi what the extension adds to a turn with
// one tool call: the hooks before and after the tool and at the end of the turn, from the
// extension loaded before ours to the one after it.
func BenchmarkHooksOfAToolCall(b *testing.B) {
	for _, c := range []struct {
		name                   string
		without, planMode, run bool
	}{
		{name: "without the extension", without: true},
		{name: "nothing on"},
		{name: "plan mode", planMode: true},
		{name: "planning run", run: true},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newScene(b)
			s.confirm()
			args := []string{"--no-session", "-ne", "-e", ofTests(b, "before.ts")}
			if !c.without {
				args = append(args, "-e", filepath.Join(s.AgentDir, "extensions", "pilothouse", "index.ts"))
			}
			p := s.open(append(args, "-e", ofTests(b, "after.ts"))...)
			if c.planMode {
				p.Prompt("/plan")
				p.planMode(true)
			}
			steps := []scriptedmodel.Step{{Text: "ready"}}
			if c.run {
				steps = append([]scriptedmodel.Step{startRun}, steps...)
			}
			p.Prompt("Begin.", steps...)
			p.Settled()
			if c.run { // the turn was ended for a compaction, and goes on
				p.Settled()
			}
			p.took()

			look := scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": "cd . && git log --oneline | head -20 && ls"}}
			steps = append(slices.Repeat([]scriptedmodel.Step{look}, b.N), done)
			b.ResetTimer()
			p.Prompt("Look around.", steps...)
			p.Settled()
			b.StopTimer()
			times := p.took()
			added := make([]float64, b.N)
			for hook, ms := range times {
				if len(ms) < b.N {
					b.Fatalf("%d of %d hooks %s were measured", len(ms), b.N, hook)
				}
				for i := range added {
					added[i] += ms[i]
				}
			}
			slices.Sort(added)
			b.ReportMetric(added[len(added)/2], "p50-ms")
			b.ReportMetric(added[len(added)*99/100], "p99-ms")
			if c.without {
				if n := s.Model.Stats().Requests; n != b.N+2 {
					b.Fatalf("the model was asked %d times", n)
				}
			}
			p.Close()
		})
	}
}

// took is what the extensions of the benchmark have measured since the last time, in ms.
func (p *session) took() map[string][]float64 {
	p.t.Helper()
	p.Prompt("/took")
	text := strings.TrimPrefix(p.Notice("took ").At("message").Text(), "took ")
	var times map[string][]float64
	if err := json.Unmarshal([]byte(text), &times); err != nil {
		p.t.Fatalf("%v: %s", err, text)
	}
	return times
}
