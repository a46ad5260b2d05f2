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
	p.Prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), scriptedmodel.Step{Text: "done", LogMessages: true})

	update := p.Await("tool_execution_update", func(e piharness.Value) bool {
		return strings.Contains(e.At("partialResult.content.0.text").Text(), "running")
	})
	contains(t, update.At("partialResult.content.0.text").Text(), "Reviewer (sim/plain) — ", "correctness: ", "ordering: ", "verification: ")

	end := p.ToolEnd("refine")
	if end.At("isError").Truth() {
		t.Fatalf("the round failed: %s", end)
	}
	text := end.At("result.content.0.text").Text()
	if n := strings.Count(text, reviewText); n != 3 {
		t.Errorf("the result has %d answers, want 3:\n%s", n, text)
	}
	contains(t, text, "Next: ", end.At("result.details.roundId").Text())
	if lanes := end.At("result.details.lanes").Each("status"); lanes != "complete complete complete" {
		t.Errorf("lanes %s", lanes)
	}
	if input, cost := end.At("result.usage.input").Number(), end.At("result.usage.cost.total").Number(); input == 0 || cost == 0 {
		t.Errorf("usage %s", end.At("result.usage"))
	}
	p.Settled()
	if got := p.Ask(map[string]any{"type": "get_last_assistant_text"}).At("text").Text(); got != "done" {
		t.Errorf("the session ends with %q", got)
	}
	contains(t, s.Heard(), `"conversation"`, "No findings.")

	stats := p.Ask(map[string]any{"type": "get_session_stats"})
	own := 0.0
	for _, e := range p.Seen(func(e piharness.Value) bool {
		return e.At("type").Text() == "message_end" && e.At("message.role").Text() == "assistant"
	}) {
		own += e.At("message.usage.cost.total").Number()
	}
	if cost := stats.At("cost").Number(); cost <= own {
		t.Errorf("the session costs %v, of which its own model %v: the reviewers are not counted", cost, own)
	}
	s.Eventually("the result is acknowledged", func() bool { return len(s.Ask("/v1/calls").At("calls").List()) == 0 })
	p.Close()
}

func TestReviewersInheritModelAndThinkingOfTheSession(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers())
	s.confirm("reviewer")
	p := s.open("--no-session", "--model", "sim/think:high")
	p.Prompt("Have the plan reviewed.", refine(nil), done)
	if end := p.ToolEnd("refine"); end.At("isError").Truth() {
		t.Fatalf("the round failed: %s", end)
	}
	p.Settled()
	for _, r := range s.Model.Requests() {
		if r.Model != "think" || r.ReasoningEffort != "high" {
			t.Errorf("a request is for model %s with effort %q: %.60s", r.Model, r.ReasoningEffort, r.User)
		}
	}
	p.Close()
}

func TestAbortingASessionCancelsItsLanes(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers(scriptedmodel.Step{Text: "looking", Stall: 1}))
	s.confirm("reviewer")
	p := s.open()
	p.Prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}))
	s.Await(func(m scriptedmodel.Stats) bool { return m.Open == 3 })
	p.Ask(map[string]any{"type": "abort"})

	end := p.ToolEnd("refine")
	if !end.At("isError").Truth() {
		t.Errorf("a cancelled round is no error: %s", end)
	}
	if lanes := end.At("result.details.lanes").Each("status"); lanes != "cancelled cancelled cancelled" {
		t.Errorf("lanes %s of %s", lanes, end)
	}
	if !p.Settled().At("aborted").Truth() {
		t.Error("the session was not aborted")
	}
	s.Await(func(m scriptedmodel.Stats) bool { return m.Open == 0 })
	p.Close()
}

