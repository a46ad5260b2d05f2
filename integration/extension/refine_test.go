package extension_test

import (
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// refine is a step in which the model has the plan reviewed.
func refine(args map[string]any) scriptedmodel.Step {
	call := map[string]any{"role": "reviewer", "planPath": "PLAN_v1.md"}
	for name, value := range args {
		call[name] = value
	}
	return scriptedmodel.Step{Tool: "refine", Args: call}
}

func TestThreeReviewersWorkForASession(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers())
	s.confirm("reviewer")
	p := s.open()
	p.prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), scriptedmodel.Step{Text: "done", LogMessages: true})

	update := p.await("tool_execution_update", func(e value) bool {
		return strings.Contains(e.at("partialResult.content.0.text").text(), "running")
	})
	contains(t, update.at("partialResult.content.0.text").text(), "Reviewer (sim/plain) — ", "correctness: ", "ordering: ", "verification: ")

	end := p.toolEnd("refine")
	if end.at("isError").truth() {
		t.Fatalf("the round failed: %s", end)
	}
	text := end.at("result.content.0.text").text()
	if n := strings.Count(text, reviewText); n != 3 {
		t.Errorf("the result has %d answers, want 3:\n%s", n, text)
	}
	contains(t, text, "Next: ", end.at("result.details.roundId").text())
	if lanes := end.at("result.details.lanes").each("status"); lanes != "complete complete complete" {
		t.Errorf("lanes %s", lanes)
	}
	if input, cost := end.at("result.usage.input").number(), end.at("result.usage.cost.total").number(); input == 0 || cost == 0 {
		t.Errorf("usage %s", end.at("result.usage"))
	}
	p.settled()
	if got := p.ask(map[string]any{"type": "get_last_assistant_text"}).at("text").text(); got != "done" {
		t.Errorf("the session ends with %q", got)
	}
	contains(t, s.heard.String(), `"conversation"`, "No findings.")

	stats := p.ask(map[string]any{"type": "get_session_stats"})
	own := 0.0
	for _, e := range p.seen(func(e value) bool {
		return e.at("type").text() == "message_end" && e.at("message.role").text() == "assistant"
	}) {
		own += e.at("message.usage.cost.total").number()
	}
	if cost := stats.at("cost").number(); cost <= own {
		t.Errorf("the session costs %v, of which its own model %v: the reviewers are not counted", cost, own)
	}
	s.eventually("the result is acknowledged", func() bool { return len(s.ask("/v1/calls").at("calls").list()) == 0 })
	p.close()
}

func TestReviewersInheritModelAndThinkingOfTheSession(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers())
	s.confirm("reviewer")
	p := s.open("--no-session", "--model", "sim/think:high")
	p.prompt("Have the plan reviewed.", refine(nil), done)
	if end := p.toolEnd("refine"); end.at("isError").truth() {
		t.Fatalf("the round failed: %s", end)
	}
	p.settled()
	for _, r := range s.model.Requests() {
		if r.Model != "think" || r.ReasoningEffort != "high" {
			t.Errorf("a request is for model %s with effort %q: %.60s", r.Model, r.ReasoningEffort, r.User)
		}
	}
	p.close()
}

func TestAbortingASessionCancelsItsLanes(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers(scriptedmodel.Step{Text: "looking", Stall: 1}))
	s.confirm("reviewer")
	p := s.open()
	p.prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}))
	s.await(func(m scriptedmodel.Stats) bool { return m.Open == 3 })
	p.ask(map[string]any{"type": "abort"})

	end := p.toolEnd("refine")
	if !end.at("isError").truth() {
		t.Errorf("a cancelled round is no error: %s", end)
	}
	if lanes := end.at("result.details.lanes").each("status"); lanes != "cancelled cancelled cancelled" {
		t.Errorf("lanes %s of %s", lanes, end)
	}
	if !p.settled().at("aborted").truth() {
		t.Error("the session was not aborted")
	}
	s.await(func(m scriptedmodel.Stats) bool { return m.Open == 0 })
	p.close()
}

