package story_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

func TestAPlanGoesOnInAnotherWorkTreeAfterAnApprovalOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := artifacts(t)
	handOff := scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}}
	s := piharness.NewScene(t, append(subagents(),
		when("PI-PLANS RESUME", askOven, write("oven/oven.go", "too early"), bash("touch early.txt"), handOff, says("It is not approved.")),
		when("Verified: 1 of 2", replace("oven/oven.go", "Minutes = 45", "Minutes = 40"), bash("grep 40 oven/oven.go"), says("`grep` prints the line. [DONE:VC-002]")),
		review(dir))...)
	s.Install()
	confirmRoles(s)
	p := open(t, s, s.Dir)
	p.firstHalf(dir)
	_, run, before := s.OnlyRun()
	p.Kill()
	s.KillDaemon()
	s.NoSurvivors()
	linked := filepath.Join(t.TempDir(), "linked")
	s.Git(s.Dir, "worktree", "add", "--quiet", "-b", "linked", linked)

	p2 := open(t, s, linked)
	p2.Send(map[string]any{"type": "prompt", "message": "/resume-plans"}) // Pi answers when the command is over
	move := p2.Dialog("confirm")
	for _, words := range []string{run.RunID, s.Dir, linked, "an approval to execute, what was verified"} {
		if !strings.Contains(move.At("message").Text(), words) {
			t.Errorf("the question %s does not say %q", move, words)
		}
	}
	p2.Reply(move, true)
	p2.Notice("Resumed run " + run.RunID)
	p2.went("ask_choice")
	// Until it is approved here, nothing is changed here.
	for _, tool := range []string{"write", "bash"} {
		if end := p2.ToolEnd(tool); !end.At("isError").Truth() {
			t.Errorf("%s runs without an approval in this work tree: %s", tool, end)
		}
	}
	approval := p2.Dialog("confirm")
	if _, _, cp := s.OnlyRun(); cp.Execution.Approval != nil || len(cp.Execution.DoneVCIDs) != 0 || cp.Execution.OriginWorktree != s.Dir {
		t.Errorf("before the answer: %+v", cp.Execution)
	}
	if message := approval.At("message").Text(); !strings.Contains(message, linked) || !strings.Contains(message, "[ ] `VC-001`") {
		t.Errorf("the question is %q", message)
	}
	p2.Reply(approval, false)
	if end := p2.went("execute_plan"); end.At("result.details.status").Text() != "declined" {
		t.Errorf("a declined plan: %s", end)
	}
	p2.said("It is not approved.")
	p2.Prompt("Now do it.", handOff, bash("echo 45 minutes > batch.txt && cat batch.txt"), says("`cat` prints it. [DONE:VC-001]"),
		replace("oven/oven.go", "Minutes = 45", "Minutes = 40"), bash("grep 40 oven/oven.go"), says("`grep` prints the line. [DONE:VC-002]"),
		review(dir).Steps[0], review(dir).Steps[1], refineWork(dir), says("The reviewers have answered."))
	approval = p2.Dialog("confirm")
	p2.Reply(approval, true)
	p2.went("execute_plan")
	p2.secondHalf(dir)
	if dialogs := p2.Dialogs(); len(dialogs) != 4 {
		t.Errorf("the user was asked %d times, want for the move, twice for the approval and for the end of the review: %s", len(dialogs), dialogs)
	}
	p2.Close()
	concluded(t, s, linked)
	subagentsPaid(t, s)
	_, _, cp := s.OnlyRun()
	at := cp.Execution.Approval
	if at.Worktree != linked || cp.WorktreeRoot != linked || cp.Migration == nil || cp.Migration.FromWorktree != s.Dir || at.Plan.SHA256 != before.Execution.Approval.Plan.SHA256 {
		t.Errorf("the approval is %+v, the run in %s, moved by %+v", at, cp.WorktreeRoot, cp.Migration)
	}
	// What was made at the first place is left alone.
	for name, want := range map[string]string{"batch.txt": "45 minutes\n", dir + "/PLAN_v1.md": planText, dir + "/PLAN_v2.md": revisedText} {
		if diff := cmp.Diff(want, s.Read(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if text := s.Read("oven/oven.go"); !strings.Contains(text, "Minutes = 45") {
		t.Errorf("oven.go of the first work tree is %q", text)
	}
	if text := s.Read(filepath.Join(linked, dir, "PLAN_v2.md")); text != revisedText {
		t.Errorf("the plan in the second work tree is %q", text)
	}
}
