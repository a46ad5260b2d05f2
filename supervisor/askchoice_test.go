package supervisor_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// colours is a question with three options, the second recommended.
func colours(more object) object {
	question := object{
		"question": "Which colour?",
		"options":  []object{{"label": "red"}, {"label": "green", "recommended": true, "description": "as before"}, {"label": "blue"}},
	}
	for key, value := range more {
		question[key] = value
	}
	return question
}

type choiceDetails struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Answer   *string  `json:"answer"`
	Source   string   `json:"source"`
}

// chose checks the details of an answer.
func chose(t *testing.T, result supervisor.ToolResult, answer, source string) {
	t.Helper()
	var details choiceDetails
	if err := json.Unmarshal(result.Details, &details); err != nil {
		t.Fatalf("%v in %+v", err, result)
	}
	want := choiceDetails{Question: "Which colour?", Options: []string{"red", "green", "blue"}, Answer: &answer, Source: source}
	if answer == "" {
		want.Answer = nil
	}
	if diff := cmp.Diff(want, details); diff != "" || result.IsError {
		t.Errorf("%+v: %s", result, diff)
	}
	if !strings.Contains(result.Text, answer) {
		t.Errorf("the model is told %q", result.Text)
	}
}

// sees checks what a dialog shows before it is answered.
func sees(t *testing.T, check func(supervisor.Dialog), next func(supervisor.Dialog) supervisor.Answer) func(supervisor.Dialog) supervisor.Answer {
	t.Helper()
	return func(d supervisor.Dialog) supervisor.Answer {
		check(d)
		return next(d)
	}
}

// entries are the data of the entries of a type in a reply.
func entries(reply supervisor.Reply, customType string) []string {
	var data []string
	for _, a := range reply.Actions {
		if a.Kind == supervisor.ActionEntry && a.CustomType == customType {
			data = append(data, string(a.Data))
		}
	}
	return data
}

// atWork is a session with a run of its own.
func (b *bundle) atWork(id string) (*pi, store.RunDir) {
	b.t.Helper()
	b.session.ID = id
	return b.pi(id), b.startRun()
}

func TestTheOptionsOfAQuestion(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	for name, c := range map[string]struct {
		more object
		want []string
	}{
		"by default":         {nil, []string{"Other…", "Auto-complete"}},
		"trailing":           {object{"trailing": "auto-refine-loop", "autoComplete": true}, []string{"Other…", "Auto-refine loop"}},
		"only the user":      {object{"autoComplete": false}, []string{"Other…"}},
		"nothing else":       {object{"allowOther": false, "autoComplete": false}, nil},
		"about installation": {object{"purpose": "install"}, []string{"Other…"}},
	} {
		want := append([]string{"1. red", "2. green  (recommended) — as before", "3. blue"}, c.want...)
		result := p.tool("ask_choice", colours(c.more), p.inTurn(sees(t, func(d supervisor.Dialog) {
			if diff := cmp.Diff(want, d.Options); diff != "" || d.Kind != supervisor.DialogSelect || d.Title != "Which colour?" {
				t.Errorf("%s: %+v: %s", name, d, diff)
			}
		}, choose("3."))))
		chose(t, result, "blue", "user")
	}
}

func TestAnAnswerOfOnesOwn(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	chose(t, p.tool("ask_choice", colours(nil), p.inTurn(choose("Other"), write("  dark\nred "))), "dark red", "other")
	for name, dialogs := range map[string]user{
		"dismissed":           p.inTurn(dismiss),
		"other, then nothing": p.inTurn(choose("Other"), write(" \n ")),
		"other, then gone":    p.inTurn(choose("Other"), dismiss),
	} {
		result := p.tool("ask_choice", colours(nil), dialogs)
		chose(t, result, "", "cancelled")
		if !strings.Contains(result.Text, "neither an answer nor an approval") {
			t.Errorf("%s: the model is told %q", name, result.Text)
		}
	}
}

func TestAQuestionIsDurableWhileItIsShownAndItsAnswerWhenTheModelHasIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	result := p.tool("ask_choice", colours(object{"questionId": "q1", "purpose": "design"}), p.inTurn(sees(t, func(supervisor.Dialog) {
		q := b.checkpoint(run).PendingQuestion
		if q == nil || q.QuestionID != "q1" || q.Question != "Which colour?" || q.Purpose != "design" || !slices.Equal(q.Options, []string{"red", "green", "blue"}) {
			t.Errorf("pending while it is shown: %+v", q)
		}
		if n := len(b.decisions(run)); n != 0 {
			t.Errorf("%d decisions before the answer", n)
		}
	}, choose("1."))))
	chose(t, result, "red", "user")
	cp := b.checkpoint(run)
	if diff := cmp.Diff([]store.AnsweredQuestion{{QuestionID: "q1", Answer: "red", Source: "user"}}, cp.AnsweredQuestions, ignoreTimes); diff != "" || cp.PendingQuestion != nil {
		t.Errorf("pending %+v, %s", cp.PendingQuestion, diff)
	}
	want := []store.Decision{{Question: "Which colour?", Options: []string{"red", "green", "blue"}, Answer: "red", AnswerSource: "user", QuestionID: "q1"}}
	if diff := cmp.Diff(want, b.decisions(run), ignoreTimes); diff != "" {
		t.Error(diff)
	}
}

