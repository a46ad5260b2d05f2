package extension_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// What is kept of plan mode, the run and its execution when a session is left, copied, cut
// short or gone back in.

// keeping opens a session that is kept in a file.
func (s *scene) keeping(args ...string) *session {
	s.t.Helper()
	return s.open(append([]string{"--session-dir", filepath.Join(s.AgentDir, "kept")}, args...)...)
}

func (p *session) file() string {
	p.t.Helper()
	return p.Ask(map[string]any{"type": "get_state"}).At("sessionFile").Text()
}

// before is the entry of the last message of the user that begins with words.
func (p *session) before(words string) string {
	p.t.Helper()
	messages := p.Ask(map[string]any{"type": "get_fork_messages"}).At("messages").List()
	for i := len(messages) - 1; i >= 0; i-- {
		if strings.HasPrefix(messages[i].At("text").Text(), words) {
			return messages[i].At("entryId").Text()
		}
	}
	p.t.Fatalf("no message begins with %q: %v", words, messages)
	return ""
}

// told is what the agent is told of an execution before it answers the next message, "" for
// nothing.
func (p *session) told() string {
	p.t.Helper()
	p.Prompt("Go on.", scriptedmodel.Step{Text: "waiting for the oven", Finish: "length"}) // which ends it without a wake
	context := ""
	p.Await("message_end", func(e piharness.Value) bool {
		if e.At("message.customType").Text() == "pi-plans-exec-context" {
			context = e.At("message.content").Text()
		}
		return strings.Contains(e.At("message.content").String(), `"waiting for the oven"`)
	})
	p.Settled()
	return context
}

func TestASessionThatIsResumedGoesOnWithItsExecution(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.keeping()
	id := p.id()
	bread := p.executes("bread")
	tokens := s.runFile(bread, "checkpoint.json").At("execution.usage.inToks").Number()
	p.Close()
	s.ownedBy(bread, "")

	p = s.keeping("--continue")
	p.Await("extension_ui_request", func(e piharness.Value) bool {
		return e.At("statusKey").Text() == "pi-plans" && strings.HasPrefix(e.At("statusText").Text(), "⌛ plans 0/1")
	})
	if p.id() != id {
		t.Fatalf("the session is %s, was %s", p.id(), id)
	}
	s.ownedBy(bread, id)
	contains(t, p.told(), "Verified: 1 of 2")
	if used := s.runFile(bread, "checkpoint.json").At("execution.usage.inToks").Number(); used <= tokens {
		t.Errorf("%v tokens after the turn, %v before", used, tokens)
	}
	p.Prompt("Eat one.", scriptedmodel.Step{Text: "It is good. [DONE:VC-002]"}, scriptedmodel.Step{Text: "over"})
	p.Await("message_end", func(e piharness.Value) bool { return e.At("message.customType").Text() == "pi-plans-complete" })
	p.Settled()
	if cp := s.runFile(bread, "checkpoint.json"); cp.At("phase").Text() != "implementation-review" {
		t.Errorf("the checkpoint is %s", cp)
	}
	p.Close()
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
	contains(t, q.Notice("works on run "+bread.id).At("message").Text(), "Session "+first, "/resume-plans")
	if told := q.told(); told != "" {
		t.Error("the copy carries the plan out, too")
	}
	s.ownedBy(bread, first)
	q.Close()
	s.ownedBy(bread, first)

	// A copy that begins before the approval plans; it goes on by the user's word alone.
	p.Ask(map[string]any{"type": "fork", "entryId": p.before("Carry it out.")})
	second := p.id()
	if second == first {
		t.Fatal("the copy has the id of the first")
	}
	contains(t, p.Notice("not at this point of the session").At("message").Text(), bread.id, "/plans-execute")
	s.ownedBy(bread, "")
	if told := p.told(); told != "" {
		t.Error("what was approved later is carried out")
	}
	p.Prompt("/plans-execute")
	p.Settled()
	s.ownedBy(bread, second)
	contains(t, p.told(), "Verified: 1 of 2")

	// Back in the first, which goes on where the plan is now.
	p.Ask(map[string]any{"type": "switch_session", "sessionPath": file})
	if p.id() != first {
		t.Fatalf("switched to %s", p.id())
	}
	s.ownedBy(bread, first)
	contains(t, p.told(), "Verified: 1 of 2")

	// A copy of all of it goes on at once.
	p.Ask(map[string]any{"type": "clone"})
	s.ownedBy(bread, p.id())
	contains(t, p.told(), "Verified: 1 of 2")
	if cp := s.runFile(bread, "checkpoint.json"); len(cp.At("execution.doneVcIds").List()) != 1 || cp.At("execution.approval.worktree").Text() != s.Dir {
		t.Errorf("the checkpoint is %s", cp)
	}

	// A new session has nothing to do with it.
	p.Ask(map[string]any{"type": "new_session"})
	s.ownedBy(bread, "")
	if told := p.told(); told != "" {
		t.Error("a new session carries the plan out")
	}
	s.ownedBy(bread, "")
	p.Close()
}

