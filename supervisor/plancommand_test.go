package supervisor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor"
)

func TestPlanEntersAndLeavesWithOneNoticePerTransition(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	if p.planning() {
		t.Fatal("a session begins in plan mode")
	}
	on, off := "status pilothouse-plan=plan mode", "status pilothouse-plan="
	for _, step := range []struct {
		args   string
		active bool
		want   []string
	}{
		{"", true, []string{on, "notify info"}},
		{" ON ", true, []string{on, "notify info"}}, // it says that it is on already
		{"off", false, []string{off, "notify info"}},
		{"OFF", false, []string{off, "notify info"}},
		{"On", true, []string{on, "notify info"}},
		{"\toff\n", false, []string{off, "notify info"}},
	} {
		reply := p.command("plan", step.args, p.nobody)
		if diff := cmp.Diff(step.want, kinds(reply)); diff != "" {
			t.Errorf("/plan %q: %s", step.args, diff)
		}
		if p.planning() != step.active {
			t.Errorf("after /plan %q plan mode holds: %v", step.args, !step.active)
		}
	}
	says(t, notices(p.command("plan", "on", p.nobody)), "is on", "/plan off")
	says(t, notices(p.command("plan", "on", p.nobody)), "on already")
	says(t, notices(p.command("plan", "off", p.nobody)), "is off")
	says(t, notices(p.command("plan", "off", p.nobody)), "off already")
}

func TestPlanWithARequestSubmitsItUnderPlanMode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		idle      bool
		deliverAs string
	}{
		"to an agent at rest": {true, ""},
		"to a busy agent":     {false, supervisor.DeliverSteer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			p.screen.Idle = test.idle
			var submitted []supervisor.Action
			reply := p.command("plan", " continue the migration plan ", func(d supervisor.Dialog, actions []supervisor.Action) supervisor.Answer {
				if d.Kind != supervisor.DialogPerform {
					t.Errorf("the user was asked: %+v", d)
				}
				if !p.planning() {
					t.Error("the request is submitted before the guard holds")
				}
				submitted = append(submitted, actions...)
				return supervisor.Answer{}
			})
			want := []supervisor.Action{{Kind: supervisor.ActionUser, Text: " continue the migration plan ", DeliverAs: test.deliverAs}}
			if diff := cmp.Diff(want, submitted); diff != "" {
				t.Errorf("submitted: %s", diff)
			}
			if diff := cmp.Diff([]string{"user", "status pilothouse-plan=plan mode", "notify info"}, kinds(reply)); diff != "" {
				t.Error(diff)
			}
			if !p.planning() {
				t.Error("plan mode does not hold")
			}
		})
	}
}

func TestARequestThatIsNotSubmittedRestoresTheStateBefore(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"off": false, "on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t).pi("s1")
			if before {
				p.command("plan", "", p.nobody)
			}
			reply := p.command("plan", "go on", func(supervisor.Dialog, []supervisor.Action) supervisor.Answer {
				return supervisor.Answer{Failed: "the agent is gone"}
			})
			says(t, notices(reply), "not submitted", "the agent is gone", "Plan mode is "+name)
			if p.planning() != before {
				t.Errorf("plan mode holds: %v, before it was %v", !before, before)
			}
			if diff := cmp.Diff("notify error", kinds(reply)[len(kinds(reply))-1]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFailedRequestDoesNotUndoWhatTheUserDecidedSince(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	reply := p.command("plan", "go on", func(supervisor.Dialog, []supervisor.Action) supervisor.Answer {
		p.command("plan", "off", p.nobody)
		p.command("plan", "on", p.nobody)
		return supervisor.Answer{Failed: "busy"}
	})
	says(t, notices(reply), "Plan mode is on")
	if !p.planning() {
		t.Error("the failure took back what the user had decided after it")
	}
}

func TestARequestOfUnknownFateLeavesPlanModeOn(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	_, err := p.converse(supervisor.KindCommand, "plan", "go on", func(d supervisor.Dialog, _ []supervisor.Action) supervisor.Answer {
		if err := p.system.EndConversation(t.Context(), d.Conversation); err != nil {
			t.Error(err)
		}
		return supervisor.Answer{}
	})
	if !isOver(err) {
		t.Errorf("the conversation ended with %v", err)
	}
	if !p.planning() {
		t.Error("plan mode was left although the request may be on its way")
	}
}

func TestPlanModeIsThatOfOneSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, other := b.pi("s1"), b.pi("s2")
	one.command("plan", "", one.nobody)
	if !one.planning() || other.planning() {
		t.Errorf("s1 plans: %v, s2: %v", one.planning(), other.planning())
	}
}
