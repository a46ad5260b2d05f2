package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// A daemon that is there and does not answer, as on a machine that swaps or was put to sleep.

// impatient makes sessions from now on take a daemon for one that hangs after seconds.
func (s *scene) impatient() { s.env = append(s.env, "PILOTHOUSE_PATIENCE=3") }

// hang stops the daemon until the returned function lets it go on.
func (s *scene) hang() (pid int, goOn func()) {
	s.t.Helper()
	s.eventually("a daemon answers", func() bool {
		health, err := s.tryAsk("/v1/health")
		pid = int(health.at("pid").number())
		return err == nil
	})
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	goOn = func() {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been ended
	}
	s.t.Cleanup(goOn)
	return pid, goOn
}

// judged has the model write a file until the daemon, and not the extension for it, says
// whether it may, and returns what the tool says.
func (p *session) judged(s *scene) string {
	p.t.Helper()
	text := ""
	s.eventually("the daemon judges", func() bool {
		p.prompt("Write it.", writeFile, done)
		text = p.toolEnd("write").at("result.content.0.text").text()
		p.settled()
		return !strings.Contains(text, "cannot judge")
	})
	return text
}

func TestASessionInPlanModeIsHeldWhileTheDaemonHangs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	pid, goOn := s.hang()
	p.prompt("Write it.", writeFile, done)
	end := p.toolEnd("write")
	if !end.at("isError").truth() {
		t.Error("a file was written in plan mode while the daemon hangs")
	}
	contains(t, end.at("result.content.0.text").text(), "this session is in plan mode", fmt.Sprintf("(process %d) does not answer", pid), "end its process")
	p.settled()
	p.prompt("Read it.", scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "README.md"}}, done)
	if end := p.toolEnd("read"); end.at("isError").truth() {
		t.Errorf("reading is refused: %s", end)
	}
	p.settled()
	p.ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.dir, "bread.txt")); err == nil {
		t.Error("a command of the user ran in plan mode while the daemon hangs")
	}
	p.command("/plan off")
	p.notice("/plan: the pilothouse daemon")

	goOn()
	contains(t, p.judged(s), "Plan mode only reads")
	p.command("/plan off")
	p.planMode(false)
	if !p.writes(s) {
		t.Error("plan mode cannot be left after the daemon went on")
	}
	p.close()
}

func TestASessionThatNeverPlannedGoesOnWhileTheDaemonHangs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	s.confirm()
	p := s.open()
	_, goOn := s.hang()
	if !p.writes(s) {
		t.Error("a session that has nothing to do with planning cannot write")
	}
	show := plans(map[string]any{"action": "show"})
	p.prompt("Plan it.", show, choose("Which oven?", "", "The old one"), done)
	for _, tool := range []string{"plans", "ask_choice"} {
		end := p.toolEnd(tool)
		if !end.at("isError").truth() {
			t.Errorf("%s does not fail: %s", tool, end)
		}
		contains(t, end.at("result.content.0.text").text(), "does not answer")
	}
	p.settled()
	goOn()
	s.eventually("the tool works again", func() bool {
		p.prompt("Plan it.", show, done)
		end := p.toolEnd("plans")
		p.settled()
		return !end.at("isError").truth()
	})
	p.close()
}

// What is under way when the daemon begins to hang has no hook before it that would tell.
func TestAQuestionOfADaemonThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	p.prompt("Plan it.", submit, done)
	shown := p.dialog("editor")
	_, goOn := s.hang()
	p.reply(shown, shown.at("prefill").text())
	end := p.toolEnd("exit_plan_mode")
	if !end.at("isError").truth() {
		t.Errorf("a plan was approved while the daemon hangs: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), "does not answer")
	p.settled()
	goOn()
	contains(t, p.judged(s), "Plan mode only reads")
	p.close()
}

func TestARoundTellsThatItsDaemonHangsAndGoesOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	s.confirm("reviewer")
	finish := s.gated()
	p := s.open()
	p.prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), done)
	p.await("tool_execution_update")
	s.responding(3)
	_, goOn := s.hang()
	says := func(e value) bool {
		return strings.Contains(e.at("partialResult.content.0.text").text(), "does not answer; the round goes on when it does")
	}
	p.await("tool_execution_update", says)
	goOn()
	p.await("tool_execution_update", func(e value) bool { return !says(e) })
	finish()
	end := p.toolEnd("refine")
	if lanes := end.at("result.details.lanes").each("status"); lanes != "complete complete complete" {
		t.Errorf("the round: %s", end)
	}
	p.settled()
	p.close()
}

func TestTheResultOfARoundComesToASessionThatDidNotWaitForIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	s.confirm("reviewer")
	finish := s.gated()
	p := s.open()
	p.prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), done)
	p.await("tool_execution_update")
	s.responding(3)
	_, goOn := s.hang()
	end := p.toolEnd("refine")
	if !end.at("isError").truth() {
		t.Errorf("a round whose daemon hangs ends well: %s", end)
	}
	contains(t, end.at("result.content.0.text").text(), "does not answer; the round goes on when it does, and its result comes here then")
	p.settled()
	goOn()
	s.eventually("the session hears of the daemon", func() bool {
		p.prompt("Hello.", plans(map[string]any{"action": "show"}), done)
		p.settled()
		return len(p.seen(func(e value) bool { return strings.Contains(e.at("message").text(), "still at work") })) > 0
	})
	finish()
	arrived := p.await("message_end", func(e value) bool { return e.at("message.customType").text() == "pilothouse-result" })
	if n := strings.Count(arrived.at("message.content").String(), "No findings."); n != 3 {
		t.Errorf("%d of 3 answers arrived: %s", n, arrived)
	}
	s.eventually("the result is acknowledged", func() bool { return len(s.ask("/v1/calls").at("calls").list()) == 0 })
	p.close()
}

func TestADaemonThatHangsIsReplacedOnceItIsEnded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	pid, _ := s.hang()
	if p.writes(s) {
		t.Error("a file was written in plan mode while the daemon hangs")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	contains(t, p.judged(s), "Plan mode only reads")
	p.close()
}

func TestTheEndOfASessionStartsNoDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.open()
	p.command("/plan")
	p.planMode(true)
	s.must("serve", "--stop")
	p.close()
	if health, err := s.tryAsk("/v1/health"); err == nil {
		t.Errorf("a session that ended has started the daemon %s", health)
	}
}

func TestASessionThatBeganWhileTheDaemonHungIsMadeKnownLater(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	kept := []string{"--session-dir", filepath.Join(s.agentDir, "kept")}
	p := s.open(kept...)
	p.command("/plan")
	p.planMode(true)
	p.prompt("Hello.", scriptedmodel.Step{Text: "hello"})
	p.settled()
	p.kill()

	_, goOn := s.hang()
	p = s.open(append(kept, "--continue")...)
	p.notice("does not answer")
	if p.writes(s) {
		t.Error("a file was written in plan mode while the daemon hangs")
	}
	goOn()
	contains(t, p.judged(s), "Plan mode only reads")
	p.find(func(e value) bool { return strings.Contains(e.at("message").text(), "Plan mode is still on") })
	p.close()
}
