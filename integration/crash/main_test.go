// Package crash_test kills a working pilothouse at any moment, again and again, and
// looks at what it has left. A driver, which is this test binary started anew, works
// on a few runs of one workspace and tells through a pipe what it is about to do and
// what was acknowledged to it; the pipe outlives it. After the kill nothing that was
// acknowledged may be missing, no file may be broken, no process may be left, and
// the next driver goes on.
//
//	go test ./integration/crash -v -args -kills 1000 -seed 7
//
// draws the same work and the same moments each time; what the machine makes of
// them differs.
package crash_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"pilothouse/lanes/proc"
	"pilothouse/lanes/proc/proctest"
)

var (
	kills = flag.Int("kills", 16, "how many drivers to kill")
	seed  = flag.Uint64("seed", 1, "what everything is drawn from")
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	if os.Getenv(driverVariable) != "" {
		os.Exit(drive())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		proctest.Clean()
		os.Exit(code)
	}))
}
