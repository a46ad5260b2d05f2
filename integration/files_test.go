package integration_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
)

// newConfig is a configuration as it begins.
func newConfig(t *testing.T) string {
	t.Helper()
	return piharness.ReadFile(t, "../store/testdata/config.new.json")
}

func TestARoundLeavesTheFilesThatTheSpecDescribes(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, reviewers()...)
	path := w.Write("PLAN_v2.md", plan)
	r := w.must(0, "refine", path, "--reviewers", "3", "--model", "sim/plain", "--json").round(t)

	if diff := cmp.Diff(newConfig(t), piharness.ReadFile(t, filepath.Join(w.stateRoot(), "config.json"))); diff != "" {
		t.Errorf("config.json (-want +got):\n%s", diff)
	}

	text := piharness.ReadFile(t, w.runFile(r.RunID, "run.json"))
	checkTabs(t, "run.json", text)
	if diff := cmp.Diff([]string{
		"schema", "run_id", "skill", "topic", "request_text", "workdir", "artifact_dir", "language_tag", "status", "created_at", "updated_at",
	}, keysOf(t, text)); diff != "" {
		t.Errorf("keys of run.json (-want +got):\n%s", diff)
	}
	var run map[string]any
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		t.Fatal(err)
	}
	artifacts, _ := run["artifact_dir"].(string)
	if day, found := strings.CutSuffix(artifacts, "-bake-more-bread"); !found || filepath.Dir(artifacts) != filepath.Join(w.Dir, "docs", "pi-plans") {
		t.Errorf("artifact directory %s", artifacts)
	} else if _, err := time.Parse(time.DateOnly, filepath.Base(day)); err != nil {
		t.Error(err)
	}
	for key, want := range map[string]any{
		"schema": 1.0, "run_id": r.RunID, "skill": "refine", "topic": "bake-more-bread", "workdir": w.Dir, "language_tag": nil, "status": "planning",
	} {
		if run[key] != want {
			t.Errorf("run.json: %s is %v, want %v", key, run[key], want)
		}
	}

	active := piharness.ReadFile(t, filepath.Join(w.stateRoot(), "active.json"))
	checkTabs(t, "active.json", active)
	if diff := cmp.Diff([]string{"run_id", "run_dir", "artifact_dir"}, keysOf(t, active)); diff != "" {
		t.Errorf("keys of active.json (-want +got):\n%s", diff)
	}
	var pointer map[string]string
	if err := json.Unmarshal([]byte(active), &pointer); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"run_id": r.RunID, "run_dir": w.runFile(r.RunID, ""), "artifact_dir": artifacts}, pointer); diff != "" {
		t.Errorf("active.json (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(artifacts); err != nil || !info.IsDir() {
		t.Errorf("artifact directory %s: %v", artifacts, err)
	}

	var names []string
	for _, entry := range w.ledger(r.RunID, "subagents.jsonl") {
		if entry["role"] != "reviewer" || entry["model"] != "plain" {
			t.Errorf("subagent %v", entry)
		}
		if err := timestamp("recorded_at", entry["recorded_at"]); err != nil {
			t.Error(err)
		}
		names = append(names, entry["name"].(string)) //nolint:errcheck // a name that is no string fails the test here
	}
	var want []string
	for _, lane := range r.Lanes {
		want = append(want, "pi-plans-reviewer-"+r.RunID+"-"+lane.LaneID)
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(names))); diff != "" {
		t.Errorf("subagents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"role", "name", "model", "recorded_at"}, keysOf(t, firstLine(piharness.ReadFile(t, w.runFile(r.RunID, "subagents.jsonl"))))); diff != "" {
		t.Errorf("keys of a subagent (-want +got):\n%s", diff)
	}
	for _, empty := range []string{"decisions.jsonl", "refs.jsonl"} {
		if text := piharness.ReadFile(t, w.runFile(r.RunID, empty)); text != "" {
			t.Errorf("%s holds %q", empty, text)
		}
	}

	c := w.checkpoint(r.RunID)
	sum := sha256.Sum256([]byte(plan))
	digest := hex.EncodeToString(sum[:])
	if c.Phase != "planning" || c.NextAction != "continue-planning" || c.Plan == nil || c.Plan.Path != path || c.Plan.Version != 2 || c.Plan.SHA256 != digest {
		t.Errorf("checkpoint %+v, plan %+v", c, c.Plan)
	}
	if len(c.ReviewRounds) != 1 {
		t.Fatalf("there are %d rounds", len(c.ReviewRounds))
	}
	round := c.ReviewRounds[0]
	if round.RoundID != r.RoundID || round.Role != "reviewer" || round.Reviewers != 3 || round.PlanSHA256 != digest || round.Consolidated {
		t.Errorf("round %+v", round)
	}
	for _, lane := range round.Lanes {
		file := "reviews/" + r.RoundID + "__" + lane.LaneID + ".md"
		if lane.Status != "complete" || lane.ResultFile != file || lane.CompletedAt == "" {
			t.Errorf("lane %+v", lane)
		}
		if got := piharness.ReadFile(t, w.runFile(r.RunID, file)); got != r.lane(t, lane.LaneID).Output {
			t.Errorf("%s holds %q", file, got)
		}
	}
	w.checkPrivate()
}

func firstLine(text string) string {
	for i, r := range text {
		if r == '\n' {
			return text[:i]
		}
	}
	return text
}

// A reader at any moment sees a whole, valid checkpoint whose revision never
// falls, and the run has an owner while it is worked on.
func TestACheckpointIsValidAtEveryMomentAndItsRevisionNeverFalls(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, reviewers()...)
	path := w.Write("PLAN.md", plan)
	first := w.must(0, "refine", path, "--model", "sim/plain", "--json").round(t)
	file, owner := w.runFile(first.RunID, "checkpoint.json"), w.runFile(first.RunID, "owner.json")
	before := w.checkpoint(first.RunID)

	stop, watched := make(chan struct{}), make(chan map[int]bool)
	owned := false
	go func() {
		seen, last := map[int]bool{}, before.Revision
		for {
			select {
			case <-stop:
				watched <- seen
				return
			default:
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			} else if c, err := readCheckpoint(data); err != nil {
				t.Error(err)
			} else if c.Revision < last {
				t.Errorf("revision fell from %d to %d", last, c.Revision)
			} else {
				last, seen[c.Revision] = c.Revision, true
			}
			if _, err := os.Stat(owner); err == nil {
				owned = true
			}
			time.Sleep(time.Millisecond) // leaves the processor to what is watched
		}
	}()
	second := w.must(0, "refine", path, "--reviewers", "3", "--model", "sim/plain", "--json").round(t)
	close(stop)
	seen := <-watched

	if second.RunID != first.RunID || second.RoundID == first.RoundID {
		t.Errorf("second round %s of run %s, first %s of %s", second.RoundID, second.RunID, first.RoundID, first.RunID)
	}
	after := w.checkpoint(first.RunID)
	// The start of the round and the end of each lane; ends that come together are one write.
	if grown := after.Revision - before.Revision; grown < 2 || grown > 4 {
		t.Errorf("revision grew by %d", grown)
	}
	if len(seen) < 2 || !owned {
		t.Errorf("saw the revisions %v and an owner %v", seen, owned)
	}
	w.checkPrivate()
}
