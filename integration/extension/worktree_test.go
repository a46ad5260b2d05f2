package extension_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

const twoChecks = "# Bake more bread\n\n## Implementation Items\n- `I-001`: bake forty loaves a day\n\n" +
	"## Verifier Checklist\n- [ ] `VC-001` I-001; pass: forty loaves; evidence: count them\n- [ ] `VC-002` I-001; pass: they are good; evidence: eat one\n"

// linked is the scene in another work tree of its repository.
func (s *scene) linked() *scene {
	s.t.Helper()
	there := *s
	there.dir = filepath.Join(s.t.TempDir(), "linked")
	cmd := exec.Command("git", "-C", s.dir, "worktree", "add", "-q", there.dir, "-b", "linked")
	cmd.Env = s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return &there
}

// executes begins a run, has its plan of two checks approved and reports the first as
// passed; then it gets nowhere until it is left alone.
func (p *session) executes(topic string) planRun {
	p.t.Helper()
	run := p.begins(topic)
	if end := p.tries(writing(run.plan(), twoChecks))[0]; end.at("isError").truth() {
		p.t.Fatalf("the plan is not written: %s", end)
	}
	p.approves("Forty loaves stand there. [DONE:VC-001]")
	p.paused()
	return run
}

// paused waits until an execution is left alone.
func (p *session) paused() {
	p.t.Helper()
	p.notice("The execution is paused")
	p.settled()
}

// types a slash command that asks, and does not wait for its end.
func (p *session) types(text string) {
	p.t.Helper()
	p.send(map[string]any{"type": "prompt", "message": text})
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
	if done := before.at("execution.doneVcIds").list(); len(done) != 1 || before.at("execution.approval.approvedAt").text() == "" {
		t.Fatalf("the execution is %s", before.at("execution"))
	}

	there := s.linked()
	q := there.open()
	shown := q.tries(plans(map[string]any{"action": "show"}))[0].at("result.content.0.text").text()
	if root := parse([]byte(shown)).at("stateRoot").text(); root != filepath.Join(s.dir, ".git", "pi_plans") {
		t.Errorf("the state root of the linked work tree is %q", root)
	}
	q.types("/resume-plans")
	move := q.dialog("confirm")
	contains(t, move.at("message").text(), "belongs to the work tree "+s.dir, "Let it go on in "+there.dir)
	q.reply(move, true)
	contains(t, q.notice("was not resumed").at("message").text(), "actively owned", p.id())

	p.close()
	name, err := filepath.Rel(s.dir, bread.plan())
	if err != nil {
		t.Fatal(err)
	}
	mine := there.write(name, "# Mine\n")
	q.types("/resume-plans")
	q.reply(q.dialog("confirm"), true)
	contains(t, q.notice("was not resumed").at("message").text(), "a different file is there already", mine)
	if textOf(t, mine) != "# Mine\n" {
		t.Error("a document was overwritten")
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	q.types("/resume-plans")
	q.reply(q.dialog("confirm"), false)
	q.notice("Cancelled; nothing was changed.")
	if cp := s.runFile(bread, "checkpoint.json"); cp.String() != before.String() {
		t.Errorf("what was refused and cancelled has changed %s to %s", before, cp)
	}

	q.types("/resume-plans")
	q.reply(q.dialog("confirm"), true)
	q.notice("Resumed run " + bread.id)
	q.settled()
	s.ownedBy(bread, q.id())
	if textOf(t, mine) != twoChecks || textOf(t, bread.plan()) != twoChecks {
		t.Error("the plan is not in both work trees as it was written")
	}
	cp := s.runFile(bread, "checkpoint.json")
	if cp.at("worktreeRoot").text() != there.dir || cp.at("plan.path").text() != filepath.Join(there.dir, name) ||
		cp.at("execution.approval").any != nil || len(cp.at("execution.doneVcIds").list()) != 0 || cp.at("nextAction").text() != "accept-execute" {
		t.Errorf("the checkpoint is %s", cp)
	}
	if q.refused("bread.txt") == "" {
		t.Error("a file was written before the approval was given again")
	}

	q.prompt("Carry it out.", scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}},
		scriptedmodel.Step{Text: "All is done. [DONE:VC-001][DONE:VC-002]", LogMessages: true}, scriptedmodel.Step{Text: "over"})
	approval := q.dialog("confirm")
	contains(t, approval.at("message").text(), "in "+there.dir, "[ ] `VC-001`", "[ ] `VC-002`")
	q.reply(approval, true)
	contains(t, q.toolEnd("execute_plan").at("result.content.0.text").text(), "Verified: 0 of 2 checks.")
	q.settled()
	cp = s.runFile(bread, "checkpoint.json")
	if cp.at("execution.approval.worktree").text() != there.dir || len(cp.at("execution.doneVcIds").list()) != 2 || cp.at("phase").text() != "implementation-review" {
		t.Errorf("after the execution the checkpoint is %s", cp)
	}
	if used, was := cp.at("execution.usage.inToks").number(), before.at("execution.usage.inToks").number(); used == 0 || was == 0 {
		t.Errorf("tokens %v, before %v", used, was)
	}
	q.close()
	s.ownedBy(bread, "")
	if strings.Contains(s.must("runs"), "corrupt") {
		t.Error("a run is corrupt")
	}
}
