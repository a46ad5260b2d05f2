package extension_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// Several Pi sessions that plan in one repository, which all have one daemon.

// planRun is a run as its session learns of it.
type planRun struct{ id, dir string }

func (r planRun) plan() string { return r.dir + "/PLAN_v1.md" }

// begins starts a run of a topic and waits until the session is at rest.
func (p *session) begins(topic string) planRun {
	p.t.Helper()
	start := plans(map[string]any{"action": "start-run", "topic": topic, "skill": "plan-small", "requestText": "Bake " + topic + "."})
	p.prompt("Plan it.", start, scriptedmodel.Step{Text: "planning " + topic})
	end := p.toolEnd("plans")
	if end.at("isError").truth() {
		p.t.Fatalf("the run of %s does not start: %s", topic, end)
	}
	run := parse([]byte(end.at("result.content.0.text").text())).at("run")
	p.await("message_end", func(e value) bool {
		return strings.Contains(e.at("message.content").String(), `"planning `+topic+`"`)
	})
	p.settled()
	return planRun{run.at("run_id").text(), run.at("artifact_dir").text()}
}

// tries lets the model call tools one after the other and returns their ends.
func (p *session) tries(steps ...scriptedmodel.Step) []value {
	p.t.Helper()
	p.prompt("Do it.", append(steps, done)...)
	var ends []value
	for _, step := range steps {
		ends = append(ends, p.toolEnd(step.Tool))
	}
	p.settled()
	return ends
}

func writing(path, text string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": path, "content": text}}
}

// refused is why a session may not write a file, "" when it has written it.
func (p *session) refused(path string) string {
	p.t.Helper()
	end := p.tries(writing(path, "bread"))[0]
	if !end.at("isError").truth() {
		return ""
	}
	return end.at("result.content.0.text").text()
}

// plansIt writes the plan of a run; its revision is on record then.
func (p *session) plansIt(run planRun) {
	p.t.Helper()
	if end := p.tries(writing(run.plan(), planText))[0]; end.at("isError").truth() {
		p.t.Fatalf("the plan is not written: %s", end)
	}
}

// approves lets the plan of its run be executed; the agent says this then.
func (p *session) approves(says string) {
	p.t.Helper()
	p.prompt("Carry it out.", scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}}, scriptedmodel.Step{Text: says, LogMessages: true})
	p.reply(p.dialog("confirm"), true)
	if end := p.toolEnd("execute_plan"); end.at("isError").truth() {
		p.t.Fatalf("the approved plan is not carried out: %s", end)
	}
}

func (p *session) id() string {
	p.t.Helper()
	return p.ask(map[string]any{"type": "get_state"}).at("sessionId").text()
}

// runFile is a file of a run, empty when it is not there.
func (s *scene) runFile(run planRun, name string) value {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, ".git", "pi_plans", "runs", run.id, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		return value{}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		s.t.Fatal(err)
	}
	return value{v}
}

// ownedBy checks which session has a run, "" for none.
func (s *scene) ownedBy(run planRun, session string) {
	s.t.Helper()
	if got := s.runFile(run, "owner.json").at("sessionId").text(); got != session {
		s.t.Errorf("run %s is owned by %q, want %q", run.id, got, session)
	}
}

func TestTwoSessionsPlanTwoRunsSideBySide(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p, q := s.open(), s.open()
	bread, cake := p.begins("bread"), q.begins("cake") // the pointer of the workspace is at the second
	ask := scriptedmodel.Step{Tool: "ask_choice", Args: map[string]any{
		"question": "Which oven?", "questionId": "oven", "options": []map[string]any{{"label": "The old one"}},
	}}
	for _, one := range []struct {
		p          *session
		own, other planRun
	}{{p, bread, cake}, {q, cake, bread}} {
		s.ownedBy(one.own, one.p.id())
		one.p.plansIt(one.own)
		contains(t, one.p.refused(one.other.plan()), "read-only outside planning artifacts", one.own.id)
		contains(t, one.p.refused("bread.txt"), one.own.id)
		one.p.prompt("Ask.", ask, done)
		choice := one.p.dialog("select")
		one.p.reply(choice, choice.at("options.0").text())
		one.p.settled()
		cp := s.runFile(one.own, "checkpoint.json")
		if path, answered := cp.at("plan.path").text(), cp.at("answeredQuestions").each("questionId"); path != one.own.plan() || answered != "oven" {
			t.Errorf("run %s has the plan %q and the answers %q", one.own.id, path, answered)
		}
	}
	p.close()
	s.ownedBy(bread, "")
	s.ownedBy(cake, q.id())
	q.close()
}

func TestTheSecondSessionIsToldWhoHasARunAndGoesOnWhenThatIsGone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*session){"closed": (*session).close, "killed": (*session).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.confirm()
			p, q := s.open(), s.open()
			bread := p.begins("bread")
			p.plansIt(bread)
			first := p.id()
			q.command("/resume-plans")
			told := q.notice("was not resumed").at("message").text()
			contains(t, told, bread.id, "actively owned", first, "close that session")
			s.ownedBy(bread, first)
			if n := len(q.seen(func(e value) bool { return e.at("type").text() == "agent_start" })); n != 0 {
				t.Errorf("the agent of the second began %d times", n)
			}

			end(p)
			q.command("/resume-plans")
			q.notice("Resumed run " + bread.id)
			q.settled()
			s.ownedBy(bread, q.id())
			if reason := q.refused(bread.plan()); reason != "" {
				t.Errorf("the plan cannot be written by who goes on: %s", reason)
			}
			q.close()
		})
	}
}

func TestTheGuardOfOneSessionDoesNotHoldTheOther(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p, q, r := s.open(), s.open(), s.open()
	bread := p.begins("bread")
	p.plansIt(bread)
	// Until it has a run of its own, a session means the active one, of which it holds files
	// alone (spec: execution 5.7).
	contains(t, r.refused("bread.txt"), bread.id, "another session")
	if end := r.tries(scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": "touch other.txt"}})[0]; end.at("isError").truth() {
		t.Errorf("the shell of a session without a run is held: %s", end)
	}
	cake := q.begins("cake")
	p.approves("I begin.")
	p.paused() // it is woken up, gets nowhere, and is at rest then
	if reason := p.refused("bread.txt"); reason != "" {
		t.Errorf("the run of another session holds one that may write: %s", reason)
	}
	contains(t, q.refused("bread.txt"), cake.id)
	p.close()
	q.close()
	r.close()
}
