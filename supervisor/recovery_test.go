package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// reopened makes a round of a run look as if pilothouse had been killed in it: the
// lanes are on record as queued, and a process that is dead owns the run.
func (b *bundle) reopened(runID, roundID string, owner bool, laneIDs ...string) store.RunDir {
	b.t.Helper()
	run := b.run(runID)
	record, err := run.RoundDir().LoadRound(roundID)
	if err != nil {
		b.t.Fatal(err)
	}
	record.CompletedAt = time.Time{}
	for i, lane := range record.Lanes {
		if slices.Contains(laneIDs, lane.LaneID) {
			record.Lanes[i] = store.LaneRecord{LaneID: lane.LaneID, Name: lane.Name, Lens: lane.Lens, RefID: lane.RefID, RefDir: lane.RefDir, Batch: lane.Batch, Status: store.LaneStatusQueued}
		}
	}
	if err := run.RoundDir().SaveRound(record); err != nil {
		b.t.Fatal(err)
	}
	_, err = run.MutateCheckpoint(nil, nil, time.Now(), func(cp *store.Checkpoint) error {
		round := cp.Round(roundID)
		if round == nil {
			return store.ErrNoChange
		}
		for _, id := range laneIDs {
			lane := round.Lane(id)
			lane.Status, lane.ResultFile, lane.CompletedAt = store.LanePending, "", ""
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if owner {
		host, err := os.Hostname()
		if err != nil {
			b.t.Fatal(err)
		}
		// A process id beyond the largest that a kernel gives.
		record := `{"schema":1,"host":"` + host + `","pid":8388607,"pidStart":null,"sessionId":null,"processToken":"0123456789abcdef0123456789abcdef","generation":3,"acquiredAt":"2026-11-30T00:00:00Z"}`
		if err := os.WriteFile(filepath.Join(run.Dir, "owner.json"), []byte(record), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	return run
}

func statusesOf(record store.RoundRecord) map[string]string {
	all := map[string]string{}
	for _, lane := range record.Lanes {
		all[lane.LaneID] = strings.TrimSuffix(string(lane.Status)+" "+lane.Error.Class, " ")
	}
	return all
}

func (b *bundle) show(runID string) supervisor.RunDetail {
	b.t.Helper()
	detail, err := b.system.Show(context.Background(), b.session, runID)
	if err != nil {
		b.t.Fatal(err)
	}
	return detail
}

func TestLostLanesAreToldAsFailedByWhoeverReadsAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]bool{"a dead owner": true, "no owner": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			result, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
			if err != nil {
				t.Fatal(err)
			}
			run := b.reopened(result.RunID, result.RoundID, owner, "ordering", "verification")
			files := []string{"owner.json", "checkpoint.json", "pilothouse/rounds/" + result.RoundID + ".json"}
			before := map[string]string{}
			for _, file := range files {
				if owner || file != "owner.json" {
					before[file] = read(t, filepath.Join(run.Dir, file))
				}
			}
			detail := b.show(run.ID)
			want := map[string]string{"correctness": "complete", "ordering": "failed orchestrator_lost", "verification": "failed orchestrator_lost"}
			if diff := cmp.Diff(want, statusesOf(detail.Rounds[0])); diff != "" {
				t.Error(diff)
			}
			resume := "`pilothouse refine " + filepath.Join(b.session.Workdir, "PLAN.md") + " --resume-round " + result.RoundID + "`"
			if message := detail.Rounds[0].Lanes[1].Error.Message; !strings.Contains(message, resume) {
				t.Errorf("the lane says %q", message)
			}
			runs, err := b.system.Runs(context.Background(), b.session)
			if err != nil {
				t.Fatal(err)
			}
			lost := []supervisor.LostRound{{RoundID: result.RoundID, Lanes: []string{"ordering", "verification"}, WayOut: "continue with " + resume}}
			if diff := cmp.Diff(lost, runs[0].Lost); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(lost, detail.Lost); diff != "" {
				t.Error(diff)
			}
			for file, bytes := range before {
				if read(t, filepath.Join(run.Dir, file)) != bytes {
					t.Errorf("%s was written", file)
				}
			}
		})
	}
}

func TestLanesWhoseOwnerLivesOrCannotBeJudgedAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	result, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	run := b.reopened(result.RunID, result.RoundID, false, "ordering")
	for name, owner := range map[string]string{
		"cannot be seen": `{"schema":1,"host":"elsewhere","pid":1,"pidStart":null,"sessionId":null,"processToken":"x","generation":1,"acquiredAt":"x"}`,
		"is corrupt":     `{`,
		"":               "", // lives, and is this process
	} {
		path := filepath.Join(run.Dir, "owner.json")
		if owner == "" {
			_ = os.Remove(path)
			lease, err := run.Acquire(t.Context(), "another session")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = lease.Release() }()
		} else if err := os.WriteFile(path, []byte(owner), 0o600); err != nil {
			t.Fatal(err)
		}
		detail := b.show(run.ID)
		if got := statusesOf(detail.Rounds[0])["ordering"]; got != "queued" || detail.Lost != nil {
			t.Errorf("whose owner %s: the lane is %s, %+v", name, got, detail.Lost)
		}
		runs, err := b.system.Runs(context.Background(), b.session)
		if err != nil || runs[0].Lost != nil {
			t.Errorf("whose owner %s: %+v, %v", name, runs[0].Lost, err)
		}
	}
}

