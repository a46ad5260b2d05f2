package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// A daemon that is there and does not answer, as on a machine that swaps or was put to sleep.

// impatient makes sessions from now on take a daemon for one that hangs after seconds.
func (s *scene) impatient() { s.Env = append(s.Env, "PILOTHOUSE_PATIENCE=3") }

// hang stops the daemon until the returned function lets it go on.
func (s *scene) hang() (pid int, goOn func()) {
	s.t.Helper()
	s.Eventually("a daemon answers", func() bool {
		health, err := s.TryAsk("/v1/health")
		pid = int(health.At("pid").Number())
		return err == nil
	})
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	goOn = func() {
		_ = syscall.Kill(pid, syscall.SIGCONT) // it may have been ended
	}
	s.t.Cleanup(goOn)
	s.Eventually("each thread of the daemon has stopped", func() bool { return stopped(pid) })
	return pid, goOn
}

// stopped tells whether no thread of a process runs any more, some time after the signal:
// until then one may answer. Where there is no /proc nobody can tell.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is well-formed
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// judged has the model write a file until the daemon, and not the extension for it, says
// whether it may, and returns what the tool says.
func (p *session) judged(s *scene) string {
	p.t.Helper()
	text := ""
	s.Eventually("the daemon judges", func() bool {
		p.Prompt("Write it.", writeFile, done)
		text = p.ToolEnd("write").At("result.content.0.text").Text()
		p.Settled()
		return !strings.Contains(text, "cannot judge")
	})
	return text
}

func TestASessionInPlanModeIsHeldWhileTheDaemonHangs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p := s.planning()
	pid, goOn := s.hang()
	p.Prompt("Write it.", writeFile, done)
	end := p.ToolEnd("write")
	if !end.At("isError").Truth() {
		t.Error("a file was written in plan mode while the daemon hangs")
	}
	contains(t, end.At("result.content.0.text").Text(), "this session is in plan mode", fmt.Sprintf("(process %d) does not answer", pid), "end its process")
	p.Settled()
	p.Prompt("Read it.", scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "README.md"}}, done)
	if end := p.ToolEnd("read"); end.At("isError").Truth() {
		t.Errorf("reading is refused: %s", end)
	}
	p.Settled()
	p.Ask(map[string]any{"type": "bash", "command": "touch bread.txt"})
	if _, err := os.Stat(filepath.Join(s.Dir, "bread.txt")); err == nil {
		t.Error("a command of the user ran in plan mode while the daemon hangs")
	}
	p.Prompt("/plan off")
	p.Notice("/plan: the pilothouse daemon")

	goOn()
	contains(t, p.judged(s), "Plan mode only reads")
	p.leavesPlanMode(s)
	p.Close()
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
	p.Prompt("Plan it.", show, choose("Which oven?", "", "The old one"), done)
	for _, tool := range []string{"plans", "ask_choice"} {
		end := p.ToolEnd(tool)
		if !end.At("isError").Truth() {
			t.Errorf("%s does not fail: %s", tool, end)
		}
		contains(t, end.At("result.content.0.text").Text(), "does not answer")
	}
	p.Settled()
	goOn()
	s.Eventually("the tool works again", func() bool {
		p.Prompt("Plan it.", show, done)
		end := p.ToolEnd("plans")
		p.Settled()
		return !end.At("isError").Truth()
	})
	p.Close()
}

// What is under way when the daemon begins to hang has no hook before it that would tell.
func TestAQuestionOfADaemonThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p := s.planning()
	p.Prompt("Plan it.", submit, done)
	shown := p.Dialog("editor")
	_, goOn := s.hang()
	p.Reply(shown, shown.At("prefill").Text())
	end := p.ToolEnd("exit_plan_mode")
	if !end.At("isError").Truth() {
		t.Errorf("a plan was approved while the daemon hangs: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), "does not answer")
	p.Settled()
	goOn()
	contains(t, p.judged(s), "Plan mode only reads")
	p.Close()
}

func TestARoundTellsThatItsDaemonHangsAndGoesOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p, finish := s.reviewing()
	_, goOn := s.hang()
	says := func(e piharness.Value) bool {
		return strings.Contains(e.At("partialResult.content.0.text").Text(), "does not answer; the round goes on when it does")
	}
	p.Await("tool_execution_update", says)
	goOn()
	p.Await("tool_execution_update", func(e piharness.Value) bool { return !says(e) })
	finish()
	end := p.ToolEnd("refine")
	if lanes := end.At("result.details.lanes").Each("status"); lanes != "complete complete complete" {
		t.Errorf("the round: %s", end)
	}
	p.Settled()
	p.Close()
}

func TestTheResultOfARoundComesToASessionThatDidNotWaitForIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p, finish := s.reviewing()
	_, goOn := s.hang()
	end := p.ToolEnd("refine")
	if !end.At("isError").Truth() {
		t.Errorf("a round whose daemon hangs ends well: %s", end)
	}
	contains(t, end.At("result.content.0.text").Text(), "does not answer; the round goes on when it does, and its result comes here then")
	p.Settled()
	goOn()
	s.Eventually("the session hears of the daemon", func() bool {
		p.Prompt("Hello.", plans(map[string]any{"action": "show"}), done)
		p.Settled()
		return len(p.Seen(func(e piharness.Value) bool { return strings.Contains(e.At("message").Text(), "still at work") })) > 0
	})
	finish()
	p.receives(s)
	p.Close()
}

func TestADaemonThatHangsIsReplacedOnceItIsEnded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	p := s.planning()
	pid, _ := s.hang()
	if p.writes(s) {
		t.Error("a file was written in plan mode while the daemon hangs")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	contains(t, p.judged(s), "Plan mode only reads")
	p.Close()
}

func TestTheEndOfASessionStartsNoDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := s.planning()
	s.must("serve", "--stop")
	p.Close()
	if health, err := s.TryAsk("/v1/health"); err == nil {
		t.Errorf("a session that ended has started the daemon %s", health)
	}
}

func TestASessionThatBeganWhileTheDaemonHungIsMadeKnownLater(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.impatient()
	kept := []string{"--session-dir", filepath.Join(s.AgentDir, "kept")}
	p := s.planning(kept...)
	p.Prompt("Hello.", scriptedmodel.Step{Text: "hello"})
	p.Settled()
	p.Kill()

	_, goOn := s.hang()
	p = s.open(append(kept, "--continue")...)
	p.Notice("does not answer")
	if p.writes(s) {
		t.Error("a file was written in plan mode while the daemon hangs")
	}
	goOn()
	contains(t, p.judged(s), "Plan mode only reads")
	p.Find(func(e piharness.Value) bool { return strings.Contains(e.At("message").Text(), "Plan mode is still on") })
	p.Close()
}
