package supervisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// automatic tells whether a harmless question of the session answers itself.
func (p *pi) automatic() bool {
	p.t.Helper()
	asked := false
	p.tool("ask_choice", colours(nil), func(d supervisor.Dialog, _ []supervisor.Action) supervisor.Answer {
		asked = true
		return choose("1.")(d)
	})
	return !asked
}

// autoComplete switches it on, as a user does.
func (p *pi) autoComplete() supervisor.Reply {
	p.t.Helper()
	reply, err := p.converse(supervisor.KindTool, "ask_choice", colours(nil), p.inTurn(choose("Auto-complete")))
	if err != nil {
		p.t.Fatal(err)
	}
	chose(p.t, *reply.Result, "green", "auto-complete")
	return reply
}

func setStatus(t *testing.T, p *pi, run store.RunDir, status string) {
	t.Helper()
	if _, err := p.system.Plans(t.Context(), p.Session, supervisor.PlansAction{Action: "set-status", RunID: run.ID, Status: status}); err != nil {
		t.Fatal(err)
	}
}

func TestAutoCompleteAnswersForItsSessionWhileTheRunIsPlanned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	if p.automatic() {
		t.Fatal("a question answered itself")
	}
	reply := p.autoComplete()
	if e := entries(reply, "pi-plans-autocomplete"); len(e) != 1 || e[0] != `{"runId":"`+run.ID+`","enabled":true}` {
		t.Errorf("entries %v", e)
	}
	if !p.automatic() {
		t.Error("it is not on")
	}
	if result := p.tool("ask_choice", colours(object{"purpose": "deployment"}), p.inTurn(choose("1."))); result.IsError {
		t.Error(result)
	}
	if b.pi("s2").automatic() {
		t.Error("it is on in another session")
	}
	setStatus(t, p, run, "accepted")
	if p.automatic() {
		t.Error("it is on after planning")
	}
	setStatus(t, p, run, "planning")
	if !p.automatic() {
		t.Error("it did not come back with planning")
	}
}

func TestAutoCompleteIsNotSwitchedOnForWhatIsNotPlanned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	alone := b.pi("s0")
	if e := entries(alone.autoComplete(), "pi-plans-autocomplete"); e != nil || alone.automatic() {
		t.Errorf("without a run: %v", e)
	}
	p, run := b.atWork("s1")
	setStatus(t, p, run, "accepted")
	if e := entries(p.autoComplete(), "pi-plans-autocomplete"); e != nil {
		t.Errorf("for an accepted run: %v", e)
	}
}

func TestAutoCompleteOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, _ := b.atWork("s1")
	p.autoComplete()
	next := setup(t)
	next.session.Workdir = p.Workdir
	if again := next.pi("s2"); again.automatic() {
		t.Error("it is on in another session")
	}
	if err := b.system.EndSession(t.Context(), "s1"); err != nil { // frees the run
		t.Fatal(err)
	}
	if again := next.pi("s1"); !again.automatic() {
		t.Error("it is off after the restart")
	}
}

func TestWhatSwitchesAutoCompleteOff(t *testing.T) {
	t.Parallel()
	for reason, off := range map[string]func(p *pi) supervisor.Reply{
		"stopped by the user": func(p *pi) supervisor.Reply { return p.command("plans-autocomplete-stop", "", p.nobody) },
		"question cancelled": func(p *pi) supervisor.Reply {
			reply, err := p.converse(supervisor.KindTool, "ask_choice", colours(object{"autoComplete": false}), p.inTurn(dismiss))
			if err != nil {
				p.t.Fatal(err)
			}
			return reply
		},
		"the plan is revised": func(p *pi) supervisor.Reply { return p.command("update-plan", "", p.nobody) },
		"run stopped":         func(p *pi) supervisor.Reply { return p.command("plans-stop", "", p.inTurn(confirm(true))) },
		"handed off for execution": func(p *pi) supervisor.Reply {
			return p.command("plans-execute", "", p.inTurn(confirm(false)))
		},
	} {
		b := setup(t)
		p, run := b.atWork("s1")
		b.planIn(run, 1, threeChecks)
		p.autoComplete()
		if e := entries(off(p), "pi-plans-autocomplete"); len(e) != 1 || e[0] != `{"runId":"`+run.ID+`","enabled":false,"reason":"`+reason+`"}` {
			t.Errorf("%s: entries %v", reason, e)
		}
		setStatus(t, p, run, "planning")
		if p.automatic() {
			t.Errorf("%s: it is still on", reason)
		}
		if reply := p.command("plans-autocomplete-stop", "", p.nobody); entries(reply, "pi-plans-autocomplete") != nil {
			t.Errorf("%s: switched off twice", reason)
		}
	}
}

// threeChecks is a plan with three checks and two items.
const threeChecks = "# A plan\n\n## Implementation Items\n\n- `I-1`: Write it.\n- `I-2`: Test it.\n\n## Verifier Checklist\n\n" +
	"- [ ] `VC-001` covers `I-1`; it builds\n- [ ] `VC-002` covers `I-1`, `I-2`; it works\n- [ ] `VC-003` covers `I-2`; it is fast\n"

// planIn writes a version of the plan of a run.
func (b *bundle) planIn(run store.RunDir, version int, text string) string {
	b.t.Helper()
	record, err := run.Load()
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(record.ArtifactDir, "PLAN_v"+string(rune('0'+version))+".md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// followUps are what a turn makes the user say.
func followUps(reply supervisor.Reply) []supervisor.Action {
	var actions []supervisor.Action
	for _, a := range reply.Actions {
		if a.Kind == supervisor.ActionUser {
			actions = append(actions, a)
		}
	}
	return actions
}

func TestAnAgentIsToldToGoOnAfterATurnThatAskedNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.atWork("s1")
	calls, stops := object{"stopReason": "toolUse"}, object{"stopReason": "stop"}
	if f := followUps(p.hook("turn_end", calls)); f != nil {
		t.Errorf("after a turn without questions: %v", f)
	}
	p.autoComplete()
	p.automatic()
	f := followUps(p.hook("turn_end", calls))
	if len(f) != 1 || f[0].DeliverAs != "followUp" || !strings.Contains(f[0].Text, "Go on planning") {
		t.Fatalf("got %+v", f)
	}
	p.automatic()
	if f := followUps(p.hook("turn_end", calls)); f != nil {
		t.Errorf("told twice before it came to it: %v", f)
	}
	if f := followUps(p.hook("turn_end", stops)); f != nil {
		t.Errorf("after a turn without questions: %v", f)
	}
	p.automatic()
	if f := followUps(p.hook("turn_end", calls)); len(f) != 1 {
		t.Errorf("the next time: %v", f)
	}
	p.hook("agent_settled", object{"idle": true, "hasUI": true})

	p.automatic()
	p.tool("ask_choice", colours(object{"autoComplete": false}), p.inTurn(choose("1.")))
	if f := followUps(p.hook("turn_end", calls)); f != nil {
		t.Errorf("after a turn with an answer of the user: %v", f)
	}
	p.automatic()
	path := b.planIn(run, 1, threeChecks)
	p.hook("tool_result", object{"toolName": "write", "input": object{"path": path}})
	if f := followUps(p.hook("turn_end", calls)); f != nil {
		t.Errorf("after a turn that wrote the plan: %v", f)
	}
}
