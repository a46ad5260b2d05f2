package supervisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestAPlanIsExecutedWhenItsUserHasApprovedExactlyIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.commit()
	p, run, path := b.written("s1", threeChecks)
	if p.writes("src/main.go") == "" {
		t.Fatal("a run that is planned may write")
	}
	identity, err := store.IdentifyPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	reply := p.execute(p.inTurn(sees(t, func(d supervisor.Dialog) {
		for _, want := range []string{path, identity.SHA256, run.Root.Worktree, "until all of these hold", "[ ] `VC-001` covers `I-1`; it builds", "VC-002", "VC-003"} {
			if !strings.Contains(d.Message, want) {
				t.Errorf("%q is missing from %q", want, d.Message)
			}
		}
		if d.Kind != supervisor.DialogConfirm || b.checkpoint(run).Execution != nil || p.writes("src/main.go") == "" {
			t.Errorf("before the answer: %+v", d)
		}
	}, confirm(true))))
	if got := handedOff(t, reply); got.Status != "executing" || got.PlanPath != path || got.ItemCount != 3 || reply.Result.IsError {
		t.Errorf("details %+v", got)
	}
	cp := b.checkpoint(run)
	want := &store.Execution{
		Approval:  &store.Approval{Plan: identity, Worktree: run.Root.Worktree, HeadAtApproval: head, ApprovedAt: cp.Execution.Approval.ApprovedAt},
		DoneVCIDs: []string{}, ImplStatus: map[string]string{},
	}
	if diff := cmp.Diff(want, cp.Execution); diff != "" || cp.Phase != store.PhaseExecuting || cp.NextAction != store.ActionExecuteItems {
		t.Errorf("phase %s, next %s, %s", cp.Phase, cp.NextAction, diff)
	}
	if status := runStatus(t, run); status != store.StatusExecuting || p.writes("src/main.go") != "" {
		t.Errorf("the run is %s, and writing is %q", status, p.writes("src/main.go"))
	}
	begun := sent(reply, "pi-plans-exec-start")
	if len(begun) != 1 || begun[0].TriggerTurn || !begun[0].Message.Display || len(entries(reply, "pi-plans-exec")) != 1 || len(entries(reply, "pi-plans-run-start")) != 1 {
		t.Errorf("actions %+v", reply.Actions)
	}
	if !strings.HasPrefix(line(reply), "⌛ plans 0/2: spent 00:00:0") {
		t.Errorf("status %q", line(reply))
	}
	if text := p.context(); !strings.Contains(text, "write access is on") || !strings.Contains(text, "Verified: 0 of 3") {
		t.Errorf("context %q", text)
	}
}

func TestADeclinedPlanStaysInPlanning(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(supervisor.Dialog) supervisor.Answer{"no": confirm(false), "dismissed": dismiss} {
		b := setup(t)
		p, run, _ := b.written("s1", threeChecks)
		before := b.checkpoint(run)
		reply := p.execute(p.inTurn(answer))
		if got := handedOff(t, reply); got.Status != "declined" || !strings.Contains(reply.Result.Text, "Stay in planning") || reply.Result.IsError {
			t.Errorf("%s: %+v", name, reply.Result)
		}
		if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" || runStatus(t, run) != store.StatusPlanning || p.writes("src/main.go") == "" || p.context() != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAPlanThatCannotBeExecutedIsRefusedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(b *bundle, p *pi, run store.RunDir, path string)
		params  object
		want    string
	}{
		"no version":   {func(b *bundle, _ *pi, _ store.RunDir, path string) { _ = os.Remove(path) }, object{}, "has no PLAN_v<N>.md"},
		"no file":      {nil, object{"planPath": "@gone/PLAN_v1.md"}, "there is no plan at"},
		"no directory": {nil, object{"workdir": "gone"}, "gone"},
		"no checklist": {func(b *bundle, _ *pi, run store.RunDir, _ string) { b.planIn(run, 2, "# A plan\n") }, object{}, "no section \"## Verifier Checklist\""},
		"quoted checklist": {func(b *bundle, _ *pi, run store.RunDir, _ string) {
			b.planIn(run, 2, "```\n## Verifier Checklist\n- [ ] VC-1 x\n```\n")
		}, object{}, "line 2: the verifier checklist is inside the code block that line 1 opens"},
		"another version than that on record": {func(b *bundle, _ *pi, run store.RunDir, _ string) { b.planIn(run, 2, threeChecks+"\n") }, object{}, "is not the plan on record"},
		"nobody to ask":                       {func(_ *bundle, p *pi, _ store.RunDir, _ string) { p.screen = supervisor.Screen{Mode: "json"} }, object{}, "No UI available"},
	} {
		b := setup(t)
		p, run, path := b.written("s1", threeChecks)
		before := b.checkpoint(run)
		if c.prepare != nil {
			c.prepare(b, p, run, path)
		}
		if _, err := p.converse(supervisor.KindTool, "execute_plan", c.params, p.nobody); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" || runStatus(t, run) != store.StatusPlanning {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var input *supervisor.InputError
	p := setup(t).pi("s1")
	if _, err := p.converse(supervisor.KindTool, "execute_plan", object{}, p.nobody); !errors.As(err, &input) || !strings.Contains(err.Error(), "name the plan file") {
		t.Errorf("without a run: %v", err)
	}
}

func TestWhatChangesWhileItsApprovalIsAskedForIsNotApproved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run, path := b.written("s1", threeChecks)
	var input *supervisor.InputError
	_, err := p.converse(supervisor.KindTool, "execute_plan", object{}, p.inTurn(sees(t, func(supervisor.Dialog) {
		overwrite(t, path, threeChecks+"- [ ] VC-004 and delete everything\n")
	}, confirm(true))))
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "has changed while its approval was asked for") {
		t.Errorf("got %v", err)
	}
	if cp := b.checkpoint(run); cp.Execution != nil || cp.Phase != store.PhasePlanning || runStatus(t, run) != store.StatusPlanning {
		t.Errorf("got %+v", cp.Execution)
	}
}

