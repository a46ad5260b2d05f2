package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	p.prompt("Plan it.", startRun, scriptedmodel.Step{Text: "asked"})
	if end := p.toolEnd("plans"); end.at("isError").truth() {
		t.Fatalf("the run does not start: %s", end)
	}
	p.notice("The compaction before planning was skipped")
	p.await("message_end", func(e value) bool { return strings.Contains(e.at("message.content").String(), `"asked"`) })
	p.settled()
	p.close()
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
	p.prompt("Plan it.", startRun, ask, ask, scriptedmodel.Step{Text: "asked"})
	choice := p.dialog("select")
	contains(t, choice.at("title").text(), "Which oven?")
	p.reply(choice, choice.at("options.0").text())
	end := p.toolEnd("ask_choice")
	if end.at("isError").truth() || end.at("result.details.answer").text() != "The old one" {
		t.Errorf("the answer: %s", end)
	}
	p.settled()
	run := s.ask("/v1/runs?workdir=" + s.dir).at("runs.0.runId").text()
	decisions, err := os.ReadFile(filepath.Join(s.dir, ".git", "pi_plans", "runs", run, "decisions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(decisions), "Which oven?", `"answer":"The old one"`, `"questionId":"oven"`)
	p.close()
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
	p.prompt("Record it.", startRun, scriptedmodel.Step{Text: "started"})
	p.await("message_end", func(e value) bool { return strings.Contains(e.at("message.content").String(), `"started"`) })
	p.settled()
	run := s.ask("/v1/runs?workdir=" + s.dir).at("runs.0.runId").text()
	p.prompt("Record it.", plans(map[string]any{"action": "record-decision", "runId": run, "decision": decision}), done)
	text := p.toolEnd("plans").at("result.content.0.text").text()
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
	p.settled()
	p.close()
}

func TestAPlanIsApprovedAndCarriedOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	p.prompt("Plan it.", startRun, scriptedmodel.Step{Text: "planned"})
	p.await("message_end", func(e value) bool { return strings.Contains(e.at("message.content").String(), `"planned"`) })
	p.settled()
	if p.writes(s) {
		t.Error("a file outside of the plan's directory was written while planning")
	}
	dir := s.ask("/v1/runs/active?workdir=" + s.dir).at("artifactDir").text()
	p.prompt("Write the plan.", scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": dir + "/PLAN_v1.md", "content": planText}},
		plans(map[string]any{"action": "record-checkpoint", "checkpoint": map[string]any{"transition": "plan-written", "planPath": dir + "/PLAN_v1.md"}}),
		scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}},
		scriptedmodel.Step{Text: "The bread is baked. [DONE:VC-001]", LogMessages: true}, scriptedmodel.Step{Text: "over"})
	approval := p.dialog("confirm")
	p.reply(approval, true)
	if end := p.toolEnd("execute_plan"); end.at("isError").truth() {
		t.Fatalf("the approved plan is not carried out: %s", end)
	}
	p.settled()
	run := parse([]byte(s.must("show", "--json")))
	if status, phase := run.at("status").text(), run.at("phase").text(); status != "done" || phase != "implementation-review" {
		t.Errorf("the run is %s, in phase %s", status, phase)
	}
	p.close()
}
