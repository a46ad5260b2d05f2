package extension_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// The rows of the user journey of plan mode, each as a session lives through it.

const completePlan = "# Bake at night\n\n## Steps\n\n1. Heat the oven at four.\n2. Bake.\n"

var (
	writeFile = scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": "bread.txt", "content": "bread"}}
	done      = scriptedmodel.Step{Text: "done"}
	submit    = scriptedmodel.Step{Tool: "exit_plan_mode", Args: map[string]any{"plan": completePlan}}
)

// command types a slash command.
func (p *session) command(text string) {
	p.t.Helper()
	p.ask(map[string]any{"type": "prompt", "message": text})
}

// planMode waits until the status line says whether plan mode is on.
func (p *session) planMode(on bool) {
	p.t.Helper()
	p.await("extension_ui_request", func(e value) bool {
		return e.at("method").text() == "setStatus" && e.at("statusKey").text() == "pilothouse-plan" && (e.at("statusText").text() != "") == on
	})
}

// writes lets the model write a file and tells whether it was let.
func (p *session) writes(s *scene) bool {
	p.t.Helper()
	p.prompt("Write it.", writeFile, done)
	refused := p.toolEnd("write").at("isError").truth()
	p.settled()
	_, err := os.Stat(filepath.Join(s.dir, "bread.txt"))
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
			p.command(words)
			p.planMode(true)
			p.notice("Plan mode is on")
			if n := s.model.Stats().Requests; n != 0 {
				t.Errorf("the model was asked %d times", n)
			}
			if p.writes(s) {
				t.Error("a file was written in plan mode")
			}
			p.close()
		})
	}
}

func TestPlanWithARequestSubmitsItUnderPlanMode(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	request := "continue the migration plan " + scriptedmodel.Script(writeFile, scriptedmodel.Step{Text: "done", LogSystem: true})
	p.command("/plan " + request)
	p.planMode(true)
	if !p.toolEnd("write").at("isError").truth() {
		t.Error("the request was carried out without plan mode")
	}
	p.settled()
	first := s.model.Requests()[0]
	if first.User != request {
		t.Errorf("the model got %q, want the request as it was typed", first.User)
	}
	contains(t, first.System, "exit_plan_mode")
	p.close()
}

func TestPlanWhileTheAgentIsBusySteersIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open("--no-session", "-e", probe(t))
	p.prompt("Write it.", scriptedmodel.Step{Tools: []scriptedmodel.ToolCall{{Name: "hold"}, {Name: "write", Args: writeFile.Args}}}, done)
	p.await("tool_execution_start", func(e value) bool { return e.at("toolName").text() == "hold" })
	request := "look first " + scriptedmodel.Script(scriptedmodel.Step{Text: "looked"})
	p.command("/plan " + request)
	p.planMode(true)
	s.write("go-on", "")
	if !p.toolEnd("write").at("isError").truth() {
		t.Error("the agent wrote after plan mode was on")
	}
	p.settled()
	requests := s.model.Requests()
	if len(requests) != 2 || requests[1].User != request {
		t.Errorf("%d requests, the last for %q: the request did not steer the turn at work", len(requests), requests[len(requests)-1].User)
	}
	p.close()
}

func TestPlanOffLeavesPlanModeWithoutATurn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	p.command("/plan off")
	p.planMode(false)
	if n := s.model.Stats().Requests; n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	if !p.writes(s) {
		t.Error("nothing can be written after plan mode")
	}
	p.close()
}

func TestARequestThatIsNotSubmittedBringsTheEarlierStateBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.Remove(filepath.Join(s.agentDir, "models.json")); err != nil { // Pi has no model to submit to
		t.Fatal(err)
	}
	p := s.open()
	p.command("/plan continue the migration plan")
	p.planMode(false)
	contains(t, p.notice("The request was not submitted").at("message").text(), "Pi has no model to ask", "Plan mode is off, as before")
	p.ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.dir, "bread.txt")); err != nil {
		t.Errorf("plan mode is on although the request was not submitted: %v", err)
	}
	p.command("/plan")
	p.planMode(true)
	p.command("/plan continue the migration plan")
	p.planMode(true)
	contains(t, p.notice("The request was not submitted").at("message").text(), "Plan mode is on, as before")
	p.close()
}

