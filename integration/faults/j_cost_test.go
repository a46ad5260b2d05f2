package faults_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
)

// Section J: cost. Metrics and tracing are in a file of their own.

// dearTurn is a turn that reads a million tokens from the provider's cache.
const dearTurn = `{"type":"message_end","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"provider":"sim","model":"plain",` +
	`"usage":{"input":1,"output":1,"cacheRead":1000000,"cacheWrite":0,"totalTokens":1000002,"cost":{"total":0.5}},"stopReason":"toolUse"}}`

func TestFaultJ113ALaneThatSpendsWithoutEndIsEndedAfterAWarning(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ flag, limit, unit string }{
		"tokens": {"--max-tokens", "10000000", "tokens used, cache reads included"},
		"cost":   {"--max-cost", "5", "of 5.00 dollars used"},
		"turns":  {"--max-turns", "10", "of 10 turns used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := prints(t, append([]string{dearTurn}, lanestest.Uses("read")[1:]...)...)
			s := stubScene(t, append(turn, "--times", "0", "--pause", "400ms")...)
			o := s.refine(tt.flag, tt.limit).wait()
			lane := o.failed(pijson.ClassBudget, tt.unit)
			if lane.Attempts != 1 || lane.Turns < 10 || lane.Usage.CacheRead != int64(lane.Turns)*1_000_000 || lane.Usage.Cost != float64(lane.Turns)*0.5 {
				t.Errorf("%d attempts, %d turns, usage %+v", lane.Attempts, lane.Turns, lane.Usage)
			}
			warned, ended := strings.Index(o.Stderr, "general  warning: "), strings.Index(o.Stderr, "general  failed: budget")
			if warned < 0 || ended < warned || strings.Count(o.Stderr, "warning: ") != 1 {
				t.Errorf("the warning is not there, not alone or not before the end:\n%s", o.Stderr)
			}
			if _, _, record := s.recorded(); record.Lanes[0].Error.Class != "budget" || record.Lanes[0].Usage.CacheRead != lane.Usage.CacheRead {
				t.Errorf("record %+v", record.Lanes[0])
			}
		})
	}
}

func TestFaultJ119ACancelReachesAChildThatIsBlockedInARead(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	dir := t.TempDir()
	fifo, reading := filepath.Join(dir, "fifo"), filepath.Join(dir, "reading")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s.script("cat >/dev/null\n: >" + reading + "\nexec cat " + fifo + "\n")
	j := s.refine()
	s.eventually("the child is about to read", func() bool {
		_, err := os.Stat(reading)
		return err == nil
	})
	j.Signal(os.Interrupt)
	o := j.wait()
	lane := o.lane("general")
	if o.Code != 130 || lane.Status != lanes.Cancelled || lane.Exit.Signal == nil || *lane.Exit.Signal != "SIGTERM" {
		t.Errorf("ended with %d, the lane is %s with exit %+v", o.Code, lane.Status, lane.Exit)
	}
	s.cancelled(1)
}
