package supervisor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// history are the entries of a session, by their types; a run's start names the run.
func history(run store.RunDir, types ...string) []object {
	all := []object{}
	for _, customType := range types {
		data := object{}
		if customType == "pi-plans-run-start" {
			data["runId"] = run.ID
		}
		all = append(all, object{"customType": customType, "data": data})
	}
	return all
}

// back is the session after a restart of its daemon, with what its agent has said since
// the last snapshot.
func (p *pi) back(run store.RunDir, said ...string) supervisor.Reply {
	p.t.Helper()
	return p.hook("session_start", object{
		"reason": "reload", "entries": history(run, "pi-plans-run-start", "pi-plans-exec"), "said": said, "hasUI": true,
	})
}

func TestReportsThatNoDaemonHasHeardCountWhenTheSessionIsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.commit()
	p, run := b.executing("s1", threeChecks)
	p.rests("[DONE:VC-001]")
	p.rests("nothing")
	again := b.restarted(p)
	reply := again.back(run, "[DONE:VC-001] as before", "It runs: exit status 0.\n[DONE:VC-0", "02] [I-2:current]")
	want := store.Execution{DoneVCIDs: []string{"VC-001", "VC-002"}, CurrentI: "I-2", ImplStatus: map[string]string{}}
	got := b.checkpoint(run).Execution
	if diff := cmp.Diff(want, store.Execution{DoneVCIDs: got.DoneVCIDs, CurrentI: got.CurrentI, ImplStatus: got.ImplStatus}); diff != "" {
		t.Error(diff)
	}
	if e := entries(reply, "pi-plans-exec"); len(e) != 1 || !strings.Contains(e[0], `"noProgress":0`) {
		t.Errorf("entries %v", e) // what was reached since the last rest is progress
	}
	notes, err := run.LoadNotes()
	if err != nil || notes.Execution.Verified["VC-002"] != *head || !strings.Contains(notes.Execution.Evidence["VC-002"], "02]") {
		t.Errorf("notes %+v, %v", notes.Execution, err)
	}
	revision := b.checkpoint(run).Revision
	again.back(run, "[DONE:VC-001] as before", "It runs: exit status 0.\n[DONE:VC-0", "02] [I-2:current]")
	if now := b.checkpoint(run).Revision; now != revision {
		t.Errorf("what has been heard is written again: revision %d after %d", now, revision)
	}

	// The message must not begin a turn: the one at whose beginning the daemon was missed does.
	last := again.back(run, "[DONE:VC-003]")
	if cp := b.checkpoint(run); cp.Phase != store.PhaseImplementationReview || runStatus(t, run) != store.StatusDone {
		t.Errorf("with the last report the run is %s in phase %s", runStatus(t, run), cp.Phase)
	}
	if done := sent(last, "pi-plans-complete"); len(done) != 1 || done[0].TriggerTurn || len(entries(last, "pi-plans-exec-cleared")) != 1 {
		t.Errorf("actions %+v", last.Actions)
	}
}

