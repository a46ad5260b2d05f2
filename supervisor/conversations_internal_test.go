package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asking is a flow that asks once and tells what came of it.
func asking(c *conversation) (Reply, error) {
	answer, ok, err := panel{c, Screen{Has: true}}.Input(c.ctx, "Name?", "")
	if err != nil || !ok {
		return Reply{}, err
	}
	return Reply{Result: &ToolResult{Text: answer}}, nil
}

// working is a flow that works until its conversation ends, whatever it does then.
func working(c *conversation) (Reply, error) {
	<-c.ctx.Done()
	return Reply{}, errors.New("some consequence of that")
}

func over(t *testing.T, err error, word string) {
	t.Helper()
	var end *NoConversationError
	if !errors.As(err, &end) || !strings.Contains(end.Error(), word) {
		t.Errorf("%v does not say that the conversation is over because %q", err, word)
	}
}

func TestADialogStaysOpenForADayAndNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newConversations()
		c, err := all.begin("s1", asking)
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := c.next(t.Context()); err != nil || reply.Dialog == nil {
			t.Fatalf("%+v, %v", reply, err)
		}
		time.Sleep(conversationIdle - time.Second)
		synctest.Wait()
		if all.count() != 1 {
			t.Fatal("the dialog is gone before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if all.count() != 0 {
			t.Error("the dialog is open for ever")
		}
		_, err = all.find(c.id)
		over(t, err, "there is no conversation")
		over(t, c.err, "nobody answered")
		all.wait()
	})
}

func TestASessionThatDoesNotWaitForTheReplyEndsTheConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newConversations()
		c, err := all.begin("s1", working)
		if err != nil {
			t.Fatal(err)
		}
		gone, leave := context.WithTimeout(t.Context(), time.Hour)
		defer leave()
		if _, err := c.next(gone); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the session heard %v", err)
		}
		all.wait()
		over(t, c.err, "did not wait")
	})
}

func TestTheEndOfAllConversationsWaitsForThemWithinItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, release := newConversations(), make(chan struct{})
		if _, err := all.begin("s1", func(*conversation) (Reply, error) { <-release; return Reply{}, nil }); err != nil {
			t.Fatal(err)
		}
		quick, err := all.begin("s1", working)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		patience, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all.close(patience)
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %v for a flow that does not end", waited)
		}
		<-quick.done
		over(t, quick.err, "shutting down")
		var closed *ClosedError
		if _, err := all.begin("s1", asking); !errors.As(err, &closed) {
			t.Errorf("one more began: %v", err)
		}
		close(release)
		all.wait()
	})
}

// Only one answer is taken also when it comes while nobody waits for the next reply yet.
func TestAnAnswerIsTakenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all, name := newConversations(), "Ann"
		c, err := all.begin("s1", asking)
		if err != nil {
			t.Fatal(err)
		}
		var busy *ConversationBusyError
		if err := c.answer(Answer{Text: &name}); !errors.As(err, &busy) {
			t.Errorf("an answer before the dialog: %v", err)
		}
		if _, err := c.next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.answer(Answer{Text: &name}); err != nil {
			t.Fatal(err)
		}
		if err := c.answer(Answer{Text: &name}); !errors.As(err, &busy) {
			t.Errorf("a second answer: %v", err)
		}
		if reply, err := c.next(t.Context()); err != nil || reply.Result == nil || reply.Result.Text != name {
			t.Errorf("%+v, %v", reply, err)
		}
		all.wait()
	})
}

// What follows is in the tables for TestAPanicEndsOnlyWhatItHappensIn alone.
func init() {
	commands["panic"] = func(context.Context, *System, Session, UI, json.RawMessage) (Reply, error) { panic("an oven") }
	hooks["panic"] = func(context.Context, *System, Session, json.RawMessage) (Reply, error) { panic("an oven") }
}

func TestAPanicEndsOnlyWhatItHappensIn(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	session := Session{ID: "s1", Workdir: t.TempDir()}
	for range 2 {
		if _, err := s.Converse(t.Context(), session, Screen{}, KindCommand, "panic", nil); err == nil || !strings.Contains(err.Error(), "an oven") {
			t.Errorf("a command that panicked: %v", err)
		}
		if _, err := s.Hook(t.Context(), session, "panic", nil); err == nil || !strings.Contains(err.Error(), "an oven") {
			t.Errorf("a hook that panicked: %v", err)
		}
	}
	if s.Conversing() {
		t.Error("a conversation that panicked goes on")
	}
}

// A flow may give a dialog up, as after a time of its own. What the user answers to that
// must not be taken for the answer to the next.
func TestAnAnswerToADialogThatWasGivenUpIsNotTakenForTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newConversations()
		c, err := all.begin("s1", func(c *conversation) (Reply, error) {
			short, stop := context.WithTimeout(c.ctx, time.Minute)
			defer stop()
			if _, _, err := (panel{c, Screen{Has: true}}).Input(short, "Delete?", ""); err == nil {
				t.Error("the first dialog was answered")
			}
			time.Sleep(time.Minute)
			return asking(c)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.next(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second) // the user answers while nobody asks
		yes, ann := "yes", "Ann"
		if err := c.answer(Answer{Text: &yes}); err != nil {
			t.Fatal(err)
		}
		reply, err := c.next(t.Context())
		if err != nil || reply.Dialog == nil || reply.Dialog.Title != "Name?" {
			t.Fatalf("%+v, %v", reply, err)
		}
		if err := c.answer(Answer{Text: &ann}); err != nil {
			t.Fatal(err)
		}
		if reply, err = c.next(t.Context()); err != nil || reply.Result == nil || reply.Result.Text != ann {
			t.Errorf("%+v, %v", reply, err)
		}
		all.wait()
	})
}
