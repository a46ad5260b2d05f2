package supervisor_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// wakeID is the id of the wake in a reply, "" without one.
func wakeID(t *testing.T, reply supervisor.Reply) string {
	t.Helper()
	wakes := sent(reply, "pi-plans-goal-wait")
	if len(wakes) == 0 {
		return ""
	}
	var details struct {
		WakeID string `json:"wakeId"`
	}
	if err := json.Unmarshal(wakes[0].Message.Details, &details); err != nil || len(wakes) > 1 || details.WakeID == "" || !wakes[0].TriggerTurn || wakes[0].Message.Display {
		t.Fatalf("wakes %+v, %v", wakes, err)
	}
	return details.WakeID
}

func TestAnAgentAtRestIsWokenUpOnceWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"tui", "rpc"} {
		b := setup(t)
		p, _ := b.executing("s1", threeChecks)
		p.screen.Mode = mode
		first := p.rests("[DONE:VC-001]")
		id := wakeID(t, first)
		if id == "" || strings.Contains(sent(first, "pi-plans-goal-wait")[0].Message.Content, "- `VC-001`") {
			t.Fatalf("%s: %+v", mode, first.Actions)
		}
		if again := p.settles(nil); wakeID(t, again) != "" {
			t.Errorf("%s: woken up twice for one rest", mode)
		}
		if next := wakeID(t, p.rests("nothing new")); next == "" || next == id {
			t.Errorf("%s: the next wake is %q after %q", mode, next, id)
		}
	}
}

func TestNobodyIsWokenUpBehindTheBackOfTheUser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.executing("s1", threeChecks)
	for name, event := range map[string]object{
		"no user interface": {"hasUI": false}, "busy": {"idle": false}, "messages wait": {"pendingMessages": true},
	} {
		p.hook("agent_start", object{})
		p.says("on")
		if reply := p.settles(event); wakeID(t, reply) != "" {
			t.Errorf("%s: %+v", name, reply.Actions)
		}
	}
	p.hook("agent_start", object{})
	p.says("on")
	if _, err := p.system.Hook(t.Context(), p.Session, "session_before_compact", []byte(`{}`)); err != nil {
		t.Logf("the compaction is refused, which makes no difference here: %v", err)
	}
	if reply := p.settles(nil); wakeID(t, reply) != "" {
		t.Errorf("during a compaction: %+v", reply.Actions)
	}
	p.hook("session_compact_failed", object{"errorMessage": "no"})
	p.hook("agent_start", object{})
	for _, reason := range []string{"toolUse", "length", "other"} {
		p.hook("turn_end", object{"text": "on", "stopReason": reason})
		if reply := p.settles(nil); wakeID(t, reply) != "" {
			t.Errorf("%s: %+v", reason, reply.Actions)
		}
	}
	if wakeID(t, p.rests("waiting for the build")) == "" {
		t.Error("what does not count was counted")
	}
	if cp := b.checkpoint(run); cp.Execution.PausedReason != "" {
		t.Errorf("paused: %s", cp.Execution.PausedReason)
	}
}

func TestAnExecutionThatGetsNowhereIsPausedOnceAndItsUserGoesOn(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		wakes  int
		reason string
	}{"nothing": {2, "no progress in 3 rounds"}, "Waiting for the build": {5, "still waiting after 6 rounds"}} {
		b := setup(t)
		p, run := b.executing("s1", threeChecks)
		for i := range c.wakes {
			if reply := p.rests(text); wakeID(t, reply) == "" || warned(reply) != nil {
				t.Fatalf("%s: rest %d: %+v", text, i, reply.Actions)
			}
		}
		reply := p.rests(text)
		if w := warned(reply); wakeID(t, reply) != "" || len(w) != 1 || !strings.Contains(w[0], c.reason) || !strings.Contains(line(reply), "paused: "+c.reason) {
			t.Fatalf("%s: %+v", text, reply.Actions)
		}
		if got := b.checkpoint(run).Execution.PausedReason; got != c.reason || len(entries(reply, "pi-plans-exec")) != 1 {
			t.Errorf("%s: paused %q", text, got)
		}
		if reply := p.rests("[DONE:VC-001]"); wakeID(t, reply) != "" || warned(reply) != nil {
			t.Errorf("%s: paused, and then %+v", text, reply.Actions)
		}
		p.hook("input", object{"text": "go on", "source": "extension"})
		if got := b.checkpoint(run).Execution.PausedReason; got != c.reason {
			t.Errorf("%s: an extension ended the pause", text)
		}
		p.hook("input", object{"text": "go on", "source": "rpc"})
		if got := b.checkpoint(run).Execution.PausedReason; got != "" || wakeID(t, p.rests("on")) == "" {
			t.Errorf("%s: still paused: %q", text, got)
		}
	}
}

