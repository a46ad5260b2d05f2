package supervisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestTheEndOfOneSessionLeavesTheRunOfAnotherToIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plan("PLAN.md", "# A plan\n")
	first, second := b.startRunAs(b.as("first")), b.startRunAs(b.as("second"))
	if err := b.system.EndSession(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if got := b.meant(b.as("first")); got != first {
		t.Errorf("session first means %s, want its own, %s", got, first)
	}
	if err := b.system.EndSession(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if got := b.meant(b.as("first")); got != second {
		t.Errorf("ended, session first means %s, want the active one, %s", got, second)
	}
}

// The first session has gone; another goes on with the plan, with what has passed.
func TestAnotherSessionResumesAnExecutionAndFinishesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.commit()
	p, run := b.executing("s1", twoChecks)
	p.says("[DONE:VC-001]")
	cp := b.checkpoint(run)
	if at := cp.Execution.Approval.HeadAtApproval; at == nil || *at != *head || !cmp.Equal(cp.Execution.DoneVCIDs, []string{"VC-001"}) {
		t.Fatalf("on record: %+v", cp.Execution)
	}
	p.hook("session_shutdown", object{"reason": "quit"})

	other := b.pi("s2")
	if other.context() != "" {
		t.Error("the other session carries the plan out before it has resumed the run")
	}
	reply := other.command("resume-plans", "", other.nobody)
	if brief := kickoffs(reply); len(brief) != 1 || !strings.Contains(brief[0], "still valid: VC-001") || !strings.Contains(notices(reply), "Resumed run "+run.ID) {
		t.Fatalf("resumed with %+v", reply.Actions)
	}
	if text := other.context(); !strings.Contains(text, "Verified: 1 of 2") {
		t.Errorf("context %q", text)
	}
	other.says("[DONE:VC-002]")
	cp = b.checkpoint(run)
	if !cmp.Equal(cp.Execution.DoneVCIDs, []string{"VC-001", "VC-002"}) || cp.Phase != store.PhaseImplementationReview || runStatus(t, run) != store.StatusDone {
		t.Errorf("phase %s, status %s, %+v", cp.Phase, runStatus(t, run), cp.Execution)
	}
}

func TestAQuestionThatIsPendingIsAskedAgainInWhicheverSessionResumes(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"tui", "rpc"} {
		b := setup(t)
		p, run := b.atWork("s1")
		p.tool("ask_choice", colours(object{"questionId": "q1"}), p.inTurn(dismiss))
		other := b.pi("s2")
		other.screen.Mode = mode
		if reply := other.command("resume-plans", "", other.nobody); kickoffs(reply) != nil || !strings.Contains(notices(reply), "actively owned") {
			t.Errorf("%s: while the first lives: %+v", mode, reply.Actions)
		}
		p.hook("session_shutdown", object{"reason": "quit"})
		if brief := kickoffs(other.command("resume-plans", "", other.nobody)); len(brief) != 1 || !strings.Contains(brief[0], "PENDING question q1") {
			t.Fatalf("%s: %q", mode, brief)
		}
		chose(t, other.tool("ask_choice", colours(object{"questionId": "q1"}), other.inTurn(choose("1."))), "red", "user")
		if cp := b.checkpoint(run); cp.PendingQuestion != nil || !cp.Answered("q1") {
			t.Errorf("%s: pending %+v", mode, cp.PendingQuestion)
		}
	}
}

// Where there is no checkpoint only the answer is recorded, and none is made for it.
func TestAQuestionMakesNoCheckpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	b.legacy(run)
	chose(t, p.tool("ask_choice", colours(object{"questionId": "q1"}), p.inTurn(choose("1."))), "red", "user")
	if _, err := run.LoadCheckpoint(); !errors.Is(err, store.ErrNoCheckpoint) || len(b.decisions(run)) != 1 {
		t.Errorf("there is a checkpoint, or no answer: %v", err)
	}
}

func TestWhatEndsAnExecutionLeavesItsLastSnapshotInTheSession(t *testing.T) {
	t.Parallel()
	for command, reason := range map[string]string{"plans-stop": "stopped", "plans-abandon": "abandoned", "update-plan": "update-plan"} {
		b := setup(t)
		p, _ := b.executing("s1", twoChecks)
		p.says("[DONE:VC-001]")
		reply := p.command(command, "", p.inTurn(confirm(true)))
		snapshots, cleared := entries(reply, "pi-plans-exec"), entries(reply, "pi-plans-exec-cleared")
		if len(snapshots) != 1 || !strings.Contains(snapshots[0], `it builds","done":true`) {
			t.Errorf("/%s: snapshots %v", command, snapshots)
		}
		if paused := `"paused":"` + reason + ` by the user"`; reason != "update-plan" && !strings.Contains(snapshots[0], paused) {
			t.Errorf("/%s: the agent is woken up after %v", command, snapshots)
		}
		if len(cleared) != 1 || cleared[0] != `{"reason":"`+reason+`"}` {
			t.Errorf("/%s: cleared %v", command, cleared)
		}
	}
}

// The lanes of a round that a session works on itself could never end, so that it could
// not be consolidated (spec: checkpoint 2.8, no. 6).
func TestARoundOfTheCurrentSessionIsNotOnRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run, path := b.written("s1", "# A plan\n\nBake bread.\n")
	if _, err := b.system.Plans(t.Context(), p.Session, supervisor.PlansAction{Action: "set-role", Role: "reviewer", Mode: "current-session"}); err != nil {
		t.Fatal(err)
	}
	before := b.checkpoint(run)
	result, err := b.system.Refine(t.Context(), supervisor.RefineRequest{
		Session: p.Session, PlanPath: path, Reviewers: 2, Focus: "salt", Model: supervisor.ModelAnswer{Answered: true},
	}, nil)
	if err != nil || len(result.Lanes) != 0 || result.RoundID != "" || result.Role != actors.Reviewer {
		t.Fatalf("got %+v, %v", result, err)
	}
	holds(t, result.Text, "current-session", "Bake bread.", "salt")
	if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" {
		t.Errorf("on record: %s", diff)
	}
	if records, err := run.RoundDir().Rounds(); err != nil || len(records) != 0 {
		t.Errorf("records %+v, %v", records, err)
	}
}