func TestGoingBackInASessionGoesBackBehindItsExecution(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.keeping("-e", probe(t))
	bread := p.executes("bread")
	entries := p.Ask(map[string]any{"type": "get_entries"}).At("entries").List()
	last := entries[len(entries)-1].At("id").Text()
	p.Prompt("/goto " + p.before("Carry it out."))
	p.Notice("not at this point of the session")
	if told := p.told(); told != "" {
		t.Error("what was approved later is carried out")
	}
	if cp := s.runFile(bread, "checkpoint.json"); cp.At("phase").Text() != "executing" || cp.At("execution.approval").Empty() {
		t.Errorf("going back has changed the run: %s", cp)
	}
	p.Prompt("/goto " + last)
	contains(t, p.told(), "Verified: 1 of 2")
	s.ownedBy(bread, p.id())
	p.Close()
}

func TestPlanModeGoesWithACopyAndStaysInItsSession(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.keeping()
	p.Prompt("Hello.", done)
	p.Settled()
	p.Prompt("/plan")
	p.planMode(true)
	p.Prompt("Look.", done)
	p.Settled()
	first, file := p.id(), p.file()

	p.Ask(map[string]any{"type": "fork", "entryId": p.before("Look.")})
	p.planMode(true)
	p.Notice("Plan mode is still on")
	if p.writes(s) {
		t.Error("a copy of a session in plan mode writes")
	}
	p.Prompt("/plan off")
	p.planMode(false)

	p.Ask(map[string]any{"type": "switch_session", "sessionPath": file})
	p.planMode(true)
	if p.id() != first || p.writes(s) {
		t.Errorf("in session %s plan mode was ended by a copy of it", p.id())
	}
	p.Ask(map[string]any{"type": "fork", "entryId": p.before("Hello.")}) // from before plan mode
	if !p.writes(s) {
		t.Error("what came later in the session holds its copy")
	}
	p.Ask(map[string]any{"type": "new_session"})
	if p.refused("more.txt") != "" {
		t.Error("a new session is in plan mode")
	}
	p.Ask(map[string]any{"type": "switch_session", "sessionPath": file})
	p.planMode(true)
	p.Close()

	p = s.keeping("--session", file) // plan mode lasts for the Pi that had it
	p.Notice("Plan mode was on in this session and ended with the Pi that had it")
	if reason := p.refused("more.txt"); reason != "" {
		t.Errorf("plan mode outlived its Pi: %s", reason)
	}
	p.Close()
}

// compactsSmall lets sessions be compacted that are small.
func (s *scene) compactsSmall() {
	s.t.Helper()
	path := filepath.Join(s.AgentDir, "settings.json")
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
	p.Close()
	s.compactsSmall()
	p = s.keeping("--continue")
	for range 2 {
		p.Prompt("Think.", scriptedmodel.Step{Text: strings.Repeat("The oven is warm. ", 40)})
		p.Settled()
	}
	p.Ask(map[string]any{"type": "compact"})
	contains(t, p.refused("bread.txt"), bread.id)
	p.Close()
	p = s.keeping("--continue") // the entries before the compaction still tell
	s.must("plans", "start-run", "--topic", "cake", "--skill", "plan-small", "--requestText", "Bake a cake.")
	if end := p.tries(writing(bread.plan(), twoChecks))[0]; end.At("isError").Truth() {
		t.Fatalf("the session has lost its run: %s", end)
	}
	p.approves("Forty loaves stand there. [DONE:VC-001]")
	p.paused()
	for range 2 {
		p.Prompt("Think.", scriptedmodel.Step{Text: strings.Repeat("The oven is hot. ", 40), Finish: "length"})
		p.Settled()
	}
	p.Ask(map[string]any{"type": "compact"})
	contains(t, p.told(), "Verified: 1 of 2")
	p.Close()
	p = s.keeping("--continue")
	s.ownedBy(bread, p.id())
	contains(t, p.told(), "Verified: 1 of 2")
	if cp := s.runFile(bread, "checkpoint.json"); len(cp.At("execution.doneVcIds").List()) != 1 {
		t.Errorf("the checkpoint is %s", cp)
	}
	p.Close()
}