func TestAQuestionWithoutAnIdLeavesTheCheckpointAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	before := b.checkpoint(run)
	chose(t, p.tool("ask_choice", colours(nil), p.inTurn(choose("Other"), write("pink"))), "pink", "other")
	if diff := cmp.Diff(before, b.checkpoint(run)); diff != "" {
		t.Error(diff)
	}
	want := []store.Decision{{Question: "Which colour?", Options: []string{"red", "green", "blue"}, Answer: "pink", AnswerSource: "user"}}
	if diff := cmp.Diff(want, b.decisions(run), ignoreTimes); diff != "" {
		t.Error(diff)
	}
}

func TestARunThatHasNoRoomForTheQuestionStillGetsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"no checkpoint":      os.Remove,
		"corrupt checkpoint": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
	} {
		b := setup(t)
		p, run := b.atWork("s1")
		if err := spoil(filepath.Join(run.Dir, "checkpoint.json")); err != nil {
			t.Fatal(err)
		}
		chose(t, p.tool("ask_choice", colours(object{"questionId": "q1"}), p.inTurn(choose("1."))), "red", "user")
		if d := b.decisions(run); len(d) != 1 || d[0].QuestionID != "q1" || d[0].Answer != "red" {
			t.Errorf("%s: %+v", name, d)
		}
		chose(t, p.tool("ask_choice", colours(object{"questionId": "q1"}), p.nobody), "red", "user")
	}
}

func TestACancelledQuestionStaysPendingAndTheNextTakesItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	p.tool("ask_choice", colours(object{"questionId": "q1"}), p.inTurn(dismiss))
	if q := b.checkpoint(run).PendingQuestion; q == nil || q.QuestionID != "q1" {
		t.Fatalf("pending %+v", q)
	}
	chose(t, p.tool("ask_choice", colours(object{"questionId": "q2"}), p.inTurn(choose("3."))), "blue", "user")
	cp := b.checkpoint(run)
	if cp.PendingQuestion != nil || cp.Answered("q1") || !cp.Answered("q2") {
		t.Errorf("pending %+v, answered %+v", cp.PendingQuestion, cp.AnsweredQuestions)
	}
	chose(t, p.tool("ask_choice", colours(object{"questionId": "q1"}), p.inTurn(choose("1."))), "red", "user")
}

func TestTheLoopOfReviewsIsNoAnswerToTheQuestion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	result := p.tool("ask_choice", colours(object{"questionId": "q1", "trailing": "auto-refine-loop"}), p.inTurn(choose("Auto-refine loop")))
	chose(t, result, "Auto-refine loop", "user")
	for _, want := range []string{`"termination-condition"`, "1. Goal wait", "2. Until no finding of high severity", "3. 1 round", "4. 2 rounds", "5. 3 rounds", "autoComplete false"} {
		if !strings.Contains(result.Text, want) {
			t.Errorf("%q is missing from %q", want, result.Text)
		}
	}
	if cp := b.checkpoint(run); cp.PendingQuestion != nil || cp.Answered("q1") {
		t.Errorf("pending %+v, answered %+v", cp.PendingQuestion, cp.AnsweredQuestions)
	}
	if d := b.decisions(run); len(d) != 1 || d[0].Answer != "Auto-refine loop" || d[0].QuestionID != "" {
		t.Errorf("the ledger has %+v", d)
	}
	chose(t, p.tool("ask_choice", colours(object{"questionId": "q1"}), p.inTurn(choose("1."))), "red", "user")
}