func TestAFailedOrInterruptedAgentIsNotWokenUp(t *testing.T) {
	t.Parallel()
	for reason, rest := range map[string]func(p *pi) supervisor.Reply{
		"agent failed": func(p *pi) supervisor.Reply {
			p.hook("turn_end", object{"stopReason": "error"})
			return p.settles(nil)
		},
		"agent interrupted": func(p *pi) supervisor.Reply {
			p.hook("turn_end", object{"stopReason": "aborted"})
			return p.settles(object{"aborted": true})
		},
		"the agent could not be woken up: no model": func(p *pi) supervisor.Reply {
			p.says("on")
			p.settles(nil)
			return p.settles(object{"wakeFailed": "no model"})
		},
	} {
		b := setup(t)
		p, run := b.executing("s1", threeChecks)
		p.hook("agent_start", object{})
		if w := warned(rest(p)); len(w) != 1 || !strings.Contains(w[0], reason) {
			t.Errorf("%s: told %v", reason, w)
		}
		if w := warned(rest(p)); w != nil {
			t.Errorf("%s: told again %v", reason, w)
		}
		if got := b.checkpoint(run).Execution.PausedReason; got != reason {
			t.Errorf("paused %q", got)
		}
		if reply := p.command("plans-execute", "", p.nobody); wakeID(t, reply) == "" || b.checkpoint(run).Execution.PausedReason != "" {
			t.Errorf("%s: /plans-execute does not go on: %+v", reason, reply.Actions)
		}
	}
}

func TestARestartKeepsHowOftenTheAgentWasWokenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	p, run := b.executing("s1", threeChecks)
	p.rests("nothing")
	old := wakeID(t, p.rests("nothing"))
	again := b.restarted(p)
	reply := again.hook("session_start", object{"reason": "resume"})
	if e := entries(reply, "pi-plans-exec"); len(e) != 1 || strings.Contains(e[0], old) || !strings.Contains(e[0], `"noProgress":2`) {
		t.Errorf("entries %v", e)
	}
	if w := warned(again.rests("nothing")); len(w) != 1 || !strings.Contains(w[0], "no progress in 3 rounds") {
		t.Errorf("told %v", w)
	}
	third := setup(t)
	third.session.Workdir = b.session.Workdir
	if err := again.system.EndSession(t.Context(), "s1"); err != nil {
		t.Fatal(err)
	}
	if reply := third.pi("s1").rests("nothing"); wakeID(t, reply) != "" || !strings.Contains(line(reply), "paused") {
		t.Errorf("the pause is forgotten: %+v", reply.Actions)
	}
	if cp := b.checkpoint(run); cp.Phase != store.PhaseExecuting {
		t.Error(cp.Phase)
	}
}

func TestAnIdleSessionShowsItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if reply := b.pi("s0").settles(nil); line(reply) != "-" {
		t.Errorf("without a run: %q", line(reply))
	}
	p, run := b.atWork("s1")
	for _, c := range []struct{ status, want string }{
		{"planning", "💬 plans: "}, {"accepted", "⌛ plans: "}, {"stopped", "⛔ plans: "}, {"abandoned", "🚫 plans: "}, {"done", "🎯 plans: "},
	} {
		if _, err := run.SetStatus(store.RunStatus(c.status), time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := line(p.settles(nil)); !strings.HasPrefix(got, c.want+run.ID) {
			t.Errorf("%s: %q", c.status, got)
		}
	}
	setStatus(t, p, run, "planning")
	b.planIn(run, 1, threeChecks)
	if got := line(p.hook("session_start", object{"reason": "startup"})); got != "📝 plans: "+run.ID {
		t.Errorf("with a plan: %q", got)
	}
}
