package extension_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

const twoChecks = "# Bake more bread\n\n## Implementation Items\n- `I-001`: bake forty loaves a day\n\n" +
	"## Verifier Checklist\n- [ ] `VC-001` I-001; pass: forty loaves; evidence: count them\n- [ ] `VC-002` I-001; pass: they are good; evidence: eat one\n"

// linked is the scene in another work tree of its repository.
func (s *scene) linked() *scene {
	s.t.Helper()
	there := &scene{s.In(filepath.Join(s.t.TempDir(), "linked")), s.t}
	cmd := exec.Command("git", "-C", s.Dir, "worktree", "add", "-q", there.Dir, "-b", "linked")
	cmd.Env = s.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return there
}

// executes begins a run, has its plan of two checks approved and reports the first as
// passed; then it gets nowhere until it is left alone.
func (p *session) executes(topic string) planRun {
	p.t.Helper()
	run := p.begins(topic)
	if end := p.tries(writing(run.plan(), twoChecks))[0]; end.At("isError").Truth() {
		p.t.Fatalf("the plan is not written: %s", end)
	}
	p.approves("Forty loaves stand there. [DONE:VC-001]")
	p.paused()
	return run
}

// paused waits until an execution is left alone.
func (p *session) paused() {
	p.t.Helper()
	p.Notice("The execution is paused")
	p.Settled()
}

// types a slash command that asks, and does not wait for its end.
func (p *session) types(text string) {
	p.t.Helper()
	p.Send(map[string]any{"type": "prompt", "message": text})
}

func textOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestARunMovesToALinkedWorkTreeWithoutItsApproval(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	bread := p.executes("bread")
	before := s.runFile(bread, "checkpoint.json")
	if done := before.At("execution.doneVcIds").List(); len(done) != 1 || before.At("execution.approval.approvedAt").Text() == "" {
		t.Fatalf("the execution is %s", before.At("execution"))
	}

	there := s.linked()
	q := there.open()
	shown := q.tries(plans(map[string]any{"action": "show"}))[0].At("result.content.0.text").Text()
	if root := piharness.Parse([]byte(shown)).At("stateRoot").Text(); root != filepath.Join(s.Dir, ".git", "pi_plans") {
		t.Errorf("the state root of the linked work tree is %q", root)
	}
	q.types("/resume-plans")
	move := q.Dialog("confirm")
	contains(t, move.At("message").Text(), "belongs to the work tree "+s.Dir, "Let it go on in "+there.Dir)
	q.Reply(move, true)
	contains(t, q.Notice("was not resumed").At("message").Text(), "actively owned", p.id())

	p.Close()
	name, err := filepath.Rel(s.Dir, bread.plan())
	if err != nil {
		t.Fatal(err)
	}
	there.Write(name, "# Mine\n")
	mine := filepath.Join(there.Dir, name)
	q.types("/resume-plans")
	q.Reply(q.Dialog("confirm"), true)
	contains(t, q.Notice("was not resumed").At("message").Text(), "a different file is there already", mine)
	if textOf(t, mine) != "# Mine\n" {
		t.Error("a document was overwritten")
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	q.types("/resume-plans")
	q.Reply(q.Dialog("confirm"), false)
	q.Notice("Cancelled; nothing was changed.")
	if cp := s.runFile(bread, "checkpoint.json"); cp.String() != before.String() {
		t.Errorf("what was refused and cancelled has changed %s to %s", before, cp)
	}

	q.types("/resume-plans")
	q.Reply(q.Dialog("confirm"), true)
	q.Notice("Resumed run " + bread.id)
	q.Settled()
	s.ownedBy(bread, q.id())
	if textOf(t, mine) != twoChecks || textOf(t, bread.plan()) != twoChecks {
		t.Error("the plan is not in both work trees as it was written")
	}
	cp := s.runFile(bread, "checkpoint.json")
	if cp.At("worktreeRoot").Text() != there.Dir || cp.At("plan.path").Text() != filepath.Join(there.Dir, name) ||
		!cp.At("execution.approval").Empty() || len(cp.At("execution.doneVcIds").List()) != 0 || cp.At("nextAction").Text() != "accept-execute" {
		t.Errorf("the checkpoint is %s", cp)
	}
	if q.refused("bread.txt") == "" {
		t.Error("a file was written before the approval was given again")
	}

	q.Prompt("Carry it out.", scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}},
		scriptedmodel.Step{Text: "All is done. [DONE:VC-001][DONE:VC-002]", LogMessages: true}, scriptedmodel.Step{Text: "over"})
	approval := q.Dialog("confirm")
	contains(t, approval.At("message").Text(), "in "+there.Dir, "[ ] `VC-001`", "[ ] `VC-002`")
	q.Reply(approval, true)
	contains(t, q.ToolEnd("execute_plan").At("result.content.0.text").Text(), "Verified: 0 of 2 checks.")
	q.Settled()
	cp = s.runFile(bread, "checkpoint.json")
	if cp.At("execution.approval.worktree").Text() != there.Dir || len(cp.At("execution.doneVcIds").List()) != 2 || cp.At("phase").Text() != "implementation-review" {
		t.Errorf("after the execution the checkpoint is %s", cp)
	}
	if used, was := cp.At("execution.usage.inToks").Number(), before.At("execution.usage.inToks").Number(); used == 0 || was == 0 {
		t.Errorf("tokens %v, before %v", used, was)
	}
	q.Close()
	s.ownedBy(bread, "")
	if strings.Contains(s.must("runs"), "corrupt") {
		t.Error("a run is corrupt")
	}
}
