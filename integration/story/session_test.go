package story_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// review are the answers of an agent whose plan is carried out: the user chooses when the
// review ends, and reviewers look at the work.
func review(dir string) scriptedmodel.Rule {
	var options []map[string]any
	for i, option := range execution.TerminationOptions {
		options = append(options, map[string]any{"label": option, "recommended": i == 0})
	}
	return when("now its implementation is reviewed",
		scriptedmodel.Step{Tool: "ask_choice", Args: map[string]any{
			"question": "When does the review end?", "questionId": execution.TerminationQuestionID, "autoComplete": false, "options": options,
		}},
		transition("implementation-review-configured", map[string]any{"terminationCondition": untilClean}),
		refineWork(dir),
		says("The reviewers have answered."),
	)
}

func refinePlan(args map[string]any) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "refine", Args: args}
}

func refineWork(dir string) scriptedmodel.Step {
	return refinePlan(map[string]any{"role": "reviewer", "target": "implementation", "planPath": dir + "/PLAN_v2.md"})
}

// teller is a session that a user sits before.
type teller struct {
	t *testing.T
	s *piharness.Scene
	*piharness.Session
}

func open(t *testing.T, s *piharness.Scene, dir string) *teller {
	return &teller{t, s, s.Open(dir, "--session-dir", filepath.Join(s.AgentDir, "kept"))}
}

// turn types a message and waits until the agent has said the last of its steps.
func (p *teller) turn(text string, steps ...scriptedmodel.Step) {
	p.t.Helper()
	p.Prompt(text, steps...)
	p.said(steps[len(steps)-1].Text)
}

// said waits until the agent rests after it has said something.
func (p *teller) said(text string) {
	p.t.Helper()
	p.Await("message_end", func(e piharness.Value) bool {
		return e.At("message.role").Text() == "assistant" && strings.Contains(e.At("message.content").String(), text)
	})
	p.Settled()
}

// round is the round that a call of refine made.
func (p *teller) round(lanes string) string {
	p.t.Helper()
	end := p.ToolEnd("refine")
	if got := end.At("result.details.lanes").Each("status"); end.At("isError").Truth() || got != lanes {
		p.t.Fatalf("the round: %s", end)
	}
	return end.At("result.details.roundId").Text()
}

// went checks that a tool did what it was called for.
func (p *teller) went(tool string) piharness.Value {
	p.t.Helper()
	end := p.ToolEnd(tool)
	if end.At("isError").Truth() {
		p.t.Fatalf("%s failed: %s", tool, end)
	}
	return end
}

// firstHalf is the story up to a check that does not pass and an agent that gets nowhere
// with it: planned, reviewed, revised, criticized, approved, begun and paused.
func (p *teller) firstHalf(dir string) {
	t, s := p.t, p.s
	t.Helper()
	p.turn("Plan how long a batch takes.", startRun, says("The run has begun."))
	p.Prompt("Go on.", askOven, write(dir+"/PLAN_v1.md", planText),
		refinePlan(map[string]any{"role": "reviewer", "reviewers": 3, "planPath": dir + "/PLAN_v1.md"}), says("Three have answered."))
	question := p.Dialog("select")
	p.Reply(question, question.At("options.1").Text())
	first := p.round("complete complete complete")
	p.said("Three have answered.")
	p.Prompt("Revise it.", consolidated(first), write(dir+"/PLAN_v2.md", revisedText),
		refinePlan(map[string]any{"role": "criticizer", "planPath": dir + "/PLAN_v2.md"}), says("It is criticized."))
	second := p.round("complete")
	p.said("It is criticized.")

	p.Prompt("Let it be carried out.", consolidated(second), write("batch.txt", "too early"), scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}},
		bash("echo 45 minutes > batch.txt && cat batch.txt"), bash("grep 40 oven/oven.go"),
		says("`cat` prints 45 minutes; `grep` finds nothing. [DONE:VC-001] [I-001:implemented] [I-002:current]"), says("Let me think about the oven."))
	p.went("plans")
	if end := p.ToolEnd("write"); !end.At("isError").Truth() {
		t.Errorf("a file was written before the approval: %s", end)
	}
	approval := p.Dialog("confirm")
	for _, words := range []string{s.Digest(dir + "/PLAN_v2.md"), "VC-001", "VC-002"} {
		if !strings.Contains(approval.At("message").Text(), words) {
			t.Errorf("the question %s does not say %q", approval, words)
		}
	}
	p.Reply(approval, true)
	p.went("execute_plan")
	p.went("bash")
	if end := p.ToolEnd("bash"); !end.At("isError").Truth() {
		t.Errorf("the check of the oven passes too early: %s", end)
	}
	p.Notice("The execution is paused: no progress in 3 rounds")
	p.Settled()
	if n := asked(s, "Verified: 1 of 2"); n != 3 {
		t.Errorf("the agent was woken up %d times, want 3", n)
	}
}

