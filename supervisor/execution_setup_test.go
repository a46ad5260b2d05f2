package supervisor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// written is a session with a run whose plan, version 1, is on record.
func (b *bundle) written(id, text string) (*pi, store.RunDir, string) {
	b.t.Helper()
	p, run := b.atWork(id)
	path := b.planIn(run, 1, text)
	p.hook("tool_result", object{"toolName": "write", "input": object{"path": path}})
	return p, run, path
}

// executing is a session that carries out the approved plan.
func (b *bundle) executing(id, text string) (*pi, store.RunDir) {
	b.t.Helper()
	p, run, _ := b.written(id, text)
	p.execute(p.inTurn(confirm(true)))
	return p, run
}

// execute hands the plan off with the tool.
func (p *pi) execute(answer user) supervisor.Reply {
	p.t.Helper()
	reply, err := p.converse(supervisor.KindTool, "execute_plan", object{}, answer)
	if err != nil {
		p.t.Fatal(err)
	}
	return reply
}

// says is a message of the agent at its end.
func (p *pi) says(text string) supervisor.Reply {
	p.t.Helper()
	return p.hook("turn_end", object{"text": text, "stopReason": "stop", "hasUI": p.screen.Has})
}

// rests is the agent beginning to work, a message of it, and its rest.
func (p *pi) rests(text string) supervisor.Reply {
	p.t.Helper()
	p.hook("agent_start", object{})
	p.says(text)
	return p.settles(nil)
}

// settles is the agent at rest.
func (p *pi) settles(more object) supervisor.Reply {
	p.t.Helper()
	event := object{"idle": true, "hasUI": p.screen.Has}
	for key, value := range more {
		event[key] = value
	}
	return p.hook("agent_settled", event)
}

// sent are the messages of a type in a reply.
func sent(reply supervisor.Reply, customType string) []supervisor.Action {
	var actions []supervisor.Action
	for _, a := range reply.Actions {
		if a.Kind == supervisor.ActionSend && a.Message.CustomType == customType {
			actions = append(actions, a)
		}
	}
	return actions
}

// line is the status line that a reply sets, "-" when it sets none.
func line(reply supervisor.Reply) string {
	shown := "-"
	for _, a := range reply.Actions {
		if a.Kind == supervisor.ActionStatus && a.Key == "pi-plans" {
			shown = a.Text
		}
	}
	return shown
}

// warned are the warnings and errors that a reply tells.
func warned(reply supervisor.Reply) []string {
	var texts []string
	for _, a := range reply.Actions {
		if a.Kind == supervisor.ActionNotify && a.Level != supervisor.LevelInfo {
			texts = append(texts, a.Text)
		}
	}
	return texts
}

// context is what the agent is told before it begins, "" for nothing about an execution.
func (p *pi) context() string {
	p.t.Helper()
	for _, m := range p.hook("before_agent_start", object{"prompt": "go on"}).Messages {
		if m.CustomType == "pi-plans-exec-context" {
			if m.Display {
				p.t.Error("the context is shown to the user")
			}
			return m.Content
		}
	}
	return ""
}

// restarted is the session at another daemon, after the one before was closed.
func (b *bundle) restarted(p *pi) *pi {
	b.t.Helper()
	if err := b.system.EndSession(b.t.Context(), p.ID); err != nil {
		b.t.Fatal(err)
	}
	next := setup(b.t)
	next.session.Workdir = p.Workdir
	return next.pi(p.ID)
}

func runStatus(t *testing.T, run store.RunDir) store.RunStatus {
	t.Helper()
	record, err := run.Load()
	if err != nil {
		t.Fatal(err)
	}
	return record.Status
}

// handedOff are the details of a result of execute_plan.
func handedOff(t *testing.T, reply supervisor.Reply) (d struct {
	Status    string `json:"status"`
	PlanPath  string `json:"planPath"`
	ItemCount int    `json:"itemCount"`
	Message   string `json:"message"`
}) {
	t.Helper()
	if reply.Result == nil {
		t.Fatalf("no result in %+v", reply)
	}
	if err := json.Unmarshal(reply.Result.Details, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Clean(path), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
