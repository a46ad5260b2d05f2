package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pilothouse/store"
	"pilothouse/supervisor"
)

var atRest = supervisor.Screen{Has: true, Mode: "tui", Idle: true}

// resumePlans begins /resume-plans in a workspace.
func (b *bundle) resumePlans(session supervisor.Session, screen supervisor.Screen) supervisor.Reply {
	b.t.Helper()
	reply, err := b.system.Converse(context.Background(), session, screen, supervisor.KindCommand, "resume-plans", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply
}

func (b *bundle) choose(session supervisor.Session, reply supervisor.Reply, answer supervisor.Answer) supervisor.Reply {
	b.t.Helper()
	if reply.Dialog == nil {
		b.t.Fatalf("there is no dialog: %+v", reply)
	}
	next, err := b.system.Answer(context.Background(), session.ID, reply.Dialog.Conversation, answer)
	if err != nil {
		b.t.Fatal(err)
	}
	return next
}

func index(n int) supervisor.Answer { return supervisor.Answer{Index: &n} }

// kickoffs are the messages that a reply sends to the agent.
func kickoffs(reply supervisor.Reply) []string {
	var texts []string
	for _, action := range reply.Actions {
		if action.Kind == supervisor.ActionUser {
			texts = append(texts, action.Text)
		}
	}
	return texts
}

// saysOnly checks that a reply ends the command with one notice and starts nothing.
func saysOnly(t *testing.T, reply supervisor.Reply, words string) {
	t.Helper()
	if reply.Dialog != nil || len(reply.Actions) != 1 || reply.Actions[0].Kind != supervisor.ActionNotify || !strings.Contains(reply.Actions[0].Text, words) {
		t.Errorf("reply is %+v, want one notice with %q", reply, words)
	}
}

func TestResumePlansHandsTheOnlyRunToTheAgentAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.recorded(1, "things", store.StatusPlanning)
	for _, mode := range []string{"tui", "rpc"} {
		reply := b.resumePlans(b.as("s"), supervisor.Screen{Has: true, Mode: mode, Idle: true})
		if texts := kickoffs(reply); len(texts) != 1 || !strings.HasPrefix(texts[0], "PI-PLANS RESUME") {
			t.Fatalf("%s: kickoffs are %q", mode, texts)
		}
		if entry := reply.Actions[0]; entry.CustomType != "pi-plans-run-start" || details(t, entry)["runId"] != dir.ID {
			t.Errorf("%s: the entry is %+v", mode, entry)
		}
		if owner := b.owner(dir.ID); owner != "s" {
			t.Errorf("%s: owner is %q", mode, owner)
		}
	}
	// What the session does without naming a run goes to this one.
	if _, err := b.system.Plans(context.Background(), b.as("s"), supervisor.PlansAction{
		Action: "record-checkpoint", Checkpoint: &supervisor.CheckpointParams{Transition: "plan-written", PlanPath: b.artifact(dir, "PLAN_v1.md", twoChecks)},
	}); err != nil || b.checkpoint(dir).Plan == nil {
		t.Errorf("%v, plan %+v", err, b.checkpoint(dir).Plan)
	}
}

func TestResumePlansNeedsAUserAndAnAgentAtRestAndARun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	saysOnly(t, b.resumePlans(b.as("s"), atRest), "No resumable run")
	b.recorded(1, "things", store.StatusPlanning)
	saysOnly(t, b.resumePlans(b.as("s"), supervisor.Screen{Mode: "print"}), "interactive")
	saysOnly(t, b.resumePlans(b.as("s"), supervisor.Screen{Has: true, Mode: "tui"}), "busy")
	outside := b.as("s")
	outside.Workdir = t.TempDir()
	saysOnly(t, b.resumePlans(outside, atRest), "No resumable run")
}

func TestResumePlansOffersTheRunsAndDoesNothingWhenDismissed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.recorded(1, "one", store.StatusPlanning), b.recorded(2, "two", store.StatusStopped)
	active := b.recorded(3, "three", store.StatusAbandoned)
	writeText(t, filepath.Join(active.Root.Dir, "active.json"), `{"run_id":"`+active.ID+`","run_dir":"","artifact_dir":""}`)
	reply := b.resumePlans(b.as("s"), atRest)
	if d := reply.Dialog; d == nil || d.Kind != supervisor.DialogSelect || len(d.Options) != 2 || !strings.HasPrefix(d.Options[0], second.ID) {
		t.Fatalf("the dialog is %+v", d)
	}
	saysOnly(t, b.resumePlans(b.as("s"), atRest), "Another /resume-plans is open")
	saysOnly(t, b.choose(b.as("s"), reply, supervisor.Answer{Cancelled: true}), "Cancelled")
	if _, state, err := first.Owner(); err != nil || state != store.OwnerNone {
		t.Errorf("owner is %s, %v", state, err)
	}
	reply = b.choose(b.as("s"), b.resumePlans(b.as("s"), atRest), index(1))
	if texts := kickoffs(reply); len(texts) != 1 || !strings.Contains(texts[0], first.ID) {
		t.Errorf("kickoffs are %q", texts)
	}
}