// tokens are those of the agent's messages so far, from the one that calls a tool on.
func (p *teller) tokens(from string) store.TokenUsage {
	var sum store.TokenUsage
	counts := false
	for _, e := range p.Seen(func(e piharness.Value) bool {
		return e.At("type").Text() == "message_end" && e.At("message.role").Text() == "assistant"
	}) {
		counts = counts || strings.Contains(e.At("message.content").String(), from)
		if counts {
			sum.InToks += int(e.At("message.usage.input").Number())
			sum.OutToks += int(e.At("message.usage.output").Number())
		}
	}
	return sum
}

// secondHalf is the review with its fix, in the session whose agent has just been asked
// when it ends.
func (p *teller) secondHalf(dir string) {
	t := p.t
	t.Helper()
	question := p.Dialog("select")
	p.Reply(question, question.At("options.1").Text())
	third := p.round("complete")
	p.said("The reviewers have answered.")
	p.Prompt("Mend what they found.", replace("batch.txt", "45 minutes", "45 minutes a batch"), consolidated(third), transition("implementation-round-finished", nil),
		transition("completed", map[string]any{"evidence": "both checks pass"}), refineWork(dir), says("They have looked again."))
	p.went("edit")
	p.went("plans")
	p.went("plans")
	if end := p.ToolEnd("plans"); !end.At("isError").Truth() || !strings.Contains(end.String(), "high severity") {
		t.Errorf("the review ends with a finding of high severity: %s", end)
	}
	fourth := p.round("complete")
	p.said("They have looked again.")
	p.turn("Close it.", consolidated(fourth), transition("implementation-round-finished", nil),
		transition("completed", map[string]any{"evidence": "both checks pass, nothing is left of the findings"}), says("All is done."))
}

func confirmRoles(s *piharness.Scene) {
	s.Must(0, "plans", "init")
	for _, role := range []string{"reviewer", "criticizer"} {
		s.Must(0, "plans", "set-role", "--role", role, "--mode", "delegated-subagent", "--confirmed", "true", "--modelSelector", "inherit")
	}
}

func TestAPlanLivesThroughAKillAndIsDoneInAnotherTerminal(t *testing.T) {
	t.Parallel()
	dir := artifacts(t)
	s := piharness.NewScene(t, append(subagents(),
		when("Verified: 1 of 2", askOven, scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}},
			replace("oven/oven.go", "Minutes = 45", "Minutes = 40"), bash("grep 40 oven/oven.go"), says("`grep` prints the line. [DONE:VC-002]")),
		review(dir))...)
	s.Install()
	confirmRoles(s)
	p := open(t, s, s.Dir)
	p.firstHalf(dir)
	_, run, before := s.OnlyRun()
	if run.Status != store.StatusExecuting || before.Execution.PausedReason == "" || !cmp.Equal(before.Execution.DoneVCIDs, []string{"VC-001"}) {
		t.Fatalf("the run is %s, %+v", run.Status, before.Execution)
	}
	if diff := cmp.Diff(p.tokens("execute_plan"), before.Execution.Usage); diff != "" || before.Execution.Usage.OutToks == 0 {
		t.Errorf("tokens (-spent +on record): %s", diff)
	}
	p.Kill()
	s.KillDaemon()
	s.NoSurvivors()

	p2 := open(t, s, s.Dir)
	p2.Prompt("/resume-plans")
	p2.Notice("Resumed run " + run.RunID)
	if end := p2.went("ask_choice"); !strings.Contains(end.At("result.content.0.text").Text(), "the new one") {
		t.Errorf("the answer is lost: %s", end)
	}
	p2.went("execute_plan")
	p2.went("edit")
	p2.went("bash")
	p2.secondHalf(dir)
	if dialogs := p2.Dialogs(); len(dialogs) != 1 {
		t.Errorf("the user was asked again: %s", dialogs)
	}
	p2.Close()
	concluded(t, s, s.Dir)
	subagentsPaid(t, s)
	_, _, cp := s.OnlyRun()
	if diff := cmp.Diff(before.Execution.Approval, cp.Execution.Approval); diff != "" {
		t.Error(diff)
	}
	if cp.Execution.Usage.InToks <= before.Execution.Usage.InToks || cp.Execution.Usage.OutToks <= before.Execution.Usage.OutToks {
		t.Errorf("tokens %+v became %+v", before.Execution.Usage, cp.Execution.Usage)
	}
}