func TestAnUnansweredGateTellsTheModelWhatToAsk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	p.prompt("Have the plan reviewed.", refine(nil), scriptedmodel.Step{Text: "asking"})
	end := p.toolEnd("refine")
	if !end.at("isError").truth() {
		t.Errorf("the gate let a round pass: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), "reviewer model was never confirmed", "set-role")
	p.settled()
	p.close()
}

func TestReferencesAreAnalysedForASession(t *testing.T) {
	t.Parallel()
	const analysis = "## Overview\n\nA\n\n## Key Mechanisms And Design Tradeoffs\n\nB\n\n## Adoptable Ideas For The Target Repo\n\nC\n\n" +
		"## Pitfalls And Anti-Patterns\n\nD\n\n## Evidence Citations\n\na.txt:1\n\n## Coverage\n\nall\n\n## Evidence Gaps\n\nnone"
	s := newScene(t, scriptedmodel.Rule{Match: "Reference id:", Steps: []scriptedmodel.Step{{Text: analysis}}})
	s.confirm("reviewer")
	var refs []map[string]any
	for _, id := range []string{"ovens", "mills", "shops", "farms"} {
		s.write("refs/"+id+"/a.txt", id)
		refs = append(refs, map[string]any{"id": id, "localPath": "refs/" + id})
	}
	p := s.open()
	p.prompt("Look at these.", scriptedmodel.Step{Tool: "analyze_refs", Args: map[string]any{"refs": refs}}, scriptedmodel.Step{Text: "done"})
	end := p.toolEnd("analyze_refs")
	if end.at("isError").truth() || len(end.at("result.details.lanes").list()) != 4 {
		t.Fatalf("references: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), "— ovens", "— farms", "REF_ANALYSIS.md")
	contains(t, p.find(func(e value) bool { return e.at("type").text() == "tool_execution_update" }).String(), "Refs (sim/plain)", "4 queued")
	p.settled()
	p.close()
}

func TestThePlansToolAnswersWithTheResultObject(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.prompt("Begin.",
		scriptedmodel.Step{Tool: "plans", Args: map[string]any{"action": "init"}},
		scriptedmodel.Step{Tool: "plans", Args: map[string]any{"action": "set-status", "runId": "none", "status": "done"}},
		scriptedmodel.Step{Text: "done"})
	end := p.toolEnd("plans")
	result := parse([]byte(end.at("result.content.0.text").text()))
	if got, want := result.at("stateRoot").text(), filepath.Join(s.dir, ".git", "pi_plans"); got != want {
		t.Errorf("state root %q, want %q; %s", got, want, end)
	}
	end = p.toolEnd("plans")
	if !end.at("isError").truth() {
		t.Errorf("a run that does not exist got a status: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), "pi-plans set-status failed: ")
	p.settled()
	p.close()
}

func TestTheExtensionIsInertInASubagent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.env = append(s.env, "PI_PLANS_REFINER=1")
	p := s.open()
	for _, command := range p.ask(map[string]any{"type": "get_commands"}).at("commands").list() {
		if name := command.at("name").text(); name == "plan" || strings.Contains(name, "plan-normal") {
			t.Errorf("a subagent has the command %s", command)
		}
	}
	p.prompt("Hello.", scriptedmodel.Step{Text: "hello"})
	p.settled()
	for _, tool := range s.model.Requests()[0].Tools {
		if tool == "refine" || tool == "plans" {
			t.Errorf("a subagent has the tool %s", tool)
		}
	}
	if _, err := s.tryAsk("/v1/health"); err == nil {
		t.Error("a subagent has started a daemon")
	}
	p.close()
}

func TestTheWorkspaceOfASessionIsNotTheDaemons(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers())
	s.confirm("reviewer")
	other := *s
	other.dir = piharness.Repo(t)
	other.write("PLAN_v1.md", planText)
	p := s.open()
	p.prompt("Review the other.", refine(map[string]any{"workdir": other.dir}), scriptedmodel.Step{Text: "done"})
	end := p.toolEnd("refine")
	contains(t, end.at("result.content.0.text").text(), "never confirmed") // it has settings of its own
	p.settled()
	p.close()
}