func TestAnUnansweredGateTellsTheModelWhatToAsk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	p.Prompt("Have the plan reviewed.", refine(nil), scriptedmodel.Step{Text: "asking"})
	end := p.ToolEnd("refine")
	if !end.At("isError").Truth() {
		t.Errorf("the gate let a round pass: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), "reviewer model was never confirmed", "set-role")
	p.Settled()
	p.Close()
}

func TestReferencesAreAnalysedForASession(t *testing.T) {
	t.Parallel()
	const analysis = "## Overview\n\nA\n\n## Key Mechanisms And Design Tradeoffs\n\nB\n\n## Adoptable Ideas For The Target Repo\n\nC\n\n" +
		"## Pitfalls And Anti-Patterns\n\nD\n\n## Evidence Citations\n\na.txt:1\n\n## Coverage\n\nall\n\n## Evidence Gaps\n\nnone"
	s := newScene(t, scriptedmodel.Rule{Match: "Reference id:", Steps: []scriptedmodel.Step{{Text: analysis}}})
	s.confirm("reviewer")
	var refs []map[string]any
	for _, id := range []string{"ovens", "mills", "shops", "farms"} {
		s.Write("refs/"+id+"/a.txt", id)
		refs = append(refs, map[string]any{"id": id, "localPath": "refs/" + id})
	}
	p := s.open()
	p.Prompt("Look at these.", scriptedmodel.Step{Tool: "analyze_refs", Args: map[string]any{"refs": refs}}, scriptedmodel.Step{Text: "done"})
	end := p.ToolEnd("analyze_refs")
	if end.At("isError").Truth() || len(end.At("result.details.lanes").List()) != 4 {
		t.Fatalf("references: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), "— ovens", "— farms", "REF_ANALYSIS.md")
	contains(t, p.Find(func(e piharness.Value) bool { return e.At("type").Text() == "tool_execution_update" }).String(), "Refs (sim/plain)", "4 queued")
	p.Settled()
	p.Close()
}

func TestThePlansToolAnswersWithTheResultObject(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.Prompt("Begin.",
		scriptedmodel.Step{Tool: "plans", Args: map[string]any{"action": "init"}},
		scriptedmodel.Step{Tool: "plans", Args: map[string]any{"action": "set-status", "runId": "none", "status": "done"}},
		scriptedmodel.Step{Text: "done"})
	end := p.ToolEnd("plans")
	result := piharness.Parse([]byte(end.At("result.content.0.text").Text()))
	if got, want := result.At("stateRoot").Text(), filepath.Join(s.Dir, ".git", "pi_plans"); got != want {
		t.Errorf("state root %q, want %q; %s", got, want, end)
	}
	end = p.ToolEnd("plans")
	if !end.At("isError").Truth() {
		t.Errorf("a run that does not exist got a status: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), "pi-plans set-status failed: ")
	p.Settled()
	p.Close()
}

func TestTheExtensionIsInertInASubagent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Env = append(s.Env, "PI_PLANS_REFINER=1")
	p := s.open()
	for _, command := range p.Ask(map[string]any{"type": "get_commands"}).At("commands").List() {
		if name := command.At("name").Text(); name == "plan" || strings.Contains(name, "plan-normal") {
			t.Errorf("a subagent has the command %s", command)
		}
	}
	p.Prompt("Hello.", scriptedmodel.Step{Text: "hello"})
	p.Settled()
	for _, tool := range s.Model.Requests()[0].Tools {
		if tool == "refine" || tool == "plans" {
			t.Errorf("a subagent has the tool %s", tool)
		}
	}
	if _, err := s.TryAsk("/v1/health"); err == nil {
		t.Error("a subagent has started a daemon")
	}
	p.Close()
}

func TestTheWorkspaceOfASessionIsNotTheDaemons(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers())
	s.confirm("reviewer")
	other := s.In(piharness.Repo(t))
	other.Write("PLAN_v1.md", planText)
	p := s.open()
	p.Prompt("Review the other.", refine(map[string]any{"workdir": other.Dir}), scriptedmodel.Step{Text: "done"})
	end := p.ToolEnd("refine")
	contains(t, end.At("result.content.0.text").Text(), "never confirmed") // it has settings of its own
	p.Settled()
	p.Close()
}