func TestTheNextOwnerOfARunWritesDownWhatWasLostBeforeItsOwnChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	result, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	run := b.reopened(result.RunID, result.RoundID, true, "ordering")
	// Rounds of another program, without a record of ours, are not judged.
	foreign := store.RoundSpec{RoundID: "foreign", Role: "criticizer", Target: "plan", Lanes: []store.LaneSpec{{LaneID: "criticizer"}}}
	if _, err := run.MutateCheckpoint(nil, nil, time.Now(), store.RoundStarted(foreign, time.Now())); err != nil {
		t.Fatal(err)
	}
	// A record that cannot be read is left as it is and disturbs nobody.
	broken := filepath.Join(run.Dir, "pilothouse/rounds/broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{Action: "set-status", RunID: run.ID, Status: "stopped"}); err != nil {
		t.Fatal(err)
	}
	record, err := run.RoundDir().LoadRound(result.RoundID)
	if err != nil {
		t.Fatal(err)
	}
	if got := statusesOf(record)["ordering"]; got != "failed orchestrator_lost" || record.CompletedAt.IsZero() || record.Lanes[1].CompletedAt.IsZero() {
		t.Errorf("the lane is %s in the record, which was closed at %v", got, record.CompletedAt)
	}
	cp, err := run.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range cp.Round(result.RoundID).Lanes {
		if want := map[bool]string{true: store.LaneFailed, false: store.LaneComplete}[lane.LaneID == "ordering"]; lane.Status != want {
			t.Errorf("lane %s is %s in the checkpoint, want %s", lane.LaneID, lane.Status, want)
		}
	}
	if got := cp.Round("foreign").Lanes[0].Status; got != store.LanePending {
		t.Errorf("the lane of another program is %s", got)
	}
	if read(t, broken) != "{" {
		t.Error("a broken record was changed")
	}
	detail := b.show(run.ID)
	if !strings.Contains(detail.Problem, broken) || len(detail.Lost) != 1 {
		t.Errorf("problem %q, lost %+v", detail.Problem, detail.Lost)
	}
}

