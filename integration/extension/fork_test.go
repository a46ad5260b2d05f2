package extension_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// What is kept of plan mode, the run and its execution when a session is left, copied, cut
// short or gone back in.

// keeping opens a session that is kept in a file.
func (s *scene) keeping(args ...string) *session {
	s.t.Helper()
	return s.open(append([]string{"--session-dir", filepath.Join(s.agentDir, "kept")}, args...)...)
}

func (p *session) file() string {
	p.t.Helper()
	return p.ask(map[string]any{"type": "get_state"}).at("sessionFile").text()
}

// before is the entry of the last message of the user that begins with words.
func (p *session) before(words string) string {
	p.t.Helper()
	messages := p.ask(map[string]any{"type": "get_fork_messages"}).at("messages").list()
	for i := len(messages) - 1; i >= 0; i-- {
		if strings.HasPrefix(messages[i].at("text").text(), words) {
			return messages[i].at("entryId").text()
		}
	}
	p.t.Fatalf("no message begins with %q: %v", words, messages)
	return ""
}

// told is what the agent is told of an execution before it answers the next message, "" for
// nothing.
func (p *session) told() string {
	p.t.Helper()
	p.prompt("Go on.", scriptedmodel.Step{Text: "waiting for the oven", Finish: "length"}) // which ends it without a wake
	context := ""
	p.await("message_end", func(e value) bool {
		if e.at("message.customType").text() == "pi-plans-exec-context" {
			context = e.at("message.content").text()
		}
		return strings.Contains(e.at("message.content").String(), `"waiting for the oven"`)
	})
	p.settled()
	return context
}

func TestASessionThatIsResumedGoesOnWithItsExecution(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.keeping()
	id := p.id()
	bread := p.executes("bread")
	tokens := s.runFile(bread, "checkpoint.json").at("execution.usage.inToks").number()
	p.close()
	s.ownedBy(bread, "")

	p = s.keeping("--continue")
	p.await("extension_ui_request", func(e value) bool {
		return e.at("statusKey").text() == "pi-plans" && strings.HasPrefix(e.at("statusText").text(), "⌛ plans 0/1")
	})
	if p.id() != id {
		t.Fatalf("the session is %s, was %s", p.id(), id)
	}
	s.ownedBy(bread, id)
	contains(t, p.told(), "Verified: 1 of 2")
	if used := s.runFile(bread, "checkpoint.json").at("execution.usage.inToks").number(); used <= tokens {
		t.Errorf("%v tokens after the turn, %v before", used, tokens)
	}
	p.prompt("Eat one.", scriptedmodel.Step{Text: "It is good. [DONE:VC-002]"}, scriptedmodel.Step{Text: "over"})
	p.await("message_end", func(e value) bool { return e.at("message.customType").text() == "pi-plans-complete" })
	p.settled()
	if cp := s.runFile(bread, "checkpoint.json"); cp.at("phase").text() != "implementation-review" {
		t.Errorf("the checkpoint is %s", cp)
	}
	p.close()
}

func TestOfASessionAndItsCopiesOneCarriesThePlanOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.keeping()
	first, file := p.id(), p.file()
	bread := p.executes("bread")

	// The copy of an open session in another terminal.
	q := s.keeping("--fork", file)
	contains(t, q.notice("works on run "+bread.id).at("message").text(), "Session "+first, "/resume-plans")
	if told := q.told(); told != "" {
		t.Error("the copy carries the plan out, too")
	}
	s.ownedBy(bread, first)
	q.close()
	s.ownedBy(bread, first)

	// A copy that begins before the approval plans; it goes on by the user's word alone.
	p.ask(map[string]any{"type": "fork", "entryId": p.before("Carry it out.")})
	second := p.id()
	if second == first {
		t.Fatal("the copy has the id of the first")
	}
	contains(t, p.notice("not at this point of the session").at("message").text(), bread.id, "/plans-execute")
	s.ownedBy(bread, "")
	if told := p.told(); told != "" {
		t.Error("what was approved later is carried out")
	}
	p.command("/plans-execute")
	p.settled()
	s.ownedBy(bread, second)
	contains(t, p.told(), "Verified: 1 of 2")

	// Back in the first, which goes on where the plan is now.
	p.ask(map[string]any{"type": "switch_session", "sessionPath": file})
	if p.id() != first {
		t.Fatalf("switched to %s", p.id())
	}
	s.ownedBy(bread, first)
	contains(t, p.told(), "Verified: 1 of 2")

	// A copy of all of it goes on at once.
	p.ask(map[string]any{"type": "clone"})
	s.ownedBy(bread, p.id())
	contains(t, p.told(), "Verified: 1 of 2")
	if cp := s.runFile(bread, "checkpoint.json"); len(cp.at("execution.doneVcIds").list()) != 1 || cp.at("execution.approval.worktree").text() != s.dir {
		t.Errorf("the checkpoint is %s", cp)
	}

	// A new session has nothing to do with it.
	p.ask(map[string]any{"type": "new_session"})
	s.ownedBy(bread, "")
	if told := p.told(); told != "" {
		t.Error("a new session carries the plan out")
	}
	s.ownedBy(bread, "")
	p.close()
}

