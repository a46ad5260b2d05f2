package bench_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pilothouse/integration/piharness"
)

// starts is how many starts of each kind a measurement takes.
const starts = 41

// BenchmarkStart compares `pilothouse plans show`, from its start to its end, with
// a Node that prints one line: what a hook of a session costs with a program of its
// own and what it costs with a script. Both read files that the kernel has in
// memory. The bar is 0.2.
//
//	x-node       plans show over node
//	x-node-best  the same of the fastest starts: on a busy machine the better measure
//	ms           wall time of plans show
//	ms-node      wall time of node
//	ms-git       wall time of the one git command that is spared in an ordinary repository
func BenchmarkStart(b *testing.B) {
	dir, env := piharness.Repo(b), piharness.Env(b, b.TempDir())
	env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "GIT_") }) // a user has none
	binary, node := piharness.Binary(b), piharness.NewPi(b)[0]
	started := func(want string, words ...string) float64 {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, env
		begin := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(begin)
		if err != nil || !bytes.Contains(out, []byte(want)) {
			b.Fatalf("%v: %v\n%s", words, err, out)
		}
		return took.Seconds() * 1000
	}
	started("stateRoot", binary, "plans", "init")
	for b.Loop() {
		var show, script, git []float64
		measure := []func(){
			func() { show = append(show, started("stateRoot", binary, "plans", "show")) },
			func() { script = append(script, started("ready", node, "-e", `console.log("ready")`)) },
			func() {
				git = append(git, started(".git", "git", "rev-parse", "--is-bare-repository", "--git-common-dir", "--show-toplevel"))
			},
		}
		for range starts {
			for _, m := range measure {
				m()
			}
			slices.Reverse(measure) // whoever comes second may find the machine busier
		}
		b.ReportMetric(median(show)/median(script), "x-node")
		b.ReportMetric(show[0]/script[0], "x-node-best") // median has sorted them
		b.ReportMetric(median(show), "ms")
		b.ReportMetric(median(script), "ms-node")
		b.ReportMetric(median(git), "ms-git")
	}
}
