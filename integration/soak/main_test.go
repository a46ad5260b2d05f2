// Package soak_test holds hundreds of lanes of many runs at once in one process and
// plays every fault that a child can have, drawn from a seed:
//
//	go test ./integration/soak -v -args -seeds 1 -first 7 -workspaces 100
//
// plays seed 7 again. The draws are the same each time; the order in which the
// machine runs what was drawn is not.
package soak_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"pilothouse/lanes/proc"
	"pilothouse/lanes/proc/proctest"
)

var (
	seeds      = flag.Int("seeds", 1, "how many seeds to play")
	first      = flag.Int("first", 1, "the first seed")
	workspaces = flag.Int("workspaces", 10, "how many workspaces, each with a run, work side by side")
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		proctest.Clean()
		os.Exit(code)
	}))
}