func TestAPlanIsApprovedAsItWasShown(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	p.prompt("Plan it.", submit, done)
	shown := p.dialog("editor")
	if got := strings.TrimSpace(shown.at("prefill").text()); got != strings.TrimSpace(completePlan) {
		t.Errorf("the plan is shown as %q", got)
	}
	p.reply(shown, shown.at("prefill").text())
	choice := p.dialog("select")
	options := choice.at("options").list()
	if len(options) != 3 {
		t.Fatalf("choices %s", choice)
	}
	p.reply(choice, options[0].text())
	p.planMode(false)
	end := p.toolEnd("exit_plan_mode")
	if end.at("isError").truth() {
		t.Errorf("the approved plan is an error: %s", end)
	}
	p.settled()
	if !p.writes(s) {
		t.Error("nothing can be written after the approval")
	}
	p.close()
}

func TestAPlanThatIsNotApprovedKeepsPlanModeOn(t *testing.T) {
	t.Parallel()
	for name, review := range map[string]func(*session){
		"the review is cancelled": func(p *session) { p.reply(p.dialog("editor"), nil) },
		"the plan is edited": func(p *session) {
			shown := p.dialog("editor")
			p.reply(shown, shown.at("prefill").text()+"\n3. Cool down.\n")
		},
		"the decision is dismissed": func(p *session) {
			shown := p.dialog("editor")
			p.reply(shown, shown.at("prefill").text())
			p.reply(p.dialog("select"), nil)
		},
		"feedback is given": func(p *session) {
			shown := p.dialog("editor")
			p.reply(shown, shown.at("prefill").text())
			choice := p.dialog("select")
			p.reply(choice, choice.at("options.2").text())
			p.reply(p.dialog("input"), "Cool down, too.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			p := s.open()
			p.command("/plan")
			p.planMode(true)
			p.prompt("Plan it.", submit, done)
			review(p)
			end := p.toolEnd("exit_plan_mode")
			if !end.at("isError").truth() {
				t.Errorf("the plan is approved: %s", end)
			}
			contains(t, end.at("result.content.0.text").text(), "Plan mode stays on")
			p.settled()
			if p.writes(s) {
				t.Error("a file was written although the plan was not approved")
			}
			p.close()
		})
	}
}

func TestAReviewThatIsAbortedKeepsPlanModeOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	p.prompt("Plan it.", submit, done)
	p.dialog("editor")
	p.ask(map[string]any{"type": "abort"})
	if end := p.toolEnd("exit_plan_mode"); !end.at("isError").truth() {
		t.Errorf("an aborted review approves: %s", end)
	}
	p.settled()
	if p.writes(s) {
		t.Error("a file was written although the review was aborted")
	}
	p.close()
}

func TestThePlanToolFailsOutsideOfPlanMode(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.prompt("Plan it.", submit, done)
	end := p.toolEnd("exit_plan_mode")
	if !end.at("isError").truth() {
		t.Errorf("a plan was accepted outside of plan mode: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), "not on")
	p.settled()
	p.close()
}

func TestPlanModeJudgesEachCommandAndEachTool(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open("--no-session", "-e", probe(t))
	p.command("/plan")
	p.planMode(true)
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
		p.prompt("Do it.", one.step, done)
		if end := p.toolEnd(one.step.Tool); end.at("isError").truth() != one.refused {
			t.Errorf("%s %v: %s", one.step.Tool, one.step.Args, end)
		}
		p.settled()
	}
	// A tool that calls another does not get around the gate.
	p.command("/plan off")
	p.planMode(false)
	p.command("/plan")
	p.planMode(true)
	p.prompt("Do it.", scriptedmodel.Step{Tool: "delegate_write", Args: map[string]any{}}, done)
	p.settled()
	if _, err := os.Stat(filepath.Join(s.dir, "bread.txt")); err == nil {
		t.Error("a file was written in plan mode")
	}
	p.close()
}

func TestACommandOfTheUserIsHeldToPlanModeToo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	result := p.ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.dir, "bread.txt")); err == nil {
		t.Errorf("the command ran: %s", result)
	}
	p.close()
}
