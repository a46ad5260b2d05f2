package extension_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// The rows of the user journey of plan mode, each as a session lives through it.

const completePlan = "# Bake at night\n\n## Steps\n\n1. Heat the oven at four.\n2. Bake.\n"

var (
	writeFile = scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": "bread.txt", "content": "bread"}}
	done      = scriptedmodel.Step{Text: "done"}
	submit    = scriptedmodel.Step{Tool: "exit_plan_mode", Args: map[string]any{"plan": completePlan}}
)

// planMode waits until the status line says whether plan mode is on.
func (p *session) planMode(on bool) {
	p.t.Helper()
	p.Await("extension_ui_request", func(e piharness.Value) bool {
		return e.At("method").Text() == "setStatus" && e.At("statusKey").Text() == "pilothouse-plan" && (e.At("statusText").Text() != "") == on
	})
}

// writes lets the model write a file and tells whether it was let.
func (p *session) writes(s *scene) bool {
	p.t.Helper()
	p.Prompt("Write it.", writeFile, done)
	refused := p.ToolEnd("write").At("isError").Truth()
	p.Settled()
	_, err := os.Stat(filepath.Join(s.Dir, "bread.txt"))
	if refused != (err != nil) {
		p.t.Errorf("the call was refused: %t; the file: %v", refused, err)
	}
	return !refused
}

func TestPlanEntersPlanModeWithoutATurn(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"/plan", "/plan on"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			p := s.open()
			p.Prompt(words)
			p.planMode(true)
			p.Notice("Plan mode is on")
			if n := s.Model.Stats().Requests; n != 0 {
				t.Errorf("the model was asked %d times", n)
			}
			if p.writes(s) {
				t.Error("a file was written in plan mode")
			}
			p.Close()
		})
	}
}

func TestPlanWithARequestSubmitsItUnderPlanMode(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	request := "continue the migration plan " + scriptedmodel.Script(writeFile, scriptedmodel.Step{Text: "done", LogSystem: true})
	p.Prompt("/plan " + request)
	p.planMode(true)
	if !p.ToolEnd("write").At("isError").Truth() {
		t.Error("the request was carried out without plan mode")
	}
	p.Settled()
	first := s.Model.Requests()[0]
	if first.User != request {
		t.Errorf("the model got %q, want the request as it was typed", first.User)
	}
	contains(t, first.System, "exit_plan_mode")
	p.Close()
}

func TestPlanWhileTheAgentIsBusySteersIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open("--no-session", "-e", probe(t))
	p.Prompt("Write it.", scriptedmodel.Step{Tools: []scriptedmodel.ToolCall{{Name: "hold"}, {Name: "write", Args: writeFile.Args}}}, done)
	p.Await("tool_execution_start", func(e piharness.Value) bool { return e.At("toolName").Text() == "hold" })
	request := "look first " + scriptedmodel.Script(scriptedmodel.Step{Text: "looked"})
	p.Prompt("/plan " + request)
	p.planMode(true)
	s.Write("go-on", "")
	if !p.ToolEnd("write").At("isError").Truth() {
		t.Error("the agent wrote after plan mode was on")
	}
	p.Settled()
	requests := s.Model.Requests()
	if len(requests) != 2 || requests[1].User != request {
		t.Errorf("%d requests, the last for %q: the request did not steer the turn at work", len(requests), requests[len(requests)-1].User)
	}
	p.Close()
}

func TestPlanOffLeavesPlanModeWithoutATurn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning()
	p.Prompt("/plan off")
	p.planMode(false)
	if n := s.Model.Stats().Requests; n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	if !p.writes(s) {
		t.Error("nothing can be written after plan mode")
	}
	p.Close()
}

func TestARequestThatIsNotSubmittedBringsTheEarlierStateBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.Remove(filepath.Join(s.AgentDir, "models.json")); err != nil { // Pi has no model to submit to
		t.Fatal(err)
	}
	p := s.open()
	p.Prompt("/plan continue the migration plan")
	p.planMode(false)
	contains(t, p.Notice("The request was not submitted").At("message").Text(), "Pi has no model to ask", "Plan mode is off, as before")
	p.Ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.Dir, "bread.txt")); err != nil {
		t.Errorf("plan mode is on although the request was not submitted: %v", err)
	}
	p.Prompt("/plan")
	p.planMode(true)
	p.Prompt("/plan continue the migration plan")
	p.planMode(true)
	contains(t, p.Notice("The request was not submitted").At("message").Text(), "Plan mode is on, as before")
	p.Close()
}