func TestAnAnswerOnRecordIsGivenWithoutAskingAgain(t *testing.T) {
	t.Parallel()
	for name, record := range map[string]func(b *bundle, run store.RunDir) error{
		"in the checkpoint": func(b *bundle, run store.RunDir) error {
			if err := b.ask(run, "q1"); err != nil {
				return err
			}
			_, err := b.answer(run, "q1", "blue", "auto-complete")
			return err
		},
		"in the ledger alone, as after a crash": func(_ *bundle, run store.RunDir) error {
			_, err := run.AppendDecision(store.Decision{Question: "Which q1?", Answer: "blue", AnswerSource: "auto-complete", QuestionID: "q1"}, time.Now())
			return err
		},
	} {
		b := setup(t)
		p, run := b.atWork("s1")
		if err := record(b, run); err != nil {
			t.Fatal(err)
		}
		before := b.decisions(run)
		asked := colours(object{"questionId": "q1", "question": "Which q1?", "autoComplete": false})
		result := p.tool("ask_choice", asked, p.nobody)
		var details choiceDetails
		if err := json.Unmarshal(result.Details, &details); err != nil || details.Answer == nil || *details.Answer != "blue" || details.Source != "auto-complete" || !strings.Contains(result.Text, "answered before") {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if diff := cmp.Diff(before, b.decisions(run)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var input *supervisor.InputError
		if _, err := p.converse(supervisor.KindTool, "ask_choice", colours(object{"questionId": "q1"}), p.nobody); !errors.As(err, &input) || !strings.Contains(err.Error(), "another question") {
			t.Errorf("%s: another question with its id: %v", name, err)
		}
	}
}

func TestOneQuestionOfASessionIsOpenAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, _ := b.atWork("s1")
	first, err := b.system.Converse(t.Context(), p.Session, p.screen, supervisor.KindTool, "ask_choice", spelled(t, colours(object{"questionId": "q1"})))
	if err != nil || first.Dialog == nil {
		t.Fatal(first, err)
	}
	var input *supervisor.InputError
	if _, err := p.converse(supervisor.KindTool, "ask_choice", colours(nil), p.nobody); !errors.As(err, &input) {
		t.Errorf("a second one: %v", err)
	}
	other := b.pi("s2")
	other.tool("ask_choice", colours(nil), other.inTurn(dismiss))
	if err := b.system.EndConversation(t.Context(), first.Dialog.Conversation); err != nil {
		t.Fatal(err)
	}
	p.tool("ask_choice", colours(object{"questionId": "q2"}), p.inTurn(choose("1.")))
}

func TestWithNobodyToAskOnlyHarmlessQuestionsAnswerThemselves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	p.screen = supervisor.Screen{Mode: "print"}
	for _, more := range []object{{"autoComplete": false}, {"trailing": "auto-refine-loop"}, {"purpose": "execution"}, {"question": "May I push it?"}} {
		result := p.tool("ask_choice", colours(more), p.nobody)
		if !result.IsError || !strings.Contains(result.Text, "No UI available") {
			t.Errorf("%v: %+v", more, result)
		}
	}
	if n := len(b.decisions(run)); n != 0 {
		t.Errorf("%d decisions", n)
	}
	reply, err := p.converse(supervisor.KindTool, "ask_choice", colours(object{"questionId": "q1"}), p.nobody)
	if err != nil {
		t.Fatal(err)
	}
	chose(t, *reply.Result, "green", "auto-complete")
	if e := entries(reply, "pi-plans-autocomplete"); len(e) != 1 || e[0] != `{"runId":"`+run.ID+`","enabled":true}` {
		t.Errorf("entries %v", e)
	}
	cp := b.checkpoint(run)
	if d := b.decisions(run); len(d) != 1 || d[0].AnswerSource != "auto-complete" || !cp.Answered("q1") {
		t.Errorf("decisions %+v", d)
	}
	reply, err = p.converse(supervisor.KindTool, "ask_choice", colours(object{"autoComplete": false}), p.nobody)
	if e := entries(reply, "pi-plans-autocomplete"); err != nil || len(e) != 1 || e[0] != `{"runId":"`+run.ID+`","enabled":false,"reason":"no user interface"}` {
		t.Errorf("entries %v, %v", e, err)
	}
}

func TestAScreenThatIsTooSmallIsToldOnce(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	p.screen.Rows, p.screen.Cols = 10, 24
	reply, err := p.converse(supervisor.KindTool, "ask_choice", colours(nil), p.inTurn(choose("2.")))
	if err != nil {
		t.Fatal(err)
	}
	chose(t, *reply.Result, "green", "user")
	warnings := slices.DeleteFunc(reply.Actions, func(a supervisor.Action) bool { return a.Level != supervisor.LevelWarning })
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "too small") {
		t.Errorf("warned %+v", warnings)
	}
}

func TestAQuestionThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	for name, params := range map[string]any{
		"no question": colours(object{"question": " "}), "no options": object{"question": "?"}, "an empty label": object{"question": "?", "options": []object{{"label": " "}}},
		"a bad id": colours(object{"questionId": "a/b"}), "an unknown trailing": colours(object{"trailing": "other"}), "no object": "text", "a number": colours(object{"question": 7}),
	} {
		var input *supervisor.InputError
		if _, err := p.converse(supervisor.KindTool, "ask_choice", params, p.nobody); !errors.As(err, &input) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