func TestAnOldReportDoesNotCountWhereItSaysNothingOfNow(t *testing.T) {
	t.Parallel()
	t.Run("another commit", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.commit()
		p, run := b.executing("s1", threeChecks)
		p.says("[DONE:VC-001]")
		b.commit()
		again := b.restarted(p)
		again.back(run, "[DONE:VC-001]", "[DONE:VC-002][I-2:current]")
		says(t, again.context(), "Verified: 0 of 3", "before anything else: VC-001.", "Current item: I-2")
	})
	t.Run("another session went on", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.commit()
		p, run := b.executing("s1", threeChecks)
		p.says("[I-1:current]")
		if err := b.system.EndSession(t.Context(), "s1"); err != nil {
			t.Fatal(err)
		}
		other := b.pi("s2")
		if _, err := b.system.Resume(t.Context(), supervisor.ResumeRequest{Session: other.Session, RunID: run.ID}); err != nil {
			t.Fatal(err)
		}
		other.says("[I-2:current]")
		if err := b.system.EndSession(t.Context(), "s2"); err != nil {
			t.Fatal(err)
		}
		p.back(run, "[I-1:current][DONE:VC-003]")
		if got := b.checkpoint(run).Execution; got.CurrentI != "I-2" || len(got.DoneVCIDs) != 0 {
			t.Errorf("got %+v", got)
		}
		// From its new snapshot on it is the one that knows.
		p.back(run, "[DONE:VC-003]")
		if got := b.checkpoint(run).Execution; !cmp.Equal(got.DoneVCIDs, []string{"VC-003"}) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestASessionCarriesThePlanOutWhereItsHistoryDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	for i, test := range []struct {
		types   []string
		carries bool
	}{
		{[]string{"pi-plans-run-start"}, false}, // before the approval
		{[]string{}, false},                     // before the run
		{[]string{"pi-plans-run-start", "pi-plans-exec"}, true},
		{[]string{"pi-plans-run-start", "pi-plans-exec", "pi-plans-exec-cleared"}, false}, // after its end
		{[]string{"pi-plans-run-start", "pi-plans-exec", "pi-plans-exec-cleared", "pi-plans-exec", "pi-plans-plan-written"}, true},
	} {
		reply := p.hook("session_start", object{"reason": "tree", "entries": history(run, test.types...)})
		if carries := p.context() != ""; carries != test.carries {
			t.Errorf("%v: carried out %v, want %v", test.types, carries, test.carries)
		}
		before := b.checkpoint(run)
		p.says("[I-2:" + []string{"implemented", "validating"}[i/3] + "]")
		if written := b.checkpoint(run).Revision != before.Revision; written != test.carries {
			t.Errorf("%v: reports count: %v", test.types, written)
		}
		told := strings.Contains(notices(reply), "not at this point of the session")
		if want := !test.carries && len(test.types) > 0; told != want {
			t.Errorf("%v: told %q", test.types, notices(reply))
		}
	}
	p.hook("session_start", object{"reason": "tree", "entries": history(run, "pi-plans-run-start")})
	if reply := p.command("plans-execute", "", p.nobody); len(entries(reply, "pi-plans-exec")) != 1 || p.context() == "" {
		t.Error("the user's word does not carry the plan out at another point of the session")
	}
}

func TestACopyOfASessionIsToldWhoWorksOnItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	for _, types := range [][]string{{"pi-plans-run-start"}, {"pi-plans-run-start", "pi-plans-exec"}} {
		reply := b.pi("s2").hook("session_start", object{"reason": "startup", "entries": history(run, types...)})
		says(t, notices(reply), "Session s1 works on run "+run.ID, "/resume-plans")
	}
	if owner := b.owner(run.ID); owner != "s1" || p.context() == "" {
		t.Errorf("the run is owned by %s", owner)
	}
	if err := b.system.EndSession(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	reply := b.pi("s2").hook("session_start", object{"reason": "startup", "entries": history(run, "pi-plans-run-start", "pi-plans-exec")})
	if owner := b.owner(run.ID); owner != "s2" || notices(reply) != "" {
		t.Errorf("owned by %s, told %q", owner, notices(reply))
	}
}

// What is said of the checks that hold is the same in the brief of a resume, in its result
// and before each turn (seed: Workflow Checkpoints).
func TestABriefNamesTheChecksToVerifyAgainThatTheSessionNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	b.commit() // by the agent, in the middle of its work
	p.says("[DONE:VC-002]")
	again := b.restarted(p)
	resumed, err := again.system.Resume(t.Context(), supervisor.ResumeRequest{Session: again.Session, RunID: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"VC-001"}, resumed.Reverify); diff != "" {
		t.Error(diff)
	}
	says(t, resumed.Brief, "Verify these again first, each with its marker: VC-001.", "still valid: VC-002.", "- VC-001:", "- VC-003:")
	if strings.Contains(resumed.Brief, "- VC-002:") {
		t.Errorf("a check that holds is left to do: %s", resumed.Brief)
	}
	says(t, again.context(), "Verified: 1 of 3", "before anything else: VC-001.")
	if !b.checkpoint(run).Execution.MustReverify() {
		t.Error("the checkpoint does not say so")
	}
}
