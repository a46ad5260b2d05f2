package supervisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestARunOwnedByALiveProcessIsRefusedAndUntouched(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	first, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := b.run(first.RunID)
	before := read(t, filepath.Join(run.Dir, "checkpoint.json"))
	lease, err := run.Acquire(context.Background(), "another session")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = lease.Release() }()
	_, err = b.system.Refine(context.Background(), req, nil)
	var owned *store.OwnedError
	if !errors.As(err, &owned) || owned.RunID != first.RunID {
		t.Errorf("got %v, want an OwnedError for %s", err, first.RunID)
	}
	if after := read(t, filepath.Join(run.Dir, "checkpoint.json")); after != before {
		t.Error("the checkpoint of a foreign run was written")
	}
}

// A round of references is not in the checkpoint; its records are fenced all the same.
func TestARunThatIsTakenOverStopsAtOnceAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*bundle, context.Context, supervisor.Watch) (supervisor.RoundResult, error){
		"with a review": func(b *bundle, ctx context.Context, watch supervisor.Watch) (supervisor.RoundResult, error) {
			return b.system.Refine(ctx, b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n"), watch)
		},
		"with references": func(b *bundle, ctx context.Context, watch supervisor.Watch) (supervisor.RoundResult, error) {
			start := supervisor.PlansAction{Action: "start-run", Topic: "refs", Skill: "plan-with-refs", RequestText: "read"}
			if _, err := b.system.Plans(context.Background(), b.session, start); err != nil {
				return supervisor.RoundResult{}, err
			}
			return b.system.AnalyzeRefs(ctx, supervisor.AnalyzeRequest{
				Session: b.session, Model: supervisor.ModelAnswer{Answered: true},
				Refs: []actors.Reference{{ID: "a", LocalPath: ".", Title: "STUB-HOLD"}},
			}, watch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := newWatcher()
			type answer struct {
				result supervisor.RoundResult
				err    error
			}
			done := make(chan answer, 1)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				result, err := call(b, ctx, w.watch)
				done <- answer{result, err}
			}()
			select {
			case <-w.working:
			case a := <-done:
				t.Fatalf("ended before it worked: %v", a.err)
			}
			run := b.run(w.started.RunID)
			owner := filepath.Join(run.Dir, "owner.json")
			// Another program takes the run: same form, another token and generation.
			record := `{"schema":1,"host":"elsewhere","pid":1,"pidStart":null,"sessionId":null,"processToken":"0123456789abcdef0123456789abcdef","generation":7,"acquiredAt":"2026-11-30T00:00:00Z"}`
			if err := os.WriteFile(owner, []byte(record), 0o600); err != nil {
				t.Fatal(err)
			}
			ours := []string{"checkpoint.json", filepath.Join("pilothouse", "rounds", w.started.RoundID+".json"), "subagents.jsonl"}
			before := map[string]string{}
			for _, name := range ours {
				before[name] = read(t, filepath.Join(run.Dir, name))
			}
			cancel() // ends the lanes: their records are the next writes
			a := <-done
			var lost *store.LostOwnerError
			if !errors.As(a.err, &lost) {
				t.Errorf("got %v (%+v), want a LostOwnerError", a.err, statuses(a.result))
			}
			for _, name := range ours {
				if read(t, filepath.Join(run.Dir, name)) != before[name] {
					t.Errorf("%s was written after the run was lost", name)
				}
			}
			if read(t, owner) != record {
				t.Error("the new owner's record was touched")
			}
		})
	}
}

func TestACorruptCheckpointRefusesItsRunOnlyAndIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.run(first.RunID).Dir, "checkpoint.json")
	for _, content := range []string{"", "{", "[]", "null", "{}", "\x00\x00"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		req := b.plan("PLAN.md", "# A plan\n")
		req.RunID = first.RunID
		_, err := b.system.Refine(context.Background(), req, nil)
		var corrupt *store.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Path != path {
			t.Errorf("%q: got %v, want a CorruptError for %s", content, err, path)
		}
		if read(t, path) != content {
			t.Errorf("%q: the corrupt file was changed", content)
		}
	}
	other, err := b.system.Refine(context.Background(), b.plan("OTHER.md", "# Another plan\n"), nil)
	if err != nil || other.Complete() != 3 {
		t.Errorf("another run suffers: %v", err)
	}
	runs, err := b.system.Runs(context.Background(), b.session)
	if err != nil || len(runs) != 2 || (runs[0].Problem == "") == (runs[1].Problem == "") {
		t.Errorf("runs: %+v, %v", runs, err)
	}
}

func TestClosingTheSystemCancelsAndRecordsWhatRuns(t *testing.T) {
	t.Parallel()
	system, err := supervisor.New(supervisor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, system: system, session: newSession(t)}
	w := newWatcher()
	done := make(chan supervisor.RoundResult, 1)
	req := b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n")
	go func() {
		result, err := system.Refine(context.Background(), req, w.watch)
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	<-w.working
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := system.Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, lane := range (<-done).Lanes {
		if lane.Status != lanes.Cancelled {
			t.Errorf("lane %s is %s", lane.LaneID, lane.Status)
		}
	}
	if _, state, err := b.run(w.started.RunID).Owner(); err != nil || state != store.OwnerNone {
		t.Errorf("owner after close: %v, %v", state, err)
	}
	_, err = system.Refine(context.Background(), req, nil)
	var closed *supervisor.ClosedError
	if !errors.As(err, &closed) {
		t.Errorf("a call after close: got %v, want a ClosedError", err)
	}
}

func TestACallCancelledBeforeItStartsLeavesNoRound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, err := b.system.Refine(ctx, b.plan("PLAN.md", "# A plan\n"), nil)
	var cancelled *supervisor.CancelledError
	if err != nil && !errors.As(err, &cancelled) {
		t.Fatal(err)
	}
	for _, lane := range result.Lanes { // it may have started just before
		if !lane.Status.Terminal() {
			t.Errorf("lane %s is %s", lane.LaneID, lane.Status)
		}
	}
}

func TestGatesAskBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	req.Model = supervisor.ModelAnswer{}
	var gate *actors.GateError
	if _, err := b.system.Refine(context.Background(), req, nil); !errors.As(err, &gate) || gate.Gate != actors.GateModel {
		t.Fatalf("got %v, want the model gate", err)
	}
	if runs, err := b.system.Runs(context.Background(), b.session); err != nil || len(runs) != 0 {
		t.Errorf("a gate left runs behind: %+v, %v", runs, err)
	}
	yes := true
	answer := supervisor.PlansAction{Action: "set-role", Role: "reviewer", Confirmed: &yes, ModelSelector: "inherit"}
	if _, err := b.system.Plans(context.Background(), b.session, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := b.system.Refine(context.Background(), req, nil); err != nil {
		t.Errorf("after the answer: %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
