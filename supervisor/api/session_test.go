package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"pilothouse/supervisor"
)

// terminal is the screen of a session with a user.
var terminal = supervisor.Screen{Has: true, Mode: "tui", Editor: true, Rows: 40, Cols: 120, Idle: true}

// session is the scene's session as one of Pi's.
func (s *scene) piSession(id string) supervisor.Session {
	session := s.session
	session.ID = id
	return session
}

func text(t *testing.T, value any) json.RawMessage {
	t.Helper()
	return json.RawMessage(spell(t, value))
}

func TestASessionPlansOverTheSocket(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client, session := s.client(), s.piSession("s1")
	write := text(t, map[string]any{"toolName": "write", "input": map[string]any{"path": "main.go", "content": ""}})
	blocked := func() bool {
		t.Helper()
		reply, err := client.Hook(t.Context(), session, "tool_call", write)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Block != nil
	}
	if blocked() {
		t.Error("blocked without plan mode")
	}
	if _, err := client.Converse(t.Context(), session, terminal, supervisor.KindCommand, "plan", text(t, "")); err != nil {
		t.Fatal(err)
	}
	if !blocked() {
		t.Error("plan mode does not hold")
	}
	reply, err := client.Converse(t.Context(), session, terminal, supervisor.KindTool, "exit_plan_mode", text(t, map[string]any{"plan": "# <Plan> & more"}))
	if err != nil || reply.Dialog == nil || reply.Dialog.Text != "# <Plan> & more" {
		t.Fatalf("no editor with the plan: %+v, %v", reply, err)
	}
	review := reply.Dialog.Conversation
	if reply, err = client.Answer(t.Context(), session.ID, review, supervisor.Answer{Text: &reply.Dialog.Text}); err != nil || reply.Dialog == nil {
		t.Fatalf("no decision: %+v, %v", reply, err)
	}
	approve := 0
	if reply, err = client.Answer(t.Context(), session.ID, review, supervisor.Answer{Index: &approve}); err != nil || reply.Result == nil || reply.Result.IsError {
		t.Fatalf("not approved: %+v, %v", reply, err)
	}
	if blocked() {
		t.Error("plan mode holds after the approval")
	}
	var over *supervisor.NoConversationError
	if _, err = client.Answer(t.Context(), session.ID, review, supervisor.Answer{Index: &approve}); !errors.As(err, &over) {
		t.Errorf("an answer after the end: %v", err)
	}
	var input *supervisor.InputError
	if _, err := client.Hook(t.Context(), s.session, "tool_call", write); !errors.As(err, &input) {
		t.Errorf("a session without an id: %v", err)
	}
}

// A dialog may be open for hours: neither a slow user nor one whose terminal was closed
// in the meantime ends it, and it keeps a daemon from ending for idleness.
func TestAnOpenDialogOutlivesTheConnectionThatBroughtIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(s *scene) { s.options.BodyTimeout = 100 * time.Millisecond })
	session := s.piSession("s1")
	first := s.client()
	if _, err := first.Converse(t.Context(), session, terminal, supervisor.KindCommand, "plan", nil); err != nil {
		t.Fatal(err)
	}
	reply, err := first.Converse(t.Context(), session, terminal, supervisor.KindTool, "exit_plan_mode", text(t, map[string]any{"plan": "# Plan"}))
	if err != nil || reply.Dialog == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	first.Close()
	quiet, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.server.AwaitIdle(quiet, time.Millisecond); err == nil {
		t.Error("a daemon with an open dialog is idle")
	}
	second := s.client()
	if err := second.EndConversation(t.Context(), reply.Dialog.Conversation); err != nil {
		t.Errorf("the dialog was lost: %v", err)
	}
	if err := s.server.AwaitIdle(t.Context(), time.Millisecond); err != nil {
		t.Errorf("the daemon is busy with nothing: %v", err)
	}
	var over *supervisor.NoConversationError
	if err := second.EndConversation(t.Context(), reply.Dialog.Conversation); !errors.As(err, &over) {
		t.Errorf("ended twice: %v", err)
	}
}

func TestTheDaemonStopsWithADialogOpen(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client, session := s.client(), s.piSession("s1")
	reply, err := client.Converse(t.Context(), session, terminal, supervisor.KindCommand, "plan", text(t, "go on"))
	if err != nil || reply.Dialog == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	client.Close()
	s.end() // fails the test when it does not come to its end
	if s.system.Conversing() {
		t.Error("the conversation goes on")
	}
}

func TestWhatIsNoHookAndNoConversationIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	who := map[string]any{"id": "s1", "workdir": s.session.Workdir}
	for name, test := range map[string]struct {
		path   string
		body   any
		status int
	}{
		"no such hook":             {"/v1/hooks/coffee", map[string]any{"session": who}, http.StatusBadRequest},
		"a hook without a session": {"/v1/hooks/input", map[string]any{}, http.StatusBadRequest},
		"a relative workdir":       {"/v1/hooks/input", map[string]any{"session": map[string]any{"id": "s1", "workdir": "x"}}, http.StatusBadRequest},
		"no id":                    {"/v1/hooks/input", map[string]any{"session": map[string]any{"workdir": s.session.Workdir}}, http.StatusBadRequest},
		"an id with a slash":       {"/v1/hooks/input", map[string]any{"session": map[string]any{"id": "../x", "workdir": s.session.Workdir}}, http.StatusBadRequest},
		"a list":                   {"/v1/hooks/input", []int{1}, http.StatusBadRequest},
		"no such command":          {"/v1/conversations", map[string]any{"session": who, "kind": "command", "name": "rm"}, http.StatusBadRequest},
		"no such conversation":     {"/v1/conversations/talk-x/answer", map[string]any{"answer": map[string]any{}}, http.StatusNotFound},
		"a mistyped answer":        {"/v1/conversations/talk-x/answer", map[string]any{"answer": map[string]any{"indx": 0}}, http.StatusBadRequest},
	} {
		var problem struct{ Detail string }
		if status := s.ask("POST", test.path, test.body, &problem); status != test.status || problem.Detail == "" {
			t.Errorf("%s: status %d, want %d: %s", name, status, test.status, problem.Detail)
		}
	}
}
