package compaction_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A number on the command line still wins: it is read later.
	if err := flag.Set("rapid.checks", generated); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
