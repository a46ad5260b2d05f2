package supervisor_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestWhatAnAgentReportsIsDurableAtTheEndOfItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	head := b.commit()
	p, run := b.executing("s1", threeChecks)
	approved := b.checkpoint(run).Execution.Approval
	turns := []supervisor.Reply{
		p.hook("turn_end", object{"text": "[I-1:current] on it [DONE:VC-0", "stopReason": "toolUse", "usage": object{"input": 1200, "output": 30}}),
		p.hook("turn_end", object{"text": "01] and [I-1:implemented][I-9:current][DONE:VC-009]", "stopReason": "toolUse", "usage": object{"input": 300, "output": 4}}),
		p.hook("turn_end", object{"text": "", "stopReason": "toolUse"}),
	}
	want := &store.Execution{
		Approval: approved, DoneVCIDs: []string{"VC-001"}, ImplStatus: map[string]string{"I-1": "implemented"}, CurrentI: "I-1",
		Usage: store.TokenUsage{InToks: 1500, OutToks: 34},
	}
	if diff := cmp.Diff(want, b.checkpoint(run).Execution); diff != "" {
		t.Error(diff)
	}
	for i, reply := range turns {
		if entries(reply, "pi-plans-exec") != nil {
			t.Errorf("turn %d writes an entry in the stream", i)
		}
	}
	if got := line(turns[2]); !strings.Contains(got, "1.5k in-toks · 34 out-toks") {
		t.Errorf("status %q", got)
	}
	settled := p.settles(nil)
	if e := entries(settled, "pi-plans-exec"); len(e) != 1 || !strings.Contains(e[0], `{"id":"VC-001","text":"`+"`VC-001` covers `I-1`; it builds"+`","done":true}`) || !strings.Contains(e[0], `"usage":{"inToks":1500,"outToks":34}`) {
		t.Errorf("entries %v", e)
	}
	if e := entries(p.settles(nil), "pi-plans-exec"); e != nil {
		t.Errorf("written again: %v", e)
	}
	notes, err := run.LoadNotes()
	if err != nil || notes.Execution.Session != "s1" || !cmp.Equal(notes.Execution.Verified, map[string]string{"VC-001": *head}) {
		t.Errorf("notes %+v, %v", notes.Execution, err)
	}
	text := p.context()
	for _, want := range []string{"Verified: 1 of 3", "- `VC-002` covers", "I-1 (implemented)", "Current item: I-1", "The code graph is off"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from\n%s", want, text)
		}
	}
}

func TestTheRulesFollowTheSettingOfTheCodeGraph(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.executing("s1", threeChecks)
	on := true
	if _, err := b.system.Plans(t.Context(), p.Session, supervisor.PlansAction{Action: "set-graph-enabled", Enabled: &on}); err != nil {
		t.Fatal(err)
	}
	if text := p.context(); !strings.Contains(text, "The code graph is enabled") {
		t.Errorf("got %q", text)
	}
	overwrite(t, run.Root.Dir+"/config.json", "{")
	if text := p.context(); !strings.Contains(text, "settings of this workspace cannot be read") {
		t.Errorf("got %q", text)
	}
}

func TestTheLastCheckCompletesTheExecution(t *testing.T) {
	t.Parallel()
	for _, interactive := range []bool{true, false} {
		b := setup(t)
		p, run := b.executing("s1", threeChecks)
		p.screen.Has = interactive
		p.says("[DONE:VC-001][DONE:VC-002]")
		reply := p.says("[DONE:VC-003]")
		cp := b.checkpoint(run)
		if cp.Phase != store.PhaseImplementationReview || cp.NextAction != store.ActionAskQuestion || len(cp.Execution.DoneVCIDs) != 3 || runStatus(t, run) != store.StatusDone {
			t.Fatalf("phase %s, next %s, status %s", cp.Phase, cp.NextAction, runStatus(t, run))
		}
		if e := entries(reply, "pi-plans-exec-cleared"); len(e) != 1 || e[0] != `{"reason":"complete"}` || len(entries(reply, "pi-plans-exec")) != 1 {
			t.Errorf("entries %+v", reply.Actions)
		}
		done := sent(reply, "pi-plans-complete")
		if len(done) != 1 || !done[0].Message.Display || !strings.Contains(done[0].Message.Content, "✓ `VC-002`") || !strings.HasPrefix(line(reply), "🎯 plans: ") {
			t.Fatalf("actions %+v", reply.Actions)
		}
		asks := strings.Contains(done[0].Message.Content, "termination-condition")
		goal := entries(reply, "pi-plans-ameliorate")
		if asks != interactive || done[0].TriggerTurn != interactive || (len(goal) == 1) != interactive {
			t.Errorf("interactive %v: %+v, %v", interactive, done[0], goal)
		}
		if p.context() != "" || len(p.says("[DONE:VC-001]").Actions) != 0 {
			t.Error("it goes on after its end")
		}
		if reply := p.rests("on"); len(sent(reply, "pi-plans-goal-wait")) != 0 {
			t.Error("the agent is woken up after the end")
		}
	}
}