func TestAnAnswerThatIsOnRecordReachesTheCheckpointWithTheNextOwner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	result, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	run := b.run(result.RunID)
	_, err = run.MutateCheckpoint(nil, nil, time.Now(), func(cp *store.Checkpoint) error {
		lane := cp.Round(result.RoundID).Lane("ordering")
		lane.Status, lane.ResultFile, lane.CompletedAt = store.LanePending, "", ""
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{Action: "set-status", RunID: run.ID, Status: "stopped"}); err != nil {
		t.Fatal(err)
	}
	cp, err := run.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	if lane := cp.Round(result.RoundID).Lane("ordering"); !lane.Reusable() {
		t.Errorf("the lane is %+v", lane)
	}
}

func TestAResumedRoundRunsExactlyTheLostLanes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	first, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := b.reopened(first.RunID, first.RoundID, true, "correctness", "verification")
	another := b.plan("PLAN.md", "# A plan\n")
	another.Reviewers = 1
	second, err := b.system.Refine(context.Background(), another, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(second.Notices, func(n string) bool { return strings.Contains(n, "--resume-round "+first.RoundID) }) {
		t.Errorf("another round of the run says nothing of the lost one: %q", second.Notices)
	}
	req.ResumeRoundID, req.Reviewers = first.RoundID, 0
	resumed, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range resumed.Lanes {
		if lane.Reused != (lane.LaneID == "ordering") || lane.Status != lanes.Complete {
			t.Errorf("lane %s: reused %v, %s", lane.LaneID, lane.Reused, lane.Status)
		}
	}
	if detail := b.show(run.ID); detail.Lost != nil {
		t.Errorf("still lost: %+v", detail.Lost)
	}
}

func TestLostReferencesOfNoRunAreToldAndClosedByTheNextRoundOfThatKind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := supervisor.AnalyzeRequest{
		Session: b.session, Model: supervisor.ModelAnswer{Answered: true}, Refs: []actors.Reference{{ID: "a", LocalPath: "."}},
	}
	if _, err := b.system.AnalyzeRefs(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	root, err := store.Find(context.Background(), b.session.Workdir)
	if err != nil {
		t.Fatal(err)
	}
	// As a process that was killed leaves them: one round with its record, one before.
	rounds := root.AdHoc()
	record := store.RoundRecord{RoundID: "refs-rlost", Role: "ref-analyst", StartedAt: time.Now(), Lanes: []store.LaneRecord{{LaneID: "ref-1", RefID: "a", Status: store.LaneStatusQueued}}}
	if err := rounds.SaveRound(record); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"refs-rlost", "refs-runrecorded"} {
		owner := filepath.Join(rounds.Dir, "working", id, "owner.json")
		if err := os.MkdirAll(filepath.Dir(owner), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(owner, []byte(`{"schema":1,"host":"`+host+`","pid":8388607,"pidStart":null,"sessionId":null,"processToken":"x","generation":1,"acquiredAt":"x"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lost := func() string {
		for _, round := range b.show("adhoc").Rounds {
			if round.RoundID == "refs-rlost" {
				return statusesOf(round)["ref-1"]
			}
		}
		return ""
	}
	if got := lost(); got != "failed orchestrator_lost" {
		t.Errorf("told as %q", got)
	}
	if on, err := rounds.LoadRound("refs-rlost"); err != nil || on.Lanes[0].Status != store.LaneStatusQueued {
		t.Errorf("reading wrote %+v, %v", on, err)
	}
	if _, err := b.system.AnalyzeRefs(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	on, err := rounds.LoadRound("refs-rlost")
	if err != nil || statusesOf(on)["ref-1"] != "failed orchestrator_lost" || on.CompletedAt.IsZero() {
		t.Errorf("the next round left %+v, %v", on, err)
	}
	if !strings.Contains(on.Lanes[0].Error.Message, "pilothouse analyze-refs") {
		t.Errorf("the lane says %q", on.Lanes[0].Error.Message)
	}
	if left, err := os.ReadDir(filepath.Join(rounds.Dir, "working")); err != nil || len(left) != 0 {
		t.Errorf("still at work: %v, %v", left, err)
	}
}