func TestAPlanIsApprovedAsItWasShown(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning()
	p.Prompt("Plan it.", submit, done)
	shown := p.Dialog("editor")
	if got := strings.TrimSpace(shown.At("prefill").Text()); got != strings.TrimSpace(completePlan) {
		t.Errorf("the plan is shown as %q", got)
	}
	p.Reply(shown, shown.At("prefill").Text())
	choice := p.Dialog("select")
	options := choice.At("options").List()
	if len(options) != 3 {
		t.Fatalf("choices %s", choice)
	}
	p.Reply(choice, options[0].Text())
	p.planMode(false)
	end := p.ToolEnd("exit_plan_mode")
	if end.At("isError").Truth() {
		t.Errorf("the approved plan is an error: %s", end)
	}
	p.Settled()
	if !p.writes(s) {
		t.Error("nothing can be written after the approval")
	}
	p.Close()
}

func TestAPlanThatIsNotApprovedKeepsPlanModeOn(t *testing.T) {
	t.Parallel()
	for name, review := range map[string]func(*session){
		"the review is cancelled": func(p *session) { p.Reply(p.Dialog("editor"), nil) },
		"the plan is edited": func(p *session) {
			shown := p.Dialog("editor")
			p.Reply(shown, shown.At("prefill").Text()+"\n3. Cool down.\n")
		},
		"the decision is dismissed": func(p *session) {
			shown := p.Dialog("editor")
			p.Reply(shown, shown.At("prefill").Text())
			p.Reply(p.Dialog("select"), nil)
		},
		"feedback is given": func(p *session) {
			shown := p.Dialog("editor")
			p.Reply(shown, shown.At("prefill").Text())
			choice := p.Dialog("select")
			p.Reply(choice, choice.At("options.2").Text())
			p.Reply(p.Dialog("input"), "Cool down, too.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			p := s.planning()
			p.Prompt("Plan it.", submit, done)
			review(p)
			end := p.ToolEnd("exit_plan_mode")
			if !end.At("isError").Truth() {
				t.Errorf("the plan is approved: %s", end)
			}
			contains(t, end.At("result.content.0.text").Text(), "Plan mode stays on")
			p.Settled()
			if p.writes(s) {
				t.Error("a file was written although the plan was not approved")
			}
			p.Close()
		})
	}
}

func TestAReviewThatIsAbortedKeepsPlanModeOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning()
	p.Prompt("Plan it.", submit, done)
	p.Dialog("editor")
	p.Ask(map[string]any{"type": "abort"})
	if end := p.ToolEnd("exit_plan_mode"); !end.At("isError").Truth() {
		t.Errorf("an aborted review approves: %s", end)
	}
	p.Settled()
	if p.writes(s) {
		t.Error("a file was written although the review was aborted")
	}
	p.Close()
}

func TestThePlanToolFailsOutsideOfPlanMode(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.Prompt("Plan it.", submit, done)
	end := p.ToolEnd("exit_plan_mode")
	if !end.At("isError").Truth() {
		t.Errorf("a plan was accepted outside of plan mode: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), "not on")
	p.Settled()
	p.Close()
}

func TestPlanModeJudgesEachCommandAndEachTool(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning("--no-session", "-e", probe(t))
	for _, one := range []struct {
		step    scriptedmodel.Step
		refused bool
	}{
		{scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": "cd order && git status --short && git log --oneline"}}, false},
		{scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": "git status && touch bread.txt"}}, true},
		{scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "README.md"}}, false},
		{scriptedmodel.Step{Tool: "bake", Args: map[string]any{}}, true},   // declares nothing
		{scriptedmodel.Step{Tool: "sniff", Args: map[string]any{}}, false}, // declares that it only reads
	} {
		p.Prompt("Do it.", one.step, done)
		if end := p.ToolEnd(one.step.Tool); end.At("isError").Truth() != one.refused {
			t.Errorf("%s %v: %s", one.step.Tool, one.step.Args, end)
		}
		p.Settled()
	}
	// A tool that calls another does not get around the gate.
	p.Prompt("/plan off")
	p.planMode(false)
	p.Prompt("/plan")
	p.planMode(true)
	p.Prompt("Do it.", scriptedmodel.Step{Tool: "delegate_write", Args: map[string]any{}}, done)
	p.Settled()
	if _, err := os.Stat(filepath.Join(s.Dir, "bread.txt")); err == nil {
		t.Error("a file was written in plan mode")
	}
	p.Close()
}

func TestACommandOfTheUserIsHeldToPlanModeToo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning()
	result := p.Ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.Dir, "bread.txt")); err == nil {
		t.Errorf("the command ran: %s", result)
	}
	p.Close()
}