func TestResumePlansLeavesACorruptRunAndOneOfAnotherOwnerAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.recorded(1, "things", store.StatusPlanning)
	if _, err := b.system.Plans(context.Background(), b.as("first"), decide(dir.ID)); err != nil {
		t.Fatal(err)
	}
	saysOnly(t, b.resumePlans(b.as("s"), atRest), "actively owned")
	if owner := b.owner(dir.ID); owner != "first" {
		t.Errorf("owner is %q", owner)
	}
	path := b.corrupt(dir)
	saysOnly(t, b.resumePlans(b.as("s"), atRest), "corrupt")
	if text, err := os.ReadFile(path); err != nil || string(text) != `{"schema":1,` {
		t.Errorf("the checkpoint is %q now, %v", text, err)
	}
}

func TestResumePlansAsksBeforeARunMovesAndBeforeALegacyExecution(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.approvedHere()
	there := b.linked()
	for _, answer := range []supervisor.Answer{index(1), {Cancelled: true}} {
		reply := b.resumePlans(there, atRest)
		if d := reply.Dialog; d == nil || d.Kind != supervisor.DialogConfirm || !strings.Contains(d.Message, "belongs to the work tree") {
			t.Fatalf("the dialog is %+v", d)
		}
		saysOnly(t, b.choose(there, reply, answer), "Cancelled")
	}
	if cp := b.checkpoint(dir); cp.Migration != nil {
		t.Errorf("it moved: %+v", cp.Migration)
	}
	if texts := kickoffs(b.choose(there, b.resumePlans(there, atRest), index(0))); len(texts) != 1 {
		t.Errorf("kickoffs are %q", texts)
	}

	legacy := setup(t)
	legacy.legacy(legacy.recorded(1, "old", store.StatusExecuting))
	reply := legacy.resumePlans(legacy.as("s"), atRest)
	if d := reply.Dialog; d == nil || !strings.HasPrefix(d.Message, "Legacy execution run") {
		t.Fatalf("the dialog is %+v", d)
	}
	if texts := kickoffs(legacy.choose(legacy.as("s"), reply, index(0))); len(texts) != 1 || !strings.Contains(texts[0], "handoff again") {
		t.Errorf("kickoffs are %q", texts)
	}
}

func TestResumePlansLooksWhetherTheAgentIsStillAtRestAfterEachDialog(t *testing.T) {
	t.Parallel()
	busy := func(answer supervisor.Answer) supervisor.Answer {
		idle := false
		answer.Idle = &idle
		return answer
	}
	b := setup(t)
	dir, _ := b.approvedHere()
	there := b.linked()
	before := b.checkpoint(dir)
	saysOnly(t, b.choose(there, b.resumePlans(there, atRest), busy(index(0))), "The agent is busy")
	two, over := b.recorded(2, "more", store.StatusPlanning), b.recorded(3, "over", store.StatusAbandoned)
	writeText(t, filepath.Join(over.Root.Dir, "active.json"), `{"run_id":"`+over.ID+`","run_dir":"","artifact_dir":""}`)
	reply := b.resumePlans(there, atRest)
	at := slices.IndexFunc(reply.Dialog.Options, func(o string) bool { return strings.HasPrefix(o, dir.ID) })
	reply = b.choose(there, reply, index(at))
	saysOnly(t, b.choose(there, reply, busy(index(0))), "The agent is busy")
	saysOnly(t, b.choose(b.as("s"), b.resumePlans(b.as("s"), atRest), busy(index(0))), "The agent is busy")
	for _, run := range []store.RunDir{dir, two} {
		if _, state, err := run.Owner(); err != nil || state != store.OwnerNone {
			t.Errorf("owner is %s, %v", state, err)
		}
	}
	if after := b.checkpoint(dir); after.Revision != before.Revision {
		t.Errorf("the checkpoint has changed: %+v", after)
	}
}
