package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// terminal is a screen with a user who can be asked everything.
var terminal = supervisor.Screen{Has: true, Mode: "tui", Editor: true, Rows: 40, Cols: 120, Idle: true}

// pi is a Pi session at the other end of a system: it tells of hooks and lets a user
// answer dialogs.
type pi struct {
	t      *testing.T
	system *supervisor.System
	supervisor.Session
	screen supervisor.Screen
}

func (b *bundle) pi(id string) *pi {
	session := b.session
	session.ID = id
	return &pi{b.t, b.system, session, terminal}
}

// user answers a dialog and sees what was to be done before it.
type user func(d supervisor.Dialog, actions []supervisor.Action) supervisor.Answer

// nobody fails the test when a dialog comes.
func (p *pi) nobody(d supervisor.Dialog, _ []supervisor.Action) supervisor.Answer {
	p.t.Errorf("a dialog came: %+v", d)
	return supervisor.Answer{Cancelled: true}
}

// inTurn answers the dialogs of a conversation one after the other, and the performs
// with success.
func (p *pi) inTurn(answers ...func(d supervisor.Dialog) supervisor.Answer) user {
	p.t.Cleanup(func() {
		if len(answers) > 0 && !p.t.Failed() {
			p.t.Errorf("%d dialogs never came", len(answers))
		}
	})
	return func(d supervisor.Dialog, actions []supervisor.Action) supervisor.Answer {
		if d.Kind == supervisor.DialogPerform {
			return supervisor.Answer{}
		}
		if len(answers) == 0 {
			return p.nobody(d, actions)
		}
		next := answers[0]
		answers = answers[1:]
		return next(d)
	}
}

func choose(option string) func(supervisor.Dialog) supervisor.Answer {
	return func(d supervisor.Dialog) supervisor.Answer {
		index := slices.IndexFunc(d.Options, func(o string) bool { return strings.HasPrefix(o, option) })
		return supervisor.Answer{Step: d.Step, Index: &index} // -1 is refused
	}
}

func write(text string) func(supervisor.Dialog) supervisor.Answer {
	return func(d supervisor.Dialog) supervisor.Answer { return supervisor.Answer{Step: d.Step, Text: &text} }
}

func unchanged(d supervisor.Dialog) supervisor.Answer { return supervisor.Answer{Text: &d.Text} }
func dismiss(supervisor.Dialog) supervisor.Answer     { return supervisor.Answer{Cancelled: true} }

func confirm(yes bool) func(supervisor.Dialog) supervisor.Answer {
	index := 1
	if yes {
		index = 0
	}
	return func(supervisor.Dialog) supervisor.Answer { return supervisor.Answer{Index: &index} }
}

// converse leads a conversation to its end. The actions of all its replies are in the
// last.
func (p *pi) converse(kind, name string, args any, answer user) (supervisor.Reply, error) {
	p.t.Helper()
	reply, err := p.system.Converse(p.t.Context(), p.Session, p.screen, kind, name, spelled(p.t, args))
	var done []supervisor.Action
	for err == nil && reply.Dialog != nil {
		done = append(done, reply.Actions...)
		d := *reply.Dialog
		reply, err = p.system.Answer(p.t.Context(), p.ID, d.Conversation, answer(d, reply.Actions))
	}
	reply.Actions = append(done, reply.Actions...)
	return reply, err
}

func (p *pi) command(name, args string, answer user) supervisor.Reply {
	p.t.Helper()
	reply, err := p.converse(supervisor.KindCommand, name, args, answer)
	if err != nil {
		p.t.Fatalf("/%s %s: %v", name, args, err)
	}
	return reply
}

func (p *pi) tool(name string, params any, answer user) supervisor.ToolResult {
	p.t.Helper()
	reply, err := p.converse(supervisor.KindTool, name, params, answer)
	if err != nil {
		p.t.Fatalf("%s: %v", name, err)
	}
	if reply.Result == nil {
		p.t.Fatalf("%s ended without a result: %+v", name, reply)
	}
	return *reply.Result
}

func (p *pi) hook(name string, event any) supervisor.Reply {
	p.t.Helper()
	reply, err := p.system.Hook(p.t.Context(), p.Session, name, spelled(p.t, event))
	if err != nil {
		p.t.Fatalf("hook %s: %v", name, err)
	}
	return reply
}

type object = map[string]any

// calls is the reason why a tool is blocked, "" when it may run.
func (p *pi) calls(tool string, input object) string {
	p.t.Helper()
	reply := p.hook("tool_call", object{"toolName": tool, "toolCallId": "c1", "input": input})
	if reply.Block == nil {
		return ""
	}
	return reply.Block.Reason
}

func (p *pi) writes(path string) string { return p.calls("write", object{"path": path, "content": ""}) }
func (p *pi) runs(command string) string {
	return p.calls("bash", object{"command": command})
}

// planning tells whether plan mode holds, as its gate shows.
func (p *pi) planning() bool { return p.runs("touch x") != "" }

// startRun starts a run by the plans tool, as the extension does.
func (p *pi) startRun() store.Run { return p.startRunOf("Bake bread") }

// startRunOf does so with a topic; those of one topic share their artifacts.
func (p *pi) startRunOf(topic string) store.Run {
	p.t.Helper()
	value, err := p.system.Plans(p.t.Context(), p.Session, supervisor.PlansAction{
		Action: "start-run", Topic: topic, Skill: "plan-normal", RequestText: "bake bread",
	})
	if err != nil {
		p.t.Fatal(err)
	}
	result, ok := value.(supervisor.StartRunResult)
	if !ok {
		p.t.Fatalf("start-run answered with %T", value)
	}
	return result.Run
}

// setStatus sets a status as another program would.
func (p *pi) setStatus(run store.Run, status store.RunStatus) {
	p.t.Helper()
	dir, err := p.root().Run(run.RunID)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := dir.SetStatus(status, time.Now()); err != nil {
		p.t.Fatal(err)
	}
}

// wantsStatus has the agent set a status by the plans tool.
func (p *pi) wantsStatus(runID string, status store.RunStatus) error {
	_, err := p.system.Plans(p.t.Context(), p.Session, supervisor.PlansAction{Action: "set-status", RunID: runID, Status: string(status)})
	return err
}

func (p *pi) root() store.Root {
	p.t.Helper()
	root, err := store.Find(context.Background(), p.Workdir)
	if err != nil {
		p.t.Fatal(err)
	}
	return root
}

// kinds are the actions of a reply in short.
func kinds(reply supervisor.Reply) []string {
	var all []string
	for _, a := range reply.Actions {
		switch a.Kind {
		case supervisor.ActionNotify:
			all = append(all, "notify "+a.Level)
		case supervisor.ActionStatus:
			all = append(all, fmt.Sprintf("status %s=%s", a.Key, a.Text))
		case supervisor.ActionEntry:
			all = append(all, "entry "+a.CustomType)
		default:
			all = append(all, string(a.Kind))
		}
	}
	return all
}

// notices are what a reply tells the user.
func notices(reply supervisor.Reply) string {
	var all []string
	for _, a := range reply.Actions {
		if a.Kind == supervisor.ActionNotify {
			all = append(all, a.Text)
		}
	}
	return strings.Join(all, "\n")
}

func spelled(t *testing.T, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}

func inDir(dir string, parts ...string) string {
	return filepath.Join(append([]string{dir}, parts...)...)
}
