package supervisor_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// brief is the message of the user in a reply.
func brief(t *testing.T, reply supervisor.Reply) supervisor.Action {
	t.Helper()
	f := followUps(reply)
	if len(f) != 1 {
		t.Fatalf("actions %+v", reply.Actions)
	}
	return f[0]
}

func TestARevisionTakesTheExecutionBackToPlanningAndForwardAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.executing("s1", threeChecks)
	p.hook("turn_end", object{"text": "[DONE:VC-002]", "stopReason": "stop", "usage": object{"input": 10, "output": 1}})
	if reply := p.command("update-plan", "", p.inTurn(confirm(false))); followUps(reply) != nil || b.checkpoint(run).Phase != store.PhaseExecuting || p.context() == "" {
		t.Errorf("declined: %+v", reply.Actions)
	}
	reply := p.command("update-plan", "make it  faster", p.inTurn(confirm(true)))
	record, err := run.Load()
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(record.ArtifactDir, "PLAN_v2.md")
	message := brief(t, reply)
	for _, want := range []string{"PLAN_v1.md", next, "make it faster", "Verified so far: VC-002.", "Not verified: VC-001, VC-003."} {
		if !strings.Contains(message.Text, want) {
			t.Errorf("%q is missing from %q", want, message.Text)
		}
	}
	cp := b.checkpoint(run)
	if cp.Phase != store.PhasePlanning || cp.NextAction != store.ActionRevisePlan || cp.Execution.Approval != nil || cp.Execution.Usage.InToks != 10 || record.Status != store.StatusPlanning || message.DeliverAs != "" {
		t.Errorf("phase %s, next %s, status %s, %+v", cp.Phase, cp.NextAction, record.Status, cp.Execution)
	}
	if e := entries(reply, "pi-plans-exec-cleared"); len(e) != 1 || e[0] != `{"reason":"update-plan"}` || p.context() != "" || p.writes("src/main.go") == "" {
		t.Errorf("entries %v", e)
	}
	want := []store.Decision{{Question: "What becomes of PLAN_v1.md?", Options: []string{"Revise the plan"}, Answer: "make it faster", AnswerSource: "user", Artifact: next}}
	if diff := cmp.Diff(want, b.decisions(run), ignoreTimes); diff != "" {
		t.Error(diff)
	}

	path := b.planIn(run, 2, threeChecks+"- [ ] VC-004 more\n")
	if reply := p.hook("tool_result", object{"toolName": "write", "input": object{"path": path}}); warned(reply) != nil {
		t.Errorf("the new version is not recorded: %v", warned(reply))
	}
	if _, err := b.system.Refine(t.Context(), supervisor.RefineRequest{Session: p.Session, PlanPath: path, Model: supervisor.ModelAnswer{Answered: true}}, nil); err != nil {
		t.Errorf("the new version cannot be reviewed: %v", err)
	}
	p.execute(p.inTurn(confirm(true)))
	if cp := b.checkpoint(run); cp.Phase != store.PhaseExecuting || cp.Plan.Version != 2 || len(cp.Execution.DoneVCIDs) != 0 || !strings.Contains(p.context(), "0 of 4") {
		t.Errorf("phase %s, %+v", cp.Phase, cp.Plan)
	}
}

func TestWhatFollowsTheCommandIsAPathOrWhatTheRevisionIsAbout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run, path := b.written("s1", threeChecks)
	p.screen.Idle = false
	for args, want := range map[string]struct{ path, focus string }{
		"": {path, ""}, "tests first": {path, "tests first"}, "@" + path + " tests": {path, "tests"}, path: {path, ""},
	} {
		message := brief(t, p.command("update-plan", args, p.nobody))
		if !strings.HasPrefix(message.Text, "Revise the plan "+want.path+".") || strings.Contains(message.Text, "revision is about") != (want.focus != "") || !strings.Contains(message.Text, want.focus) || message.DeliverAs != "followUp" {
			t.Errorf("%q: %+v", args, message)
		}
	}
	if cp := b.checkpoint(run); cp.Phase != store.PhasePlanning || runStatus(t, run) != store.StatusPlanning {
		t.Error(cp.Phase)
	}
	if _, err := p.converse(supervisor.KindCommand, "update-plan", "gone.md", p.nobody); err == nil || !strings.Contains(err.Error(), "gone.md") {
		t.Errorf("a plan that is not there: %v", err)
	}
}

func TestWhatIsPastRevisingIsRefused(t *testing.T) {
	t.Parallel()
	var input *supervisor.InputError
	b := setup(t)
	if _, err := b.pi("s0").converse(supervisor.KindCommand, "update-plan", "", nil); !errors.As(err, &input) {
		t.Errorf("without a run: %v", err)
	}
	p, run := b.executing("s1", threeChecks)
	quiet := *p
	quiet.screen = supervisor.Screen{Mode: "json"}
	if reply := quiet.command("update-plan", "", p.nobody); warned(reply) == nil || b.checkpoint(run).Phase != store.PhaseExecuting {
		t.Errorf("with nobody to ask: %+v", reply.Actions)
	}
	p.says("[DONE:VC-001][DONE:VC-002][DONE:VC-003]")
	if _, err := p.converse(supervisor.KindCommand, "update-plan", "", p.nobody); !errors.As(err, &input) || !strings.Contains(err.Error(), "start a new run") {
		t.Errorf("after its end: %v", err)
	}
}
