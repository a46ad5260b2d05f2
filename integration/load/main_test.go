// Package load_test has many clients work through one real daemon at once, over its
// socket, and looks at what each of them gets: every lane its record, every run its
// turn, every hook its answer. The children are stubs. The whole load is
//
//	go test -count=1 -v ./integration/load -args -clients 30 -runs 100
package load_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var (
	clients = flag.Int("clients", 4, "clients, each with a connection of its own")
	runs    = flag.Int("runs", 8, "runs of three lanes each, all at once")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
