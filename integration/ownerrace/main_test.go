// Package ownerrace_test lets many processes race for one run while they are killed
// and suspended at random:
//
//	go test ./integration/ownerrace -v -args -acquisitions 10000 -processes 16 -seed 7
//
// What a seed decides is who is struck, when and how; the order in which the machine
// runs the processes is not the same each time.
package ownerrace_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var (
	acquisitions = flag.Int("acquisitions", 120, "how often the run is acquired, all processes together")
	processes    = flag.Int("processes", 6, "how many processes race")
	seed         = flag.Uint64("seed", 1, "of the strikes")
)

// What makes the test binary a racer: its name, and the seed of the blows that it
// strikes at itself.
const (
	racerVariable = "OWNERRACE_RACER"
	seedVariable  = "OWNERRACE_SEED"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(racerVariable); name != "" {
		if err := race(name, os.Args[1:]); err != nil {
			fmt.Fprintf(os.Stderr, "racer %s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
