package execute_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// planned are the steps of a planner that asks one question and writes a plan.
func planned(then ...scriptedmodel.Step) (first, again []scriptedmodel.Step) {
	artifacts := "docs/pi-plans/" + time.Now().UTC().Format("2006-01-02") + "-a-batch"
	rest := append([]scriptedmodel.Step{
		{Tool: "ask_choice", Args: map[string]any{
			"question": "Which oven is it about?", "questionId": "oven", "autoComplete": false,
			"options": []map[string]any{{"label": "the old one"}, {"label": "the new one", "recommended": true}},
		}},
		{Tool: "write", Args: map[string]any{"path": artifacts + "/PLAN_v1.md", "content": planText}},
	}, then...)
	rest = append(rest, says("The plan is written and waits for its user."))
	start := scriptedmodel.Step{Tool: "plans", Args: map[string]any{
		"action": "start-run", "topic": "A batch", "skill": "plan-small", "requestText": "say how long a batch takes",
	}}
	return append([]scriptedmodel.Step{start}, rest...), rest
}

func planReport(t *testing.T, e piharness.Ended) supervisor.PlanResult {
	t.Helper()
	var r supervisor.PlanResult
	if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
		t.Fatalf("%v in:\n%s\nstderr:\n%s", err, e.Stdout, e.Stderr)
	}
	return r
}

// request is a file for plan-run whose planner follows a script.
func request(t *testing.T, script []scriptedmodel.Step, answers ...supervisor.PlanAnswer) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"request": "say how long a batch takes " + scriptedmodel.Script(script...), "skill": "plan-small", "model": "sim/plain", "answers": answers,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var theNew = supervisor.PlanAnswer{Question: "which OVEN", Answer: "the new"}

func TestAPlanIsMadeFromARequestAndItsAnswers(t *testing.T) {
	t.Parallel()
	first, _ := planned()
	s := newScene(t)
	s.Write("request.json", request(t, first, theNew))
	r := planReport(t, s.Must(0, "plan-run", "request.json", "--json"))
	if r.PlanSHA256 != s.Digest(relative(t, s.Dir, r.PlanPath)) || r.Question != nil || !strings.Contains(r.Text, "waits for its user") || r.Turns < 4 {
		t.Errorf("the report is %+v", r)
	}
	dir, run, cp := s.OnlyRun()
	if r.RunID != dir.ID || run.Status != store.StatusPlanning || run.Skill != "plan-small" || len(cp.AnsweredQuestions) != 1 || cp.AnsweredQuestions[0].Answer != "the new one" {
		t.Errorf("on record: %+v, %+v", run, cp)
	}
	if _, state, err := dir.Owner(); err != nil || state != store.OwnerNone {
		t.Errorf("owner %s, %v", state, err)
	}
	// What was made can be let be executed by a person, and by nobody else.
	if e := s.Must(3, "execute"); !strings.Contains(e.Stderr, "--approve "+r.PlanSHA256) {
		t.Errorf("execute said %q", e.Stderr)
	}
}

func TestAQuestionWithoutAnAnswerEndsThePlanningUntilItHasOne(t *testing.T) {
	t.Parallel()
	first, again := planned()
	s := newScene(t, when(`PI-PLANS RESUME`, again...))
	s.Write("request.json", request(t, first))
	e := s.Must(3, "plan-run", "request.json", "--json")
	r := planReport(t, e)
	if r.Question == nil || !strings.Contains(r.Question.Title, "Which oven") || len(r.Question.Options) < 2 || !strings.Contains(e.Stderr, "Which oven") {
		t.Errorf("the report is %+v, stderr %q", r, e.Stderr)
	}
	s.NoSurvivors()
	if _, _, cp := s.OnlyRun(); cp.PendingQuestion == nil || cp.PendingQuestion.QuestionID != "oven" {
		t.Errorf("pending is %+v", cp.PendingQuestion)
	}
	s.Write("request.json", request(t, first, theNew))
	r = planReport(t, s.Must(0, "plan-run", "request.json", "--resume", "--json"))
	if _, _, cp := s.OnlyRun(); r.PlanPath == "" || cp.PendingQuestion != nil || cp.AnsweredQuestions[0].Answer != "the new one" {
		t.Errorf("the report is %+v, the checkpoint %+v", r, cp)
	}
}

func TestAPlannerNeverLetsItsPlanBeExecuted(t *testing.T) {
	t.Parallel()
	first, _ := planned(scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}})
	s := newScene(t)
	s.Write("request.json", request(t, first, theNew, supervisor.PlanAnswer{Question: "let this plan", Answer: "yes"}))
	e := s.Must(3, "plan-run", "request.json")
	if !strings.Contains(e.Stdout, "to be decided by a person: Let this plan be executed?") || !strings.Contains(e.Stdout, "VC-002") {
		t.Errorf("it printed\n%s\n%s", e.Stdout, e.Stderr)
	}
	if _, run, cp := s.OnlyRun(); run.Status != store.StatusPlanning || cp.Execution != nil {
		t.Errorf("on record: %s, %+v", run.Status, cp.Execution)
	}
}

func TestARequestThatCannotBeReadStartsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for text, words := range map[string]string{
		`{"request": ""}`:                               "has no request",
		`{"request": "x", "skill": "plan-huge"}`:        "is none of planning",
		`{"request": "x", "aproved": true}`:             "unknown field",
		`{"request": "x", "answers": [{"answer":"y"}]}`: "answer 1 lacks",
		`{"request": "x", "model": "plain"}`:            "provider/model",
	} {
		s.Write("request.json", text)
		if e := s.Start("plan-run", "request.json").Wait(); e.Code != 2 || !strings.Contains(e.Stderr, words) {
			t.Errorf("%s: %d, %q; want %q", text, e.Code, e.Stderr, words)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir, ".git", "pi_plans")); err == nil {
		t.Error("something was begun")
	}
}

func relative(t *testing.T, dir, path string) string {
	t.Helper()
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}