// A round that is asked for again has its answers and costs neither a child nor a revision.
func TestAWholeRoundIsGivenAgainFromTheRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	req.Reviewers = 2
	first, err := b.system.Refine(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := b.run(first.RunID)
	before := b.checkpoint(run)
	req.ResumeRoundID = first.RoundID
	again, err := b.system.Refine(t.Context(), req, nil)
	if err != nil || len(again.Lanes) != 2 {
		t.Fatal(again, err)
	}
	for i, lane := range again.Lanes {
		if !lane.Reused || lane.Output != first.Lanes[i].Output || lane.LaneID != first.Lanes[i].LaneID {
			t.Errorf("lane %d is %+v", i, lane)
		}
	}
	if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" {
		t.Error(diff)
	}
}

// A plan that was given up does not come back because an agent hands it off: its user
// starts a new run for it, and is asked.
func TestAnAbandonedRunIsNotExecuted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.executing("s1", threeChecks)
	path := b.checkpoint(run).Plan.Path
	p.command("plans-abandon", "", p.inTurn(confirm(true)))
	var input *supervisor.InputError
	for kind, name := range map[string]string{supervisor.KindTool: "execute_plan", supervisor.KindCommand: "plans-execute"} {
		if _, err := p.converse(kind, name, map[string]any{supervisor.KindTool: object{}, supervisor.KindCommand: ""}[kind], p.nobody); !errors.As(err, &input) || !strings.Contains(err.Error(), "is abandoned") {
			t.Errorf("%s: %v", name, err)
		}
	}
	reply, err := p.converse(supervisor.KindTool, "execute_plan", object{"planPath": path}, p.inTurn(confirm(true)))
	if err != nil || handedOff(t, reply).Status != "executing" {
		t.Fatal(reply, err)
	}
	runs, err := b.system.Runs(t.Context(), p.Session)
	if err != nil || len(runs) != 2 {
		t.Fatal(runs, err)
	}
	for _, r := range runs {
		if want := map[bool]store.RunStatus{true: store.StatusAbandoned, false: store.StatusExecuting}[r.RunID == run.ID]; r.Status != want {
			t.Errorf("run %s is %s, want %s", r.RunID, r.Status, want)
		}
	}
}

// A session carries out the plan of the run that it works on and no other.
func TestASessionThatTurnsToAnotherRunLeavesItsExecution(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]func(b *bundle, p *pi){
		"it starts one": func(_ *bundle, p *pi) { p.startRunOf("another") },
		"it reviews a plan of none": func(b *bundle, p *pi) {
			req := b.plan("OTHER.md", "# Another plan\n")
			req.Session, req.Reviewers = p.Session, 1
			if _, err := p.system.Refine(p.t.Context(), req, nil); err != nil {
				p.t.Fatal(err)
			}
		},
		"it resumes one": func(b *bundle, p *pi) {
			other := b.recorded(1, "another", store.StatusPlanning)
			if _, err := p.system.Resume(p.t.Context(), supervisor.ResumeRequest{Session: p.Session, RunID: other.ID}); err != nil {
				p.t.Fatal(err)
			}
		},
	} {
		b := setup(t)
		p, run := b.executing("s1", threeChecks)
		p.hook("turn_end", object{"text": "", "stopReason": "toolUse", "usage": object{"input": 7, "output": 2}})
		turn(b, p)
		p.says("[DONE:VC-001]")
		if text := p.context(); text != "" {
			t.Errorf("%s: context %q", name, text)
		}
		e := b.checkpoint(run).Execution
		if len(e.DoneVCIDs) != 0 || e.Approval == nil || e.Usage.InToks != 7 {
			t.Errorf("%s: the first run got %+v", name, e)
		}
	}
}

// Also in the session that works on it: its user says that it goes on from here.
func TestAResumedExecutionIsTakenUpByTheCommitThatIsCheckedOutNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	b.commit()
	p.command("resume-plans", "", p.nobody)
	if text := p.context(); !strings.Contains(text, "before anything else: VC-001.") {
		t.Errorf("context %q", text)
	}
	p.says("[DONE:VC-002]")
	if cp := b.checkpoint(run); !cp.Execution.MustReverify() || cmp.Equal(cp.Execution.DoneVCIDs, []string{"VC-001", "VC-002"}) {
		t.Errorf("VC-001 counts without having passed again: %+v", cp.Execution)
	}
}

// Whoever moves the pointer of the workspace takes no execution away.
func TestASessionKeepsTheExecutionThatItHasTakenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	again := b.restarted(p)
	if again.context() == "" {
		t.Fatal("it is not taken up")
	}
	(&bundle{t: t, system: again.system, session: b.session}).pi("s2").startRunOf("another") // the active one
	if reason := again.writes(filepath.Join("src", "main.go")); reason != "" || again.context() == "" {
		t.Errorf("held to the run of another session: %s", reason)
	}
	again.says("[DONE:VC-001]")
	if got := b.checkpoint(run).Execution.DoneVCIDs; len(got) != 1 {
		t.Errorf("done %v", got)
	}
	if _, err := os.Stat(filepath.Join(run.Dir, "owner.json")); err != nil {
		t.Error(err)
	}
}
