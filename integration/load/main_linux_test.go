// Package load_test has many clients work through one real daemon at once, over its
// socket, and looks at what each of them gets: every lane its record, every run its
// turn, every hook its answer. The children are stubs that stream; the sessions whose
// hooks are measured are processes, as Pi's are. The whole load is
//
//	go test -count=1 -v ./integration/load -args -clients 30 -runs 100 -hooks 200 -waves 5
package load_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"pilothouse/lanes/proc/proctest"
)

var (
	clients = flag.Int("clients", 4, "clients, each with a connection of its own")
	runs    = flag.Int("runs", 8, "runs of three lanes each, all at once")
	hooks   = flag.Int("hooks", 5, "hooks that each client asks while all lanes stream")
	waves   = flag.Int("waves", 2, "rounds of each run, one after the other")
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(sessionVariable); socket != "" {
		os.Exit(sessionMain(socket, os.Args[1:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		proctest.Clean()
		os.Exit(code)
	}))
}
