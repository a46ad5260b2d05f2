package extension_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// The rows of the user journey of plan mode once more, as a person at a terminal lives
// through them.
func TestPlanModeAtATerminal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.terminal()
	bread := filepath.Join(s.Dir, "bread.txt")
	const editor = "Send it unchanged to decide on it"

	// It begins without a turn.
	asked := s.Model.Stats().Requests
	p.switches("/plan on", true)
	p.shows("Plan mode is on")
	if n := s.Model.Stats().Requests - asked; n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	p.asks("Bake.", writeFile, says("It stays unbaked."))
	p.shows("Blocked `write bread.txt`", "It stays unbaked.")

	// A request is submitted in it. The plan is shown whole; only a yes to what was shown
	// ends it.
	p.asks("/plan continue the baking plan", submit, submit, submit, submit, says("The plan is approved."))
	p.shows(editor, "# Bake at night", "2. Bake.")
	p.keys("Escape")
	p.shows("Plan mode stays on")
	p.shows(editor)
	p.types("3. Cool down.")
	p.shows("3. Cool down.")
	p.keys("Enter")
	p.becomes("shows the plan that is submitted again", func(screen string) bool {
		_, shown, found := strings.Cut(screen, editor)
		return found && strings.Contains(shown, "2. Bake.") && !strings.Contains(shown, "Cool down")
	})
	p.keys("Enter")
	p.chooses("Approve this plan?", "Keep planning")
	p.shows(editor)
	p.planMode(true)
	p.keys("Enter")
	p.chooses("Approve this plan?", "Approve this plan and leave plan mode")
	p.shows("The plan is approved.")
	p.planMode(false)
	if _, err := os.Stat(bread); err == nil {
		t.Fatal("a file was written in plan mode")
	}
	p.asks("Bake.", writeFile, says("It is baked now."))
	p.shows("It is baked now.")
	if _, err := os.Stat(bread); err != nil {
		t.Errorf("nothing can be written after the approval: %v", err)
	}

	// While the agent is busy it holds at once, and the request steers the turn.
	waits := scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": "touch waiting; until [ -e go-on ]; do sleep 0.02; done"}}
	rye := scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": "rye.txt", "content": "rye"}}
	p.asks("Bake rye.", waits, rye, says("This is not asked for."))
	p.Eventually("the agent is busy", func() bool {
		_, err := os.Stat(filepath.Join(s.Dir, "waiting"))
		return err == nil
	})
	p.types("/plan look first " + scriptedmodel.Script(rye, says("I have looked.")))
	p.keys("Enter")
	p.planMode(true)
	s.Write("go-on", "")
	p.shows("Blocked `write rye.txt`", "I have looked.")
	if _, err := os.Stat(filepath.Join(s.Dir, "rye.txt")); err == nil {
		t.Error("a file was written after plan mode was on")
	}

	// It ends without a turn.
	asked = s.Model.Stats().Requests
	p.switches("/plan off", false)
	if n := s.Model.Stats().Requests - asked; n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// The row in which the message cannot be submitted: Pi has a terminal, and no model.
func TestAtATerminalARequestThatIsNotSubmittedBringsTheEarlierStateBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.Remove(filepath.Join(s.AgentDir, "models.json")); err != nil {
		t.Fatal(err)
	}
	p := s.terminalStarting()
	const request = "/plan continue the migration plan"
	// While it starts, Pi leaves what was entered in its editor.
	p.types(request)
	p.Eventually("the request is entered", func() bool {
		p.keys("Enter")
		return strings.Contains(p.screen(), "The request was not submitted")
	})
	p.shows("Pi has no model to ask", "is off, as before")
	p.planMode(false)
	bread := filepath.Join(s.Dir, "bread.txt")
	p.types("!touch bread.txt")
	p.keys("Enter")
	p.Eventually("what the user asks for is done", func() bool {
		_, err := os.Stat(bread)
		return err == nil
	})

	p.switches("/plan", true)
	p.types(request)
	p.keys("Enter")
	p.shows("is on, as before")
	p.planMode(true)
	p.types("!rm bread.txt")
	p.keys("Enter")
	p.shows("Blocked")
	if _, err := os.Stat(bread); err != nil {
		t.Errorf("plan mode is off although the screen says that it is on: %v", err)
	}
}

// switches enters a command that switches plan mode. What completes it takes the first
// Enter.
func (p *terminal) switches(command string, on bool) {
	p.t.Helper()
	p.hides(" Working ")
	p.types(command)
	p.Eventually("the command is entered", func() bool {
		p.keys("Enter")
		return inPlanMode(p.screen()) == on
	})
}

// planMode waits until the status line says whether plan mode is on.
func (p *terminal) planMode(on bool) {
	p.t.Helper()
	p.becomes("tells in its status line whether plan mode is on", func(screen string) bool { return inPlanMode(screen) == on })
}

// inPlanMode tells what the last line says.
func inPlanMode(screen string) bool {
	screen = strings.TrimSpace(screen)
	return strings.Contains(screen[strings.LastIndexByte(screen, '\n')+1:], "plan mode")
}