func TestGoingBackInASessionGoesBackBehindItsExecution(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.keeping("-e", probe(t))
	bread := p.executes("bread")
	entries := p.ask(map[string]any{"type": "get_entries"}).at("entries").list()
	last := entries[len(entries)-1].at("id").text()
	p.command("/goto " + p.before("Carry it out."))
	p.notice("not at this point of the session")
	if told := p.told(); told != "" {
		t.Error("what was approved later is carried out")
	}
	if cp := s.runFile(bread, "checkpoint.json"); cp.at("phase").text() != "executing" || cp.at("execution.approval").any == nil {
		t.Errorf("going back has changed the run: %s", cp)
	}
	p.command("/goto " + last)
	contains(t, p.told(), "Verified: 1 of 2")
	s.ownedBy(bread, p.id())
	p.close()
}

func TestPlanModeGoesWithACopyAndStaysInItsSession(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.keeping()
	p.prompt("Hello.", done)
	p.settled()
	p.command("/plan")
	p.planMode(true)
	p.prompt("Look.", done)
	p.settled()
	first, file := p.id(), p.file()

	p.ask(map[string]any{"type": "fork", "entryId": p.before("Look.")})
	p.planMode(true)
	p.notice("Plan mode is still on")
	if p.writes(s) {
		t.Error("a copy of a session in plan mode writes")
	}
	p.command("/plan off")
	p.planMode(false)

	p.ask(map[string]any{"type": "switch_session", "sessionPath": file})
	p.planMode(true)
	if p.id() != first || p.writes(s) {
		t.Errorf("in session %s plan mode was ended by a copy of it", p.id())
	}
	p.ask(map[string]any{"type": "fork", "entryId": p.before("Hello.")}) // from before plan mode
	if !p.writes(s) {
		t.Error("what came later in the session holds its copy")
	}
	p.ask(map[string]any{"type": "new_session"})
	if p.refused("more.txt") != "" {
		t.Error("a new session is in plan mode")
	}
	p.ask(map[string]any{"type": "switch_session", "sessionPath": file})
	p.planMode(true)
	p.close()

	p = s.keeping("--session", file) // plan mode lasts for the Pi that had it
	p.notice("Plan mode was on in this session and ended with the Pi that had it")
	if reason := p.refused("more.txt"); reason != "" {
		t.Errorf("plan mode outlived its Pi: %s", reason)
	}
	p.close()
}

// compactsSmall lets sessions be compacted that are small.
func (s *scene) compactsSmall() {
	s.t.Helper()
	path := filepath.Join(s.agentDir, "settings.json")
	var settings map[string]any
	if err := json.Unmarshal([]byte(textOf(s.t, path)), &settings); err != nil {
		s.t.Fatal(err)
	}
	settings["compaction"] = map[string]any{"enabled": false, "keepRecentTokens": 50, "reserveTokens": 16384}
	data, err := json.Marshal(settings)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func TestACompactionKeepsTheRunAndItsExecution(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.keeping()
	bread := p.begins("bread")
	p.close()
	s.compactsSmall()
	p = s.keeping("--continue")
	for range 2 {
		p.prompt("Think.", scriptedmodel.Step{Text: strings.Repeat("The oven is warm. ", 40)})
		p.settled()
	}
	p.ask(map[string]any{"type": "compact"})
	contains(t, p.refused("bread.txt"), bread.id)
	p.close()
	p = s.keeping("--continue") // the entries before the compaction still tell
	s.must("plans", "start-run", "--topic", "cake", "--skill", "plan-small", "--requestText", "Bake a cake.")
	if end := p.tries(writing(bread.plan(), twoChecks))[0]; end.at("isError").truth() {
		t.Fatalf("the session has lost its run: %s", end)
	}
	p.approves("Forty loaves stand there. [DONE:VC-001]")
	p.paused()
	for range 2 {
		p.prompt("Think.", scriptedmodel.Step{Text: strings.Repeat("The oven is hot. ", 40), Finish: "length"})
		p.settled()
	}
	p.ask(map[string]any{"type": "compact"})
	contains(t, p.told(), "Verified: 1 of 2")
	p.close()
	p = s.keeping("--continue")
	s.ownedBy(bread, p.id())
	contains(t, p.told(), "Verified: 1 of 2")
	if cp := s.runFile(bread, "checkpoint.json"); len(cp.at("execution.doneVcIds").list()) != 1 {
		t.Errorf("the checkpoint is %s", cp)
	}
	p.close()
}