func TestAnotherDaemonTakesTheExecutionUpWhereItIsOnDisk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001][I-2:current]")
	again := b.restarted(p)
	stranger := *again
	stranger.ID = "s2"
	if stranger.context() != "" {
		t.Error("another session carries the plan out")
	}
	reply := again.hook("session_start", object{"reason": "resume"})
	if e := entries(reply, "pi-plans-exec"); len(e) != 1 || !strings.HasPrefix(line(reply), "⌛ plans 1/2") {
		t.Errorf("actions %+v", reply.Actions)
	}
	if text := again.context(); !strings.Contains(text, "Verified: 1 of 3") || !strings.Contains(text, "Current item: I-2") {
		t.Errorf("context %q", text)
	}
	again.says("[DONE:VC-002]")
	if cp := b.checkpoint(run); !cmp.Equal(cp.Execution.DoneVCIDs, []string{"VC-001", "VC-002"}) || cp.Execution.MustReverify() {
		t.Errorf("got %+v", cp.Execution)
	}
	again.says("[DONE:VC-003]")
	if cp := b.checkpoint(run); cp.Phase != store.PhaseImplementationReview || runStatus(t, run) != store.StatusDone {
		t.Errorf("phase %s", cp.Phase)
	}
}

func TestAChangedCommitKeepsTheApprovalAndWhatPassedIsVerifiedAgainOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001][DONE:VC-002]")
	approved := b.checkpoint(run).Execution.Approval
	b.commit()
	again := b.restarted(p)
	text := again.context()
	if !strings.Contains(text, "Verified: 0 of 3") || !strings.Contains(text, "before anything else: VC-001, VC-002.") {
		t.Errorf("context %q", text)
	}
	cp := b.checkpoint(run)
	if diff := cmp.Diff(approved, cp.Execution.Approval); diff != "" || !cp.Execution.MustReverify() {
		t.Errorf("flag %v, approval %s", cp.Execution.MustReverify(), diff)
	}
	again.says("[DONE:VC-001]")
	if cp := b.checkpoint(run); !cp.Execution.MustReverify() || !cmp.Equal(cp.Execution.DoneVCIDs, []string{"VC-001"}) {
		t.Errorf("with one of two verified again: %+v", cp.Execution)
	}

	next := setup(t)
	next.session.Workdir = b.session.Workdir
	if err := again.system.EndSession(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	third := next.pi("s1")
	if text := third.context(); !strings.Contains(text, "Verified: 1 of 3") || strings.Contains(text, "before anything else") {
		t.Errorf("what was verified at this commit is started over: %q", text)
	}
	third.says("[DONE:VC-002]")
	if cp := b.checkpoint(run); cp.Execution.MustReverify() || len(cp.Execution.DoneVCIDs) != 2 {
		t.Errorf("the flag stays: %+v", cp.Execution)
	}
}

func TestWithoutACommitNothingThatPassedIsTakenForGranted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	if text := b.restarted(p).context(); !strings.Contains(text, "Verified: 0 of 3") {
		t.Errorf("context %q", text)
	}
	if cp := b.checkpoint(run); !cp.Execution.MustReverify() || cp.Execution.Approval == nil {
		t.Errorf("got %+v", cp.Execution)
	}
}

func TestAPlanThatIsEditedInPlaceNeedsAFreshHandoffAfterARestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	path := b.planIn(run, 1, strings.Replace(threeChecks, "- [ ] `VC-001`", "- [x] `VC-001`", 1))
	p.says("[DONE:VC-001]")
	if text := p.context(); !strings.Contains(text, "Verified: 1 of 3") {
		t.Errorf("the session that ticks its plan off: %q", text)
	}
	again := b.restarted(p)
	if text := again.context(); text != "" {
		t.Errorf("goes on by a plan that nobody has approved: %q", text)
	}
	removeFile(t, path)
	if text := again.context(); text != "" {
		t.Errorf("goes on without its plan: %q", text)
	}
	b.planIn(run, 1, strings.Replace(threeChecks, "- [ ] `VC-001`", "- [x] `VC-001`", 1))
	again.execute(again.inTurn(confirm(true)))
	cp := b.checkpoint(run)
	identity, err := store.IdentifyPlan(path)
	if err != nil || cp.Execution.Approval.Plan.SHA256 != identity.SHA256 || again.context() == "" {
		t.Errorf("got %+v, %v", cp.Execution, err)
	}
}

func TestWhoLosesTheRunStopsAndIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.executing("s1", threeChecks)
	lease, err := run.TakeOver(t.Context(), "s2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if released, err := lease.Release(); !released || err != nil {
			t.Errorf("the new owner lost its run: %v", err)
		}
	})
	before := b.checkpoint(run)
	reply := p.says("[DONE:VC-001]")
	if w := warned(reply); len(w) != 1 || !strings.Contains(w[0], "goes on elsewhere") {
		t.Errorf("told %v", w)
	}
	if reply := p.says("[DONE:VC-001]"); warned(reply) != nil {
		t.Errorf("told again %v", warned(reply))
	}
	if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" || p.context() != "" {
		t.Error(diff)
	}
}

func TestAStoppedExecutionKeepsWhatItReachedAndGoesOnWithoutAQuestion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001]")
	if reply := p.command("plans-stop", "", p.inTurn(confirm(false))); len(reply.Actions) != 1 || runStatus(t, run) != store.StatusExecuting {
		t.Errorf("declined: %+v", reply.Actions)
	}
	reply := p.command("plans-stop", "", p.inTurn(confirm(true)))
	cp := b.checkpoint(run)
	if cp.Phase != store.PhaseExecuting || cp.Execution.PausedReason != "stopped by the user" || !cmp.Equal(cp.Execution.DoneVCIDs, []string{"VC-001"}) || runStatus(t, run) != store.StatusStopped {
		t.Errorf("status %s, %+v", runStatus(t, run), cp.Execution)
	}
	stop := sent(reply, "pi-plans-exec-stop")
	if e := entries(reply, "pi-plans-exec-cleared"); len(stop) != 1 || !stop[0].Message.Display || !strings.Contains(stop[0].Message.Content, "1 of 3") || len(e) != 1 || e[0] != `{"reason":"stopped"}` || !strings.HasPrefix(line(reply), "⛔") {
		t.Errorf("actions %+v", reply.Actions)
	}
	if p.context() != "" || p.rests("on").Result != nil {
		t.Error("it goes on")
	}
	if reply := p.command("plans-stop", "", p.nobody); !strings.Contains(reply.Actions[0].Text, "stopped already") {
		t.Errorf("stopped twice: %+v", reply.Actions)
	}
	goesOn := func(who string) {
		t.Helper()
		if cp := b.checkpoint(run); cp.Execution.PausedReason != "" || runStatus(t, run) != store.StatusExecuting || !strings.Contains(p.context(), "Verified: 1 of 3") {
			t.Errorf("%s: status %s, %+v", who, runStatus(t, run), cp.Execution)
		}
	}
	p.command("plans-execute", "", p.nobody)
	goesOn("the user")

	// The agent may not take back that its user has stopped it.
	p.command("plans-stop", "", p.inTurn(confirm(true)))
	present := p.screen
	p.screen = supervisor.Screen{}
	if _, err := p.converse(supervisor.KindTool, "execute_plan", object{}, p.nobody); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("nobody there: %v", err)
	}
	p.screen = present
	p.tool("execute_plan", object{}, p.inTurn(confirm(false)))
	if runStatus(t, run) != store.StatusStopped || p.context() != "" {
		t.Errorf("declined: status %s", runStatus(t, run))
	}
	p.tool("execute_plan", object{}, p.inTurn(confirm(true)))
	goesOn("the agent with its user's word")
}

func TestReportsAtOnceAreAllCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	again := b.restarted(p) // takes the execution up with the first of them
	var wg sync.WaitGroup
	for _, text := range []string{"[DONE:VC-001]", "[DONE:VC-002]", "[I-1:current]", "", "[I-2:validating]"} {
		wg.Go(func() {
			event := spelled(t, object{"text": text, "stopReason": "toolUse", "usage": object{"input": 7, "output": 2}})
			if _, err := again.system.Hook(context.Background(), again.Session, "turn_end", event); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	again.settles(object{"hasUI": false}) // tokens alone may wait until then
	got := b.checkpoint(run).Execution
	if len(got.DoneVCIDs) != 2 || got.CurrentI != "I-1" || got.ImplStatus["I-2"] != "validating" || got.Usage.InToks != 35 || got.Usage.OutToks != 10 {
		t.Errorf("got %+v", got)
	}
}
