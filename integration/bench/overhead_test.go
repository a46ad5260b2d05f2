package bench_test

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pilothouse/agents"
	"pilothouse/integration/piharness"
)

// pairs is how many rounds of each kind a measurement takes. Medians of them are
// compared: a single round is at the mercy of whatever else the machine does.
const pairs = 7

// BenchmarkRoundOverhead compares a round of three lanes with the same three
// children started by hand, side by side and cold, with the same arguments, the
// same tasks on stdin and the same model. The bar is 1.03.
//
//	x-by-hand          wall time of the whole program, its start and its end included
//	x-by-hand-best     the same of the fastest rounds: on a busy machine the better measure
//	x-by-hand-started  from the moment its round is announced to its end
//	s-by-hand          wall time of the three children
func BenchmarkRoundOverhead(b *testing.B) {
	g := newGround(b, streamed(3*time.Second))
	binary := piharness.Binary(b)
	lanes := g.lanesByHand(b, binary) // this first round also warms the file cache
	for b.Loop() {
		var whole, started, byHand []float64
		for pair := range pairs {
			measure := []func(){
				func() {
					all, announced := g.round(b, binary)
					whole, started = append(whole, all.Seconds()), append(started, announced.Seconds())
				},
				func() { byHand = append(byHand, g.byHand(b, lanes).Seconds()) },
			}
			if pair%2 == 1 { // whoever comes second may find the machine warmer or busier
				slices.Reverse(measure)
			}
			for _, m := range measure {
				m()
			}
		}
		hand := median(byHand)
		b.ReportMetric(median(whole)/hand, "x-by-hand")
		b.ReportMetric(slices.Min(whole)/slices.Min(byHand), "x-by-hand-best")
		b.ReportMetric(median(started)/hand, "x-by-hand-started")
		b.ReportMetric(hand, "s-by-hand")
	}
}

// round runs a round and returns its wall time, and that since its announcement.
func (g *ground) round(b *testing.B, binary string) (whole, started time.Duration) {
	b.Helper()
	cmd := g.command(binary, "refine", g.plan, "--reviewers", "3", "--model", "sim/plain", "--json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "Reviewer ") {
		b.Fatalf("the round was not announced: %q, %v", line, err)
	}
	announced := time.Now()
	rest, err := io.ReadAll(lines)
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%v\n%s", err, rest)
	}
	return time.Since(begin), time.Since(announced)
}

// lane is what one child is started with.
type lane struct {
	words []string
	dir   string
	task  string
}

// lanesByHand runs a round for the tasks that it gives its lanes, and makes of
// them what a person would type.
func (g *ground) lanesByHand(b *testing.B, binary string) []lane {
	b.Helper()
	g.round(b, binary)
	lanes := g.lanesHeard(b, "reviewer")
	if len(lanes) != 3 {
		b.Fatalf("a round has %d lanes, want 3", len(lanes))
	}
	return lanes
}

// lanesHeard are the lanes of a role whose tasks have reached the model.
func (g *ground) lanesHeard(b *testing.B, role string) []lane {
	b.Helper()
	prompt, err := agents.Prompt(role)
	if err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "system-prompt.md")
	if err := os.WriteFile(file, []byte(prompt), 0o600); err != nil {
		b.Fatal(err)
	}
	var lanes []lane
	for _, request := range g.model.Requests() {
		if request.Turn > 0 {
			continue // goes on with a task
		}
		if !strings.Contains(request.System, prompt) {
			b.Fatal("a lane has another system prompt")
		}
		lanes = append(lanes, lane{task: request.User, dir: g.dir, words: append(slices.Clone(g.pi),
			"--mode", "json", "-p", "--no-session", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes",
			"--no-context-files", "--tools", "read,grep,find,ls", "--no-approve", "--model", "sim/plain", "--append-system-prompt", file)})
	}
	return lanes
}

// byHand runs the children side by side and returns the wall time until the
// last has ended and all they printed is read.
func (g *ground) byHand(b *testing.B, lanes []lane) time.Duration {
	b.Helper()
	before := g.model.Stats().Completed
	begin := time.Now()
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() {
			cmd := g.command(l.words...)
			cmd.Dir = l.dir
			// As the product does: a session is what the kernel shares a busy machine by.
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			cmd.Stdin = strings.NewReader(l.task)
			cmd.Env = append(slices.Clone(g.env), "PI_PLANS_REFINER=1")
			if out, err := cmd.Output(); err != nil || len(out) == 0 {
				b.Errorf("pi: %v, %d bytes", err, len(out))
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	if got, want := g.model.Stats().Completed-before, len(lanes)*g.turns; got != want {
		b.Errorf("the model answered %d times, want %d", got, want)
	}
	return took
}
