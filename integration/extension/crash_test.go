package extension_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// killDaemon ends the daemon as a crash would.
func (s *scene) killDaemon() {
	s.t.Helper()
	pid := int(s.ask("/v1/health").at("pid").number())
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the daemon is gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

// onceStalled is a reviewer that says nothing more the first time, and answers the next.
var onceStalled = scriptedmodel.Step{Text: "looking", Stall: 1, Times: 1, Then: &scriptedmodel.Step{Text: reviewText}}

func TestARoundWhoseDaemonWasKilledIsToldAndResumes(t *testing.T) {
	t.Parallel()
	s := newScene(t, reviewers(onceStalled))
	s.confirm("reviewer")
	p := s.open()
	p.prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), done)
	s.await(func(m scriptedmodel.Stats) bool { return m.Open == 3 })
	round := s.ask("/v1/calls").at("calls.0.roundId").text()
	s.killDaemon()

	end := p.toolEnd("refine")
	if !end.at("isError").truth() {
		t.Errorf("the round of a killed daemon is no error: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), round, "what was stored is safe")
	p.settled()

	p.prompt("Go on.", refine(map[string]any{"resumeRoundId": round}), done)
	end = p.toolEnd("refine")
	if lanes := end.at("result.details.lanes").each("status"); lanes != "complete complete complete" {
		t.Errorf("the resumed round: %s", end)
	}
	p.settled()
	p.close()
}

func TestARoundOutlivesTheSocketOfItsDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm("reviewer")
	finish := s.gated()
	p := s.open()
	p.prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), done)
	p.await("tool_execution_update")
	s.responding(3)
	aside := s.socket() + ".aside"
	if err := os.Rename(s.socket(), aside); err != nil {
		t.Fatal(err)
	}
	finish()
	end := p.toolEnd("refine")
	if lanes := end.at("result.details.lanes").each("status"); lanes != "complete complete complete" {
		t.Errorf("the round: %s", end)
	}
	p.settled()
	if err := os.Rename(aside, s.socket()); err != nil { // so that the daemon can be ended
		t.Fatal(err)
	}
	p.close()
}

func TestAKilledSessionGetsItsResultWhenItIsOpenedAgain(t *testing.T) {
	t.Parallel()
	for name, atWork := range map[string]bool{"the round has ended": false, "the round is at work": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.confirm("reviewer")
			finish := s.gated()
			p := s.open("--session-dir", filepath.Join(s.agentDir, "kept"))
			p.prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}))
			p.await("tool_execution_update")
			s.responding(3)
			p.kill()
			if !atWork {
				finish()
				s.eventually("the round has ended", func() bool { return s.ask("/v1/calls").at("calls.0.state").text() == "finished" })
			}

			p = s.open("--session-dir", filepath.Join(s.agentDir, "kept"), "--continue")
			if atWork {
				p.notice("still at work")
				finish()
			}
			arrived := p.await("message_end", func(e value) bool { return e.at("message.customType").text() == "pilothouse-result" })
			if n := strings.Count(arrived.at("message.content").String(), "No findings."); n != 3 {
				t.Errorf("%d of 3 answers arrived: %s", n, arrived)
			}
			s.eventually("the result is acknowledged", func() bool { return len(s.ask("/v1/calls").at("calls").list()) == 0 })
			p.prompt("What did they say?", scriptedmodel.Step{Text: "nothing", LogMessages: true})
			p.settled()
			contains(t, s.heard.String(), "was under way when this session was interrupted")
			p.close()
		})
	}
}

func TestAReviewWhoseDaemonWasKilledKeepsPlanModeOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	p.prompt("Plan it.", submit, done)
	shown := p.dialog("editor")
	s.killDaemon()
	p.reply(shown, shown.at("prefill").text())
	end := p.toolEnd("exit_plan_mode")
	if !end.at("isError").truth() {
		t.Errorf("a lost review approves: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), "there is no conversation")
	p.settled()
	if p.writes(s) {
		t.Error("plan mode was forgotten with the daemon")
	}
	p.close()
}

func TestASessionInPlanModeIsHeldWhileThereIsNoDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	s.must("serve", "--stop")
	if err := os.WriteFile(s.socket(), nil, 0o600); err != nil { // so that none can be started
		t.Fatal(err)
	}
	p.prompt("Write it.", writeFile, done)
	end := p.toolEnd("write")
	if !end.at("isError").truth() {
		t.Error("a file was written in plan mode without the daemon")
	}
	contains(t, end.at("result.content.0.text").text(), "this session is in plan mode", "serve --detach")
	p.settled()
	p.prompt("Read it.", scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "README.md"}}, done)
	if end := p.toolEnd("read"); end.at("isError").truth() {
		t.Errorf("reading is refused: %s", end)
	}
	p.settled()
	p.ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.dir, "bread.txt")); err == nil {
		t.Error("a command of the user ran in plan mode without the daemon")
	}

	if err := os.Remove(s.socket()); err != nil {
		t.Fatal(err)
	}
	s.must("serve", "--detach")
	p.prompt("Hello.", scriptedmodel.Step{Text: "hello"})
	p.notice("Plan mode is still on") // the new daemon has been told of the session
	p.settled()
	if p.writes(s) {
		t.Error("plan mode was forgotten with the daemon")
	}
	p.command("/plan off")
	p.planMode(false)
	if !p.writes(s) {
		t.Error("plan mode cannot be left after the daemon was replaced")
	}
	p.close()
}

func TestASessionThatNeverPlannedNeedsNoDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.Mkdir(filepath.Dir(s.socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.socket(), nil, 0o600); err != nil { // so that none can be started
		t.Fatal(err)
	}
	p := s.open()
	contains(t, p.notice("the pilothouse daemon cannot be reached").String(), "is there and no socket")
	if !p.writes(s) {
		t.Error("a session that has nothing to do with planning cannot write")
	}
	p.close()
	if err := os.Remove(s.socket()); err != nil {
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
	if err := os.WriteFile(s.socket(), nil, 0o600); err != nil { // so that none can be started
		t.Fatal(err)
	}
	p.prompt("Eat one.", scriptedmodel.Step{Text: "It is good. [DONE:VC-002]"})
	p.settled()
	if cp := s.runFile(bread, "checkpoint.json"); len(cp.at("execution.doneVcIds").list()) != 1 {
		t.Fatalf("a daemon has heard of it: %s", cp)
	}
	if err := os.Remove(s.socket()); err != nil {
		t.Fatal(err)
	}
	s.must("serve", "--detach")
	p.prompt("Hello.", scriptedmodel.Step{Text: "hello"}, scriptedmodel.Step{Text: "hello again"})
	p.await("message_end", func(e value) bool { return e.at("message.customType").text() == "pi-plans-complete" })
	p.settled()
	cp := s.runFile(bread, "checkpoint.json")
	if cp.at("phase").text() != "implementation-review" || len(cp.at("execution.doneVcIds").list()) != 2 {
		t.Errorf("the checkpoint is %s", cp)
	}
	contains(t, s.runFile(bread, "pilothouse/workflow.json").at("execution.evidence.VC-002").text(), "It is good.")
	p.close()
}
