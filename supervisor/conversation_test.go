package supervisor_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"pilothouse/supervisor"
)

// openReview leaves exit_plan_mode waiting for its user.
func (p *pi) openReview() supervisor.Dialog {
	p.t.Helper()
	p.command("plan", "", p.nobody)
	reply, err := p.system.Converse(p.t.Context(), p.Session, p.screen, supervisor.KindTool, "exit_plan_mode", spelled(p.t, object{"plan": "# Plan"}))
	if err != nil || reply.Dialog == nil {
		p.t.Fatalf("no dialog: %+v, %v", reply, err)
	}
	return *reply.Dialog
}

func isOver(err error) bool {
	var over *supervisor.NoConversationError
	return errors.As(err, &over)
}

func isInput(err error) bool {
	var input *supervisor.InputError
	return errors.As(err, &input)
}

func TestAnAnswerThatDoesNotFitLeavesTheDialogOpen(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	review := p.openReview()
	if review.Kind != supervisor.DialogEditor || review.Step != 1 || review.Text != "# Plan" {
		t.Fatalf("%+v is no editor with the plan", review)
	}
	if _, err := p.system.Answer(t.Context(), p.ID, review.Conversation, supervisor.Answer{}); !isInput(err) {
		t.Errorf("an empty answer to an editor: %v", err)
	}
	reply, err := p.system.Answer(t.Context(), p.ID, review.Conversation, unchanged(review))
	if err != nil || reply.Dialog == nil || reply.Dialog.Kind != supervisor.DialogSelect {
		t.Fatalf("no selector: %+v, %v", reply, err)
	}
	decision := *reply.Dialog
	for name, index := range map[string]int{"below": -1, "beyond": len(decision.Options)} {
		if _, err := p.system.Answer(t.Context(), p.ID, decision.Conversation, supervisor.Answer{Index: &index}); !isInput(err) {
			t.Errorf("the index %s the options: %v", name, err)
		}
	}
	if _, err := p.system.Answer(t.Context(), p.ID, decision.Conversation, supervisor.Answer{}); !isInput(err) {
		t.Errorf("an empty answer chose something: %v", err)
	}
	var busy *supervisor.ConversationBusyError
	late := unchanged(review)
	late.Step = review.Step
	if _, err := p.system.Answer(t.Context(), p.ID, decision.Conversation, late); !errors.As(err, &busy) {
		t.Errorf("an answer to the dialog before: %v", err)
	}
	reply, err = p.system.Answer(t.Context(), p.ID, decision.Conversation, choose("Approve")(decision))
	if err != nil || reply.Result == nil || reply.Result.IsError {
		t.Errorf("the dialog did not stay open: %+v, %v", reply, err)
	}
	if _, err := p.system.Answer(t.Context(), p.ID, decision.Conversation, dismiss(decision)); !isOver(err) {
		t.Errorf("an answer after the end: %v", err)
	}
}

func TestOfManyAnswersAtOnceOneCounts(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	review := p.openReview()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var taken, busy int
	for range 8 {
		wg.Go(func() {
			reply, err := p.system.Answer(t.Context(), p.ID, review.Conversation, unchanged(review))
			mu.Lock()
			defer mu.Unlock()
			var conflict *supervisor.ConversationBusyError
			switch {
			case err == nil && reply.Dialog != nil && reply.Dialog.Kind == supervisor.DialogSelect:
				taken++
			case errors.As(err, &conflict):
				busy++
			case !isInput(err): // that for the selector, which is open by now
				t.Errorf("%+v, %v", reply, err)
			}
		})
	}
	wg.Wait()
	if taken != 1 {
		t.Errorf("%d answers were taken, %d refused", taken, busy)
	}
	if err := p.system.EndConversation(t.Context(), review.Conversation); err != nil {
		t.Error(err)
	}
}

func TestAConversationBelongsToItsSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	review := p.openReview()
	if _, err := p.system.Answer(t.Context(), "s2", review.Conversation, unchanged(review)); !isOver(err) {
		t.Errorf("another session answered: %v", err)
	}
	if err := p.system.EndSession(t.Context(), "s2"); err != nil {
		t.Fatal(err)
	}
	if !p.system.Conversing() {
		t.Error("the end of another session ended the conversation")
	}
	if err := p.system.EndSession(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	if p.system.Conversing() {
		t.Error("the conversation outlives its session")
	}
	if _, err := p.system.Answer(t.Context(), "s1", review.Conversation, unchanged(review)); !isOver(err) {
		t.Errorf("an answer after the end of the session: %v", err)
	}
	if !p.planning() {
		t.Error("the end of a review that nobody decided ended plan mode")
	}
}

func TestAnAbortedConversationIsOver(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	review := p.openReview()
	if err := p.system.EndConversation(t.Context(), review.Conversation); err != nil {
		t.Fatal(err)
	}
	if err := p.system.EndConversation(t.Context(), review.Conversation); !isOver(err) {
		t.Errorf("ended twice: %v", err)
	}
	if p.system.Conversing() || !p.planning() {
		t.Error("the conversation goes on, or plan mode ended with it")
	}
}

func TestAClosedSystemHasNoConversations(t *testing.T) {
	t.Parallel()
	session := newSession(t)
	system, err := supervisor.New(supervisor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := (&bundle{t, system, session}).pi("s1")
	review := p.openReview()
	if err := system.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := system.Answer(t.Context(), p.ID, review.Conversation, unchanged(review)); !isOver(err) {
		t.Errorf("an answer after the end: %v", err)
	}
	var closed *supervisor.ClosedError
	if _, err := system.Converse(t.Context(), p.Session, p.screen, supervisor.KindCommand, "plan", nil); !errors.As(err, &closed) {
		t.Errorf("a conversation after the end: %v", err)
	}
	if _, err := system.Hook(t.Context(), p.Session, "session_shutdown", spelled(t, object{"reason": "new"})); !errors.As(err, &closed) {
		t.Errorf("the end of a session after the end: %v", err)
	}
}

func TestWhatASessionAsksForIsChecked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	for name, ask := range map[string]func() error{
		"a session without an id": func() error {
			_, err := b.system.Converse(t.Context(), b.session, terminal, supervisor.KindCommand, "plan", nil)
			return err
		},
		"an id that is no file name": func() error {
			_, err := b.system.Converse(t.Context(), b.pi("../x").Session, terminal, supervisor.KindCommand, "plan", nil)
			return err
		},
		"a command that there is not": func() error {
			_, err := p.converse(supervisor.KindCommand, "rm", "", p.nobody)
			return err
		},
		"a tool for a command": func() error {
			_, err := p.converse(supervisor.KindCommand, "exit_plan_mode", "", p.nobody)
			return err
		},
		"no kind": func() error {
			_, err := p.converse("", "plan", "", p.nobody)
			return err
		},
		"arguments of another shape": func() error {
			_, err := p.converse(supervisor.KindCommand, "plan", []int{1}, p.nobody)
			return err
		},
		"parameters of another shape": func() error {
			p.command("plan", "", p.nobody)
			_, err := p.converse(supervisor.KindTool, "exit_plan_mode", "# Plan", p.nobody)
			return err
		},
		"a hook without a session": func() error {
			_, err := b.system.Hook(t.Context(), b.session, "tool_call", nil)
			return err
		},
		"a hook that there is not": func() error {
			_, err := b.system.Hook(t.Context(), p.Session, "coffee", nil)
			return err
		},
		"an event of another shape": func() error {
			_, err := b.system.Hook(t.Context(), p.Session, "tool_call", json.RawMessage(`{"input":[]}`))
			return err
		},
	} {
		if err := ask(); !isInput(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.system.Hook(t.Context(), p.Session, "coffee", nil); err == nil || !strings.Contains(err.Error(), "tool_call") {
		t.Errorf("the refusal names no hook that there is: %v", err)
	}
}
