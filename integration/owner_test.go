package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// ownerRecord is owner.json as the other program writes it (spec: ownership 3.1).
func ownerRecord(t *testing.T, pid int, pidStart string) string {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	start, err := json.Marshal(pidStart)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("{\n\t\"schema\": 1,\n\t\"host\": %q,\n\t\"pid\": %d,\n\t\"pidStart\": %s,\n\t\"sessionId\": \"session-of-a-friend\",\n\t\"processToken\": %q,\n\t\"generation\": 3,\n\t\"acquiredAt\": \"2026-01-01T00:00:00Z\"\n}\n",
		host, pid, start, strings.Repeat("ab", 16))
}

func TestARunOfALivingProcessIsRefusedAndOneOfADeadProcessIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", say(nothingFound)))
	path := w.Write("PLAN.md", plan)
	w.must(0, "plans", "start-run", "--topic", "One", "--skill", "x", "--requestText", "x")
	run := w.runs()[0]
	owner := w.runFile(run, "owner.json")

	other := exec.Command("cat") // lives until its stdin ends
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(other.Process.Pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	record := ownerRecord(t, other.Process.Pid, strings.TrimSpace(string(started)))
	piharness.WriteFile(t, owner, record)
	checkpoint := piharness.ReadFile(t, w.runFile(run, "checkpoint.json"))
	for _, args := range [][]string{
		{"refine", path, "--run", run, "--model", "inherit"},
		{"plans", "set-status", "--runId", run, "--status", "stopped"},
		{"plans", "record-checkpoint", "--checkpoint", `{"transition":"plan-written","planPath":"PLAN.md"}`},
	} {
		e := w.run(args...)
		e.checkRefused(t, 4, fmt.Sprintf("process %d", other.Process.Pid))
		if !strings.Contains(e.Stderr, "session-of-a-friend") {
			t.Errorf("stderr does not name the session:\n%s", e.Stderr)
		}
	}
	if piharness.ReadFile(t, owner) != record || piharness.ReadFile(t, w.runFile(run, "checkpoint.json")) != checkpoint {
		t.Error("a refused command changed the run")
	}
	if w.Model.Stats().Requests != 0 {
		t.Error("a refused command asked the model")
	}

	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	w.must(0, "refine", path, "--run", run, "--model", "inherit")
	if got := w.checkpoint(run); got.Generation != 4 {
		t.Errorf("generation %d after the takeover, want 4", got.Generation)
	}
	if _, err := os.Stat(owner); !os.IsNotExist(err) {
		t.Errorf("owner.json after the round: %v", err)
	}
}

// A second process that wants the run of a first one, at work on it, is refused;
// the first one is not disturbed.
func TestOfTwoRoundsOnOneRunTheSecondIsRefused(t *testing.T) {
	t.Parallel()
	slow := scriptedmodel.Step{Text: nothingFound, Chunks: 4, DelayMs: 2000} // long enough for a second process to start and to be refused
	w := newWorkspace(t, on("Goal:", slow))
	path := w.Write("PLAN.md", plan)
	started := w.plans("start-run", "--topic", "x", "--skill", "x", "--requestText", "x")
	run, _ := started["run"].(map[string]any)
	id, _ := run["run_id"].(string)

	j := w.start("refine", path, "--run", id, "--model", "sim/plain", "--json")
	w.Await(func(s scriptedmodel.Stats) bool { return s.Open == 1 })
	w.run("refine", path, "--model", "sim/plain").checkRefused(t, 4, id)
	e := j.wait()
	if e.Code != 0 {
		t.Fatalf("the first round ended with %d: %s", e.Code, e.Stderr)
	}
	if r := e.round(t); r.RunID != id || r.Lanes[0].Status != "complete" {
		t.Errorf("round %+v", r)
	}
	if got := len(w.checkpoint(id).ReviewRounds); got != 1 {
		t.Errorf("the checkpoint has %d rounds, want 1", got)
	}
	w.checkPrivate()
}

// Two that start at the very same moment: whatever their order, none damages the
// other's files.
func TestTwoRoundsThatStartTogetherDamageNothing(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", scriptedmodel.Step{Text: nothingFound, BeforeMs: 1500}))
	path := w.Write("PLAN.md", plan)
	first := w.must(0, "refine", path, "--model", "sim/plain", "--json").round(t)
	var ends [2]ended
	var both sync.WaitGroup
	for i := range ends {
		both.Go(func() { ends[i] = w.run("refine", path, "--model", "sim/plain", "--json") })
	}
	both.Wait()
	won := 0
	for _, e := range ends {
		switch e.Code {
		case 0:
			won++
		case 4:
			e.checkRefused(t, 4, first.RunID)
		default:
			t.Errorf("ended with %d: %s", e.Code, e.Stderr)
		}
	}
	if got := len(w.checkpoint(first.RunID).ReviewRounds); won == 0 || got != 1+won {
		t.Errorf("%d won, the checkpoint has %d rounds", won, got)
	}
	w.checkPrivate()
}
