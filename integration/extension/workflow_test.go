package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

func plans(args map[string]any) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "plans", Args: args}
}

var startRun = plans(map[string]any{"action": "start-run", "topic": "More bread", "skill": "plan-small", "requestText": "Bake more bread."})

func TestTheTurnGoesOnAfterTheStartOfARun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	p.Prompt("Plan it.", startRun, scriptedmodel.Step{Text: "asked"})
	if end := p.ToolEnd("plans"); end.At("isError").Truth() {
		t.Fatalf("the run does not start: %s", end)
	}
	p.Notice("The compaction before planning was skipped")
	p.Await("message_end", func(e piharness.Value) bool { return strings.Contains(e.At("message.content").String(), `"asked"`) })
	p.Settled()
	p.Close()
}

func TestAQuestionIsAnsweredAndRecorded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	ask := scriptedmodel.Step{Tool: "ask_choice", Args: map[string]any{
		"question": "Which oven?", "questionId": "oven",
		"options": []map[string]any{{"label": "The old one"}, {"label": "A new one", "recommended": true}},
	}}
	p.Prompt("Plan it.", startRun, ask, ask, scriptedmodel.Step{Text: "asked"})
	choice := p.Dialog("select")
	contains(t, choice.At("title").Text(), "Which oven?")
	p.Reply(choice, choice.At("options.0").Text())
	end := p.ToolEnd("ask_choice")
	if end.At("isError").Truth() || end.At("result.details.answer").Text() != "The old one" {
		t.Errorf("the answer: %s", end)
	}
	p.Settled()
	run := s.Ask("/v1/runs?workdir=" + s.Dir).At("runs.0.runId").Text()
	decisions, err := os.ReadFile(filepath.Join(s.Dir, ".git", "pi_plans", "runs", run, "decisions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(decisions), "Which oven?", `"answer":"The old one"`, `"questionId":"oven"`)
	p.Close()
}

func TestALongResultIsCutAndKeptWholeInAFile(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	var options []string
	for i := range 3000 { // lines of the result, of which Pi shows 2000
		options = append(options, fmt.Sprintf("oven %d", i))
	}
	decision := map[string]any{"question": "Which?", "options": options, "answer": "oven 7", "answerSource": "user"}
	p.Prompt("Record it.", startRun, scriptedmodel.Step{Text: "started"})
	p.Await("message_end", func(e piharness.Value) bool { return strings.Contains(e.At("message.content").String(), `"started"`) })
	p.Settled()
	run := s.Ask("/v1/runs?workdir=" + s.Dir).At("runs.0.runId").Text()
	p.Prompt("Record it.", plans(map[string]any{"action": "record-decision", "runId": run, "decision": decision}), done)
	text := p.ToolEnd("plans").At("result.content.0.text").Text()
	head, note, cut := strings.Cut(text, "\n\n[Truncated: ")
	_, path, _ := strings.Cut(note, "All of it is in ")
	if !cut || strings.Count(head, "\n") >= 2000 {
		t.Fatalf("the result has %d lines and ends with %q", strings.Count(text, "\n"), text[max(0, len(text)-200):])
	}
	path = strings.TrimSuffix(path, ".]")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(whole), head) || !strings.Contains(string(whole), `"oven 2999"`) {
		t.Error("the file has not all of the result")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is for others, too: %v, %v", info, err)
	}
	p.Settled()
	p.Close()
}

func TestAPlanIsApprovedAndCarriedOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	p.Prompt("Plan it.", startRun, scriptedmodel.Step{Text: "planned"})
	p.Await("message_end", func(e piharness.Value) bool { return strings.Contains(e.At("message.content").String(), `"planned"`) })
	p.Settled()
	if p.writes(s) {
		t.Error("a file outside of the plan's directory was written while planning")
	}
	dir := s.Ask("/v1/runs/active?workdir=" + s.Dir).At("artifactDir").Text()
	p.Prompt("Write the plan.", scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": dir + "/PLAN_v1.md", "content": planText}},
		plans(map[string]any{"action": "record-checkpoint", "checkpoint": map[string]any{"transition": "plan-written", "planPath": dir + "/PLAN_v1.md"}}),
		scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}},
		scriptedmodel.Step{Text: "The bread is baked. [DONE:VC-001]", LogMessages: true}, scriptedmodel.Step{Text: "over"})
	approval := p.Dialog("confirm")
	p.Reply(approval, true)
	if end := p.ToolEnd("execute_plan"); end.At("isError").Truth() {
		t.Fatalf("the approved plan is not carried out: %s", end)
	}
	p.Settled()
	run := piharness.Parse([]byte(s.must("show", "--json")))
	if status, phase := run.At("status").Text(), run.At("phase").Text(); status != "done" || phase != "implementation-review" {
		t.Errorf("the run is %s, in phase %s", status, phase)
	}
	p.Close()
}
