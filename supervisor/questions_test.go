package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// startRun starts a run without a plan.
func (b *bundle) startRun() store.RunDir {
	b.t.Helper()
	value, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{
		Action: "start-run", Topic: "A topic", Skill: "plan-small", RequestText: "do it",
	})
	if err != nil {
		b.t.Fatal(err)
	}
	started, _ := value.(supervisor.StartRunResult)
	return b.run(started.Run.RunID)
}

func (b *bundle) ask(run store.RunDir, id string) error {
	return b.system.AskQuestion(context.Background(), b.session, run.ID, store.PendingQuestion{
		QuestionID: id, Question: "Which " + id + "?", Options: []string{"a", "b"}, Purpose: "to know",
	})
}

func (b *bundle) answer(run store.RunDir, id, answer, source string) (store.AnsweredQuestion, error) {
	return b.system.AnswerQuestion(context.Background(), b.session, run.ID, store.AnsweredQuestion{QuestionID: id, Answer: answer, Source: source})
}

func (b *bundle) checkpoint(run store.RunDir) store.Checkpoint {
	b.t.Helper()
	cp, err := run.LoadCheckpoint()
	if err != nil {
		b.t.Fatal(err)
	}
	return cp
}

func (b *bundle) decisions(run store.RunDir) []store.Decision {
	b.t.Helper()
	decisions, err := run.Decisions()
	if err != nil {
		b.t.Fatal(err)
	}
	return decisions
}

// refusedBy checks that an error is a StateError with these words.
func refusedBy(t *testing.T, err error, words string) {
	t.Helper()
	var state *store.StateError
	if !errors.As(err, &state) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want a StateError with %q", err, words)
	}
}

var ignoreTimes = cmp.Options{
	cmpopts.IgnoreFields(store.Decision{}, "RecordedAt"),
	cmpopts.IgnoreFields(store.AnsweredQuestion{}, "AnsweredAt"),
}

func TestAQuestionIsDurableBeforeItIsShownAndItsAnswerBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.startRun()
	if err := b.ask(run, "q1"); err != nil {
		t.Fatal(err)
	}
	cp := b.checkpoint(run)
	if q := cp.PendingQuestion; q == nil || q.QuestionID != "q1" || q.Question != "Which q1?" || q.Purpose != "to know" || cp.NextAction != store.ActionAskQuestion {
		t.Fatalf("pending is %+v, next %s", q, cp.NextAction)
	}
	if len(b.decisions(run)) != 0 {
		t.Error("a question without an answer is in the ledger")
	}
	for i, source := range []string{"user", "other", "auto-complete"} {
		id, want := fmt.Sprintf("q%d", i+1), source
		if source == "other" { // the ledger knows no such source
			want = "user"
		}
		if i > 0 {
			if err := b.ask(run, id); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.answer(run, id, "b", source)
		if diff := cmp.Diff(store.AnsweredQuestion{QuestionID: id, Answer: "b", Source: source}, got, ignoreTimes); err != nil || diff != "" || got.AnsweredAt == "" {
			t.Errorf("%v %s", err, diff)
		}
		cp, decisions := b.checkpoint(run), b.decisions(run)
		if cp.PendingQuestion != nil || !cp.Answered(id) {
			t.Errorf("%s is not answered: %+v", id, cp)
		}
		entry := store.Decision{Question: "Which " + id + "?", Options: []string{"a", "b"}, Answer: "b", AnswerSource: want, QuestionID: id}
		if diff := cmp.Diff(entry, decisions[len(decisions)-1], ignoreTimes); diff != "" {
			t.Error(diff)
		}
	}
	if n := len(b.decisions(run)); n != 3 {
		t.Errorf("%d decisions of 3 answers", n)
	}
}

func TestAQuestionOrAnswerThatIsRefusedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.startRun()
	if err := b.ask(run, "q1"); err != nil {
		t.Fatal(err)
	}
	before := b.checkpoint(run)
	refusedBy(t, b.ask(run, "q2"), "q1 is still pending")
	_, err := b.answer(run, "q2", "a", "user")
	refusedBy(t, err, "q2 is not pending")
	for name, call := range map[string]func() error{
		"an id with a slash": func() error { return b.ask(run, "a/b") },
		"no text": func() error {
			return b.system.AskQuestion(context.Background(), b.session, run.ID, store.PendingQuestion{QuestionID: "q3"})
		},
		"an answer to no id": func() error { _, err := b.answer(run, "", "a", "user"); return err },
		"an unknown source":  func() error { _, err := b.answer(run, "q1", "a", "nobody"); return err },
		"a drop of no id":    func() error { return b.system.DropQuestion(context.Background(), b.session, run.ID, "") },
		"an unknown run": func() error {
			return b.system.DropQuestion(context.Background(), b.session, "20260825T130000Z-none", "q1")
		},
		"no run": func() error { return b.system.DropQuestion(context.Background(), b.session, "", "q1") },
	} {
		var input *supervisor.InputError
		if err := call(); !errors.As(err, &input) {
			t.Errorf("%s: got %v, want an InputError", name, err)
		}
	}
	if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" || len(b.decisions(run)) != 0 {
		t.Errorf("something was left: %s %v", diff, b.decisions(run))
	}
}

func TestTheFirstAnswerOnRecordWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.startRun()
	if err := b.ask(run, "q1"); err != nil {
		t.Fatal(err)
	}
	answers := make([]store.AnsweredQuestion, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			var err error
			if answers[i], err = b.answer(run, "q1", string(rune('a'+i)), "user"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cp := b.checkpoint(run)
	if len(cp.AnsweredQuestions) != 1 || len(b.decisions(run)) != 1 || b.decisions(run)[0].Answer != cp.AnsweredQuestions[0].Answer {
		t.Fatalf("answers %+v, decisions %+v", cp.AnsweredQuestions, b.decisions(run))
	}
	for _, got := range answers {
		if diff := cmp.Diff(cp.AnsweredQuestions[0], got); diff != "" {
			t.Errorf("told another answer than the one on record: %s", diff)
		}
	}
	refusedBy(t, b.ask(run, "q1"), "q1 is already answered")
}

func TestADroppedQuestionMakesRoomForAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.startRun()
	if err := b.ask(run, "q1"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := b.system.DropQuestion(context.Background(), b.session, run.ID, "q1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.ask(run, "q2"); err != nil {
		t.Error(err)
	}
	if cp := b.checkpoint(run); cp.Answered("q1") || cp.PendingQuestion.QuestionID != "q2" {
		t.Errorf("got %+v", cp)
	}
}

// As after a crash between the ledger's line and the checkpoint.
func TestAnAnswerThatACrashKeptOutOfTheCheckpointCounts(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(t *testing.T, b *bundle, run store.RunDir){
		"when another is asked": func(t *testing.T, b *bundle, run store.RunDir) {
			if err := b.ask(run, "q2"); err != nil {
				t.Error(err)
			}
		},
		"when it is asked again": func(t *testing.T, b *bundle, run store.RunDir) {
			refusedBy(t, b.ask(run, "q1"), "q1 is already answered")
		},
		"when it is answered again": func(t *testing.T, b *bundle, run store.RunDir) {
			if got, err := b.answer(run, "q1", "b", "user"); err != nil || got.Answer != "a" || got.Source != "auto-complete" {
				t.Errorf("got %+v, %v", got, err)
			}
		},
		"when the run is used for anything": func(t *testing.T, b *bundle, run store.RunDir) {
			_, err := b.system.Plans(context.Background(), b.session, supervisor.PlansAction{Action: "set-status", RunID: run.ID, Status: "planning"})
			if err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			run := b.startRun()
			if err := b.ask(run, "q1"); err != nil {
				t.Fatal(err)
			}
			if _, err := run.AppendDecision(store.Decision{Question: "Which q1?", Answer: "a", AnswerSource: "auto-complete", QuestionID: "q1"}, time.Now()); err != nil {
				t.Fatal(err)
			}
			next(t, b, run)
			cp := b.checkpoint(run)
			want := []store.AnsweredQuestion{{QuestionID: "q1", Answer: "a", Source: "auto-complete"}}
			if diff := cmp.Diff(want, cp.AnsweredQuestions, ignoreTimes); diff != "" || cp.PendingQuestion != nil && cp.PendingQuestion.QuestionID == "q1" {
				t.Errorf("pending %+v, answered %s", cp.PendingQuestion, diff)
			}
			if n := len(b.decisions(run)); n != 1 {
				t.Errorf("%d decisions", n)
			}
		})
	}
}

func TestACorruptCheckpointIsReportedAndGetsNoAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := b.startRun()
	if err := b.ask(run, "q1"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(run.Dir, "checkpoint.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *store.CorruptError
	if _, err := b.answer(run, "q1", "a", "user"); !errors.As(err, &corrupt) {
		t.Errorf("answer: %v", err)
	}
	if err := b.ask(run, "q1"); !errors.As(err, &corrupt) {
		t.Errorf("ask: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "{" || len(b.decisions(run)) != 0 {
		t.Errorf("the checkpoint is %q (%v), the ledger %v", text, err, b.decisions(run))
	}
}

func TestAChangeOfARunThatWasTakenOverFailsAndIsAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := newWatcher()
	held := make(chan error, 1)
	go func() {
		_, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n"), w.watch)
		held <- err
	}()
	<-w.working
	run := b.run(w.started.RunID)
	lease, err := run.TakeOver(t.Context(), "somebody else")
	if err != nil {
		t.Fatal(err)
	}
	var lost *store.LostOwnerError
	if err := b.ask(run, "q1"); !errors.As(err, &lost) {
		t.Errorf("the question: got %v, want a LostOwnerError", err)
	}
	if err := <-held; !errors.As(err, &lost) {
		t.Errorf("the round beside it: got %v, want a LostOwnerError", err)
	}
	if cp := b.checkpoint(run); cp.PendingQuestion != nil {
		t.Errorf("the question was recorded: %+v", cp.PendingQuestion)
	}
	if released, err := lease.Release(); !released || err != nil {
		t.Errorf("the new owner lost its run: %v", err)
	}
}
