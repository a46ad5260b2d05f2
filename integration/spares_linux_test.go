package integration_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// analysing starts an analysis of n references whose first batch is answered by the
// step and the others at once.
func analysing(t *testing.T, n int, first scriptedmodel.Step, prepare func(*workspace)) (*workspace, *job) {
	t.Helper()
	rules := []scriptedmodel.Rule{on("Reference id: r[123]\n", first), on("Reference id: ", say(analysis))}
	w := newWorkspace(t, rules...)
	if prepare != nil {
		prepare(w)
	}
	args := []string{"analyze-refs", "--model", "sim/plain", "--drain-timeout", unhurried, "--json"}
	for i := range n {
		id := fmt.Sprintf("r%d", i+1)
		args = append(args, "--ref", id+"="+w.reference(id))
	}
	return w, w.start(args...)
}

func TestACancelEndsTheSparesAndTheyCountAsNoLanes(t *testing.T) {
	t.Parallel()
	w, j := analysing(t, 7, endless(), func(w *workspace) {
		w.must(0, "plans", "start-run", "--topic", "More bread", "--skill", "plan-small", "--requestText", "bake")
	})
	w.Await(func(s scriptedmodel.Stats) bool { return s.Open == 3 })
	w.untilSpares(j, 3)
	j.Signal(syscall.SIGINT)
	e := j.wait()
	if left := w.Survivors(); len(left) != 0 {
		t.Errorf("processes survived: %v", left)
	}
	if e.Code != 130 {
		t.Errorf("ended with %d, want 130: %s", e.Code, e.Stderr)
	}
	r := e.round(t)
	record := w.sidecar(r.RunID, r.RoundID)
	if len(r.Lanes) != 7 || len(record.Lanes) != 7 {
		t.Fatalf("%d lanes, %d on record, want 7", len(r.Lanes), len(record.Lanes))
	}
	for i, lane := range r.Lanes {
		attempts := 0
		if i < 3 {
			attempts = 1
		}
		if lane.Status != "cancelled" || lane.Attempts != attempts || lane.Exit.Code != nil && attempts == 0 {
			t.Errorf("lane %s is %s after %d attempts, want cancelled after %d", lane.LaneID, lane.Status, lane.Attempts, attempts)
		}
		if got := record.Lanes[i]; got.Status != "cancelled" || got.Attempts != attempts {
			t.Errorf("the record of lane %s: %+v", lane.LaneID, got)
		}
	}
	if entries := w.ledger(r.RunID, "subagents.jsonl"); len(entries) != 3 {
		t.Errorf("the ledger has %d subagents, want the three that worked: %v", len(entries), entries)
	}
	if got := w.Model.Stats().Requests; got != 3 {
		t.Errorf("the model got %d requests, want 3", got)
	}
	w.checkPrivate()
}

func TestAKillLeavesNoSpare(t *testing.T) {
	t.Parallel()
	w, j := analysing(t, 6, endless(), nil)
	w.Await(func(s scriptedmodel.Stats) bool { return s.Open == 3 })
	w.untilSpares(j, 3)
	j.Signal(os.Kill)
	j.wait()
	w.untilGone()
	if got := w.Model.Stats().Requests; got != 3 {
		t.Errorf("the model got %d requests, want 3: a spare was given a task", got)
	}
}

func TestASpareThatIsKilledCostsItsLaneNothing(t *testing.T) {
	t.Parallel()
	slow := say(analysis)
	slow.BeforeMs = 5000 // the spares live that long
	w, j := analysing(t, 5, slow, nil)
	killed := 0
	for lane, spare := range w.untilSpares(j, 2) {
		if !strings.Contains(lane, "ref-4:") {
			continue
		}
		if err := syscall.Kill(spare.pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed++
	}
	e := j.wait()
	if killed != 1 {
		t.Fatalf("%d spares of ref-4 were killed", killed)
	}
	if e.Code != 0 {
		t.Fatalf("ended with %d: %s", e.Code, e.Stderr)
	}
	for _, lane := range e.round(t).Lanes {
		if lane.Status != "complete" || lane.Attempts != 1 || lane.Exit.Code == nil || *lane.Exit.Code != 0 {
			t.Errorf("lane %s is %s after %d attempts, exit %+v", lane.LaneID, lane.Status, lane.Attempts, lane.Exit)
		}
	}
	if got := w.Model.Stats().Requests; got != 5 {
		t.Errorf("the model got %d requests, want 5", got)
	}
}
