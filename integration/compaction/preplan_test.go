package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// asked counts the requests of the model whose last message of the user is this.
func (w *workspace) asked(text string) (n int) {
	for _, r := range w.model.Requests() {
		if strings.TrimSpace(r.User) == text {
			n++
		}
	}
	return n
}

// restAfter recognises the agent at rest after a message with this text.
func restAfter(role, text string) func(object) bool {
	said := false
	return func(e object) bool {
		if message, _ := e["message"].(object); e["type"] == "message_end" && message["role"] == role {
			said = said || strings.Contains(fmt.Sprint(message["content"]), text)
		}
		return said && e["type"] == "agent_settled"
	}
}

func TestPlanningBeginsWithAnEmptyDeskAndGoesOn(t *testing.T) {
	t.Parallel()
	start := scriptedmodel.Step{
		Tool: "plans", Args: object{"action": "start-run", "topic": "Heat", "skill": "plan-normal", "requestText": "heat"},
	}
	// The request that starts the turn stays, and its script with it; later it is a goal in
	// the summary, as it is short enough to be one as a whole.
	request := "Plan it " + scriptedmodel.Script(start, scriptedmodel.Step{Text: "A question?", LogMessages: true})
	w := newWorkspace(t, small, nil, answers()...)
	w.install()
	pi := w.live("--model", "sim/plain")
	pi.prompt("Find out what the oven lacks")
	pi.prompt("Is it warm?")
	if n := len(w.compactions()); n != 0 {
		t.Fatalf("%d compactions before there is a run", n)
	}

	pi.send(object{"type": "prompt", "message": request}, restAfter("assistant", "A question?")) // the turn that was ended came to rest too
	entries := w.compactions()
	if len(entries) != 1 {
		t.Fatalf("%d compactions after the start of a run", len(entries))
	}
	details, _ := entries[0]["details"].(object)
	if details["compactor"] != "pi-vcc" || details["phase"] != "planning" {
		t.Errorf("details %v", details)
	}
	if conversation := w.conversation(); !strings.Contains(conversation, "Continue planning run ") {
		t.Errorf("the model does not see the summary: %.2000s", conversation)
	}

	// By hand, with a text that is to follow.
	pi.prompt("Is it hot?")
	pi.send(object{"type": "compact", "customInstructions": "keep:1 Go on with the oven"}, restAfter("user", "Go on with the oven"))
	w.conversation()
	if n := len(w.compactions()); n != 2 {
		t.Errorf("%d compactions", n)
	}
	for text, want := range map[string]int{"Continue planning.": 1, "Go on with the oven": 1} {
		if n := w.asked(text); n != want {
			t.Errorf("the model was asked %q %d times", text, n)
		}
	}
}