func TestAnApprovedPlanGoesOnWithoutAQuestionAndAnotherOneIsAskedFor(t *testing.T) {
	t.Parallel()
	now := time.Now() // two approvals at one time are two
	b := setupWith(t, supervisor.Options{Now: func() time.Time { return now }})
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	approved := b.checkpoint(run).Execution.Approval
	reply := p.execute(p.nobody)
	if got := handedOff(t, reply); got.Status != "executing" || len(sent(reply, "pi-plans-exec-start")) != 0 || !strings.Contains(reply.Result.Text, "Verified: 1 of 3") {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(approved, b.checkpoint(run).Execution.Approval); diff != "" {
		t.Error(diff)
	}
	second := b.planIn(run, 2, strings.ReplaceAll(threeChecks, "VC-003", "VC-004"))
	reply = p.execute(p.inTurn(confirm(false)))
	if cp := b.checkpoint(run); handedOff(t, reply).Status != "declined" || cp.Phase != store.PhaseExecuting || len(cp.Execution.DoneVCIDs) != 1 {
		t.Errorf("the execution of the first is disturbed: %+v", cp.Execution)
	}
	reply = p.execute(p.inTurn(confirm(true)))
	cp := b.checkpoint(run)
	if handedOff(t, reply).PlanPath != second || cp.Execution.Approval.Plan.Path != second || cp.Plan.Version != 2 || len(cp.Execution.DoneVCIDs) != 0 {
		t.Errorf("the second: %+v, plan %+v", cp.Execution, cp.Plan)
	}
	p.says("[DONE:VC-004] [DONE:VC-003]")
	if got := b.checkpoint(run).Execution.DoneVCIDs; !cmp.Equal(got, []string{"VC-004"}) {
		t.Errorf("done %v", got)
	}
}

func TestChecksThatThePlanHasTickedCountAsDone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", strings.Replace(threeChecks, "- [ ] `VC-002`", "- [x] `VC-002`", 1))
	if got := b.checkpoint(run).Execution.DoneVCIDs; !cmp.Equal(got, []string{"VC-002"}) || !strings.Contains(p.context(), "Verified: 1 of 3") {
		t.Errorf("done %v", got)
	}
	again := b.restarted(p)
	if text := again.context(); !strings.Contains(text, "Verified: 1 of 3") {
		t.Errorf("after a restart: %q", text)
	}
}

