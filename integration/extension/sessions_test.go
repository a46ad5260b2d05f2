package extension_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
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
	p.Prompt("Plan it.", start, scriptedmodel.Step{Text: "planning " + topic})
	end := p.ToolEnd("plans")
	if end.At("isError").Truth() {
		p.t.Fatalf("the run of %s does not start: %s", topic, end)
	}
	run := piharness.Parse([]byte(end.At("result.content.0.text").Text())).At("run")
	p.Await("message_end", func(e piharness.Value) bool {
		return strings.Contains(e.At("message.content").String(), `"planning `+topic+`"`)
	})
	p.Settled()
	return planRun{run.At("run_id").Text(), run.At("artifact_dir").Text()}
}

// tries lets the model call tools one after the other and returns their ends.
func (p *session) tries(steps ...scriptedmodel.Step) []piharness.Value {
	p.t.Helper()
	p.Prompt("Do it.", append(steps, done)...)
	var ends []piharness.Value
	for _, step := range steps {
		ends = append(ends, p.ToolEnd(step.Tool))
	}
	p.Settled()
	return ends
}

func writing(path, text string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": path, "content": text}}
}

// refused is why a session may not write a file, "" when it has written it.
func (p *session) refused(path string) string {
	p.t.Helper()
	end := p.tries(writing(path, "bread"))[0]
	if !end.At("isError").Truth() {
		return ""
	}
	return end.At("result.content.0.text").Text()
}

// plansIt writes the plan of a run; its revision is on record then.
func (p *session) plansIt(run planRun) {
	p.t.Helper()
	if end := p.tries(writing(run.plan(), planText))[0]; end.At("isError").Truth() {
		p.t.Fatalf("the plan is not written: %s", end)
	}
}

// approves lets the plan of its run be executed; the agent says this then.
func (p *session) approves(says string) {
	p.t.Helper()
	p.Prompt("Carry it out.", scriptedmodel.Step{Tool: "execute_plan", Args: map[string]any{}}, scriptedmodel.Step{Text: says, LogMessages: true})
	p.Reply(p.Dialog("confirm"), true)
	if end := p.ToolEnd("execute_plan"); end.At("isError").Truth() {
		p.t.Fatalf("the approved plan is not carried out: %s", end)
	}
}

func (p *session) id() string {
	p.t.Helper()
	return p.Ask(map[string]any{"type": "get_state"}).At("sessionId").Text()
}

// runFile is a file of a run, empty when it is not there.
func (s *scene) runFile(run planRun, name string) piharness.Value {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, ".git", "pi_plans", "runs", run.id, filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		return piharness.Value{}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	v := piharness.Parse(data)
	if v.Empty() {
		s.t.Fatalf("%s of run %s is no JSON: %q", name, run.id, data)
	}
	return v
}

// ownedBy checks which session has a run, "" for none.
func (s *scene) ownedBy(run planRun, session string) {
	s.t.Helper()
	if got := s.runFile(run, "owner.json").At("sessionId").Text(); got != session {
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
		one.p.Prompt("Ask.", ask, done)
		choice := one.p.Dialog("select")
		one.p.Reply(choice, choice.At("options.0").Text())
		one.p.Settled()
		cp := s.runFile(one.own, "checkpoint.json")
		if path, answered := cp.At("plan.path").Text(), cp.At("answeredQuestions").Each("questionId"); path != one.own.plan() || answered != "oven" {
			t.Errorf("run %s has the plan %q and the answers %q", one.own.id, path, answered)
		}
	}
	p.Close()
	s.ownedBy(bread, "")
	s.ownedBy(cake, q.id())
	q.Close()
}

func TestTheSecondSessionIsToldWhoHasARunAndGoesOnWhenThatIsGone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*session){"closed": (*session).Close, "killed": (*session).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.confirm()
			p, q := s.open(), s.open()
			bread := p.begins("bread")
			p.plansIt(bread)
			first := p.id()
			q.Prompt("/resume-plans")
			told := q.Notice("was not resumed").At("message").Text()
			contains(t, told, bread.id, "actively owned", first, "close that session")
			s.ownedBy(bread, first)
			if n := len(q.Seen(func(e piharness.Value) bool { return e.At("type").Text() == "agent_start" })); n != 0 {
				t.Errorf("the agent of the second began %d times", n)
			}

			end(p)
			q.Prompt("/resume-plans")
			q.Notice("Resumed run " + bread.id)
			q.Settled()
			s.ownedBy(bread, q.id())
			if reason := q.refused(bread.plan()); reason != "" {
				t.Errorf("the plan cannot be written by who goes on: %s", reason)
			}
			q.Close()
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
	if end := r.tries(scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": "touch other.txt"}})[0]; end.At("isError").Truth() {
		t.Errorf("the shell of a session without a run is held: %s", end)
	}
	cake := q.begins("cake")
	p.approves("I begin.")
	p.paused() // it is woken up, gets nowhere, and is at rest then
	if reason := p.refused("bread.txt"); reason != "" {
		t.Errorf("the run of another session holds one that may write: %s", reason)
	}
	contains(t, q.refused("bread.txt"), cake.id)
	p.Close()
	q.Close()
	r.Close()
}
