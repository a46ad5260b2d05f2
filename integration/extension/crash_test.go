package extension_test

import (
	"os"
	"path/filepath"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// onceStalled is a reviewer that says nothing more the first time, and answers the next.
var onceStalled = scriptedmodel.Step{Text: "looking", Stall: 1, Times: 1, Then: &scriptedmodel.Step{Text: reviewText}}

func TestARoundWhoseDaemonWasKilledIsToldAndResumes(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers(onceStalled))
	s.confirm("reviewer")
	p := s.open()
	p.Prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), done)
	s.Await(func(m scriptedmodel.Stats) bool { return m.Open == 3 })
	round := s.Ask("/v1/calls").At("calls.0.roundId").Text()
	s.KillDaemon()

	end := p.ToolEnd("refine")
	if !end.At("isError").Truth() {
		t.Errorf("the round of a killed daemon is no error: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), round, "what was stored is safe")
	p.Settled()

	p.Prompt("Go on.", refine(map[string]any{"resumeRoundId": round}), done)
	end = p.ToolEnd("refine")
	if lanes := end.At("result.details.lanes").Each("status"); lanes != "complete complete complete" {
		t.Errorf("the resumed round: %s", end)
	}
	p.Settled()
	p.Close()
}

func TestARoundOutlivesTheSocketOfItsDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p, finish := s.reviewing()
	aside := s.Socket() + ".aside"
	if err := os.Rename(s.Socket(), aside); err != nil {
		t.Fatal(err)
	}
	finish()
	end := p.ToolEnd("refine")
	if lanes := end.At("result.details.lanes").Each("status"); lanes != "complete complete complete" {
		t.Errorf("the round: %s", end)
	}
	p.Settled()
	if err := os.Rename(aside, s.Socket()); err != nil { // so that the daemon can be ended
		t.Fatal(err)
	}
	p.Close()
}

func TestAKilledSessionGetsItsResultWhenItIsOpenedAgain(t *testing.T) {
	t.Parallel()
	for name, atWork := range map[string]bool{"the round has ended": false, "the round is at work": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			p, finish := s.reviewing("--session-dir", filepath.Join(s.AgentDir, "kept"))
			p.Kill()
			if !atWork {
				finish()
				s.Eventually("the round has ended", func() bool { return s.Ask("/v1/calls").At("calls.0.state").Text() == "finished" })
			}

			p = s.open("--session-dir", filepath.Join(s.AgentDir, "kept"), "--continue")
			if atWork {
				p.Notice("still at work")
				finish()
			}
			p.receives(s)
			p.Prompt("What did they say?", scriptedmodel.Step{Text: "nothing", LogMessages: true})
			p.Settled()
			contains(t, s.Heard(), "was under way when this session was interrupted")
			p.Close()
		})
	}
}

func TestAReviewWhoseDaemonWasKilledKeepsPlanModeOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning()
	p.Prompt("Plan it.", submit, done)
	shown := p.Dialog("editor")
	s.KillDaemon()
	p.Reply(shown, shown.At("prefill").Text())
	end := p.ToolEnd("exit_plan_mode")
	if !end.At("isError").Truth() {
		t.Errorf("a lost review approves: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), "there is no conversation")
	p.Settled()
	if p.writes(s) {
		t.Error("plan mode was forgotten with the daemon")
	}
	p.Close()
}

func TestASessionInPlanModeIsHeldWhileThereIsNoDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning()
	s.must("serve", "--stop")
	if err := os.WriteFile(s.Socket(), nil, 0o600); err != nil { // so that none can be started
		t.Fatal(err)
	}
	p.Prompt("Write it.", writeFile, done)
	end := p.ToolEnd("write")
	if !end.At("isError").Truth() {
		t.Error("a file was written in plan mode without the daemon")
	}
	contains(t, end.At("result.content.0.text").Text(), "this session is in plan mode", "serve --detach")
	p.Settled()
	p.Prompt("Read it.", scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "README.md"}}, done)
	if end := p.ToolEnd("read"); end.At("isError").Truth() {
		t.Errorf("reading is refused: %s", end)
	}
	p.Settled()
	p.Ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.Dir, "bread.txt")); err == nil {
		t.Error("a command of the user ran in plan mode without the daemon")
	}

	if err := os.Remove(s.Socket()); err != nil {
		t.Fatal(err)
	}
	s.must("serve", "--detach")
	p.Prompt("Hello.", scriptedmodel.Step{Text: "hello"})
	p.Notice("Plan mode is still on") // the new daemon has been told of the session
	p.Settled()
	if p.writes(s) {
		t.Error("plan mode was forgotten with the daemon")
	}
	p.leavesPlanMode(s)
	p.Close()
}

func TestASessionThatNeverPlannedNeedsNoDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.Mkdir(filepath.Dir(s.Socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Socket(), nil, 0o600); err != nil { // so that none can be started
		t.Fatal(err)
	}
	p := s.open()
	contains(t, p.Notice("the pilothouse daemon cannot be reached").String(), "is there and no socket")
	if !p.writes(s) {
		t.Error("a session that has nothing to do with planning cannot write")
	}
	p.Close()
	if err := os.Remove(s.Socket()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatTheAgentReportsWhileNoDaemonHearsItCountsLater(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm()
	p := s.open()
	bread := p.executes("bread")
	s.must("serve", "--stop")
	if err := os.WriteFile(s.Socket(), nil, 0o600); err != nil { // so that none can be started
		t.Fatal(err)
	}
	p.Prompt("Eat one.", scriptedmodel.Step{Text: "It is good. [DONE:VC-002]"})
	p.Settled()
	if cp := s.runFile(bread, "checkpoint.json"); len(cp.At("execution.doneVcIds").List()) != 1 {
		t.Fatalf("a daemon has heard of it: %s", cp)
	}
	if err := os.Remove(s.Socket()); err != nil {
		t.Fatal(err)
	}
	s.must("serve", "--detach")
	p.Prompt("Hello.", scriptedmodel.Step{Text: "hello"}, scriptedmodel.Step{Text: "hello again"})
	p.Await("message_end", func(e piharness.Value) bool { return e.At("message.customType").Text() == "pi-plans-complete" })
	p.Settled()
	cp := s.runFile(bread, "checkpoint.json")
	if cp.At("phase").Text() != "implementation-review" || len(cp.At("execution.doneVcIds").List()) != 2 {
		t.Errorf("the checkpoint is %s", cp)
	}
	contains(t, s.runFile(bread, "pilothouse/workflow.json").At("execution.evidence.VC-002").Text(), "It is good.")
	p.Close()
}