func TestAPlanThatBelongsToNoRunStartsOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	overwrite(t, filepath.Join(b.session.Workdir, "PLAN.md"), threeChecks)
	reply, err := p.converse(supervisor.KindTool, "execute_plan", object{"planPath": "@PLAN.md"}, p.inTurn(confirm(true)))
	if err != nil {
		t.Fatal(err)
	}
	runs, err := b.system.Runs(t.Context(), p.Session)
	if err != nil || len(runs) != 1 || runs[0].Status != store.StatusExecuting || runs[0].Phase != store.PhaseExecuting {
		t.Fatalf("runs %+v, %v", runs, err)
	}
	if e := entries(reply, "pi-plans-run-start"); len(e) != 1 || !strings.Contains(e[0], runs[0].RunID) || p.context() == "" {
		t.Errorf("entries %v", e)
	}
}

func TestAPlanOfOneCheckThatItsUserKeepsElsewhereIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	path := filepath.Join(b.session.Workdir, "PLAN.md")
	overwrite(t, path, "# A plan\n\n## Verifier Checklist\n- [ ] `VC-001` it builds\n")
	reply, err := p.converse(supervisor.KindTool, "execute_plan", object{"planPath": "PLAN.md"}, p.inTurn(confirm(true)))
	if err != nil {
		t.Fatal(err)
	}
	if told := spelled(t, reply); !strings.Contains(string(told), ", 1 check. ") {
		t.Errorf("the start is told as %s", told)
	}
	says(t, notices(p.command("plans", "", p.nobody)), "Plan: "+path+", 0 items, 0 of 1 checks passed")
}

func TestTheCommandApprovesAndSendsTheAgentOnItsWay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, _, _ := b.written("s1", threeChecks)
	reply := p.command("plans-execute", "", p.inTurn(confirm(true)))
	wake := sent(reply, "pi-plans-goal-wait")
	if len(wake) != 1 || !wake[0].TriggerTurn || wake[0].Message.Display || !strings.Contains(wake[0].Message.Content, "VC-001") {
		t.Errorf("actions %+v", reply.Actions)
	}
	p.screen.Idle = false
	if reply := p.command("plans-execute", "", p.nobody); len(sent(reply, "pi-plans-goal-wait")) != 0 {
		t.Errorf("an agent at work is woken up: %+v", reply.Actions)
	}
	var owned *store.OwnedError
	if _, err := b.pi("s2").converse(supervisor.KindCommand, "plans-execute", "", p.nobody); !errors.As(err, &owned) {
		t.Errorf("another session goes on with it: %v", err)
	}
}

func TestARunThatHasMovedIsApprovedAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	if _, err := run.MutateCheckpoint(nil, nil, time.Now(), store.Migrated(run.Root, time.Now())); err != nil {
		t.Fatal(err)
	}
	if p.context() != "" {
		t.Error("it goes on without an approval")
	}
	p.execute(p.inTurn(confirm(true)))
	if cp := b.checkpoint(run); cp.Execution.Approval == nil || len(cp.Execution.DoneVCIDs) != 0 || p.context() == "" {
		t.Errorf("got %+v", cp.Execution)
	}
}

// As after a crash between the approval and what follows from it.
func TestAnApprovalThatIsDurableCountsAndTheGuardHoldsUntilItIsActedOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run, _ := b.written("s1", threeChecks)
	if _, err := b.system.ApproveExecution(t.Context(), p.Session, run.ID, ""); err != nil {
		t.Fatal(err)
	}
	if runStatus(t, run) != store.StatusPlanning || p.writes("src/main.go") == "" || p.context() != "" {
		t.Errorf("status %s, writing is %q", runStatus(t, run), p.writes("src/main.go"))
	}
	p.execute(p.nobody)
	if runStatus(t, run) != store.StatusExecuting || p.writes("src/main.go") != "" || p.context() == "" {
		t.Errorf("status %s", runStatus(t, run))
	}
}

func TestASessionTurnsToThePlanThatItsUserApprovedLast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, first := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	overwrite(t, filepath.Join(b.session.Workdir, "PLAN.md"), threeChecks+"- [ ] VC-004 more\n")
	if _, err := p.converse(supervisor.KindTool, "execute_plan", object{"planPath": "PLAN.md"}, p.inTurn(confirm(true))); err != nil {
		t.Fatal(err)
	}
	if text := p.context(); !strings.Contains(text, "PLAN.md\nVerified: 0 of 4") {
		t.Errorf("context %q", text)
	}
	p.says("[DONE:VC-002]")
	if got := b.checkpoint(first).Execution.DoneVCIDs; !cmp.Equal(got, []string{"VC-001"}) {
		t.Errorf("the first run got %v", got)
	}
}
