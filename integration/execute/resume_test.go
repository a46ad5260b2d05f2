package execute_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/scriptedmodel"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// halting is diligent, but its second check hangs the first time it is tried.
func halting() []scriptedmodel.Rule {
	stalled := scriptedmodel.Step{Stall: scriptedmodel.StallStart, Times: 1}
	step := bash(bakeFaster)
	stalled.Then = &step
	return []scriptedmodel.Rule{
		when(`Verified: 0 of 2`, bash(`echo 45 minutes >> batch.txt`), says("`cat batch.txt` prints it. [DONE:VC-001]")),
		when(`Verified: 1 of 2`, stalled, says("`grep` prints the line. [DONE:VC-002]")),
	}
}

// halt starts an execution and waits until it hangs with one check passed.
func (s *scene) halt() *job {
	s.t.Helper()
	j := s.start("execute", "PLAN.md", "--approve", s.digest("PLAN.md"))
	s.await(func(stats scriptedmodel.Stats) bool { return stats.Requests == 3 && stats.Open == 1 })
	return j
}

func TestAKilledExecutionGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile func(s *scene)
		lines     int // of batch.txt: how often the first check was worked on
	}{
		"nothing changed": {nil, 1},
		"another commit": {func(s *scene) {
			cmd := exec.Command("git", "-C", s.dir, "commit", "-q", "--allow-empty", "-m", "meanwhile")
			cmd.Env = s.env
			if out, err := cmd.CombinedOutput(); err != nil {
				s.t.Fatalf("%v\n%s", err, out)
			}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, halting()...)
			j := s.halt()
			j.signal(syscall.SIGKILL)
			j.wait()
			s.noSurvivors()
			if _, run, cp := s.onlyRun(); run.Status != store.StatusExecuting || len(cp.Execution.DoneVCIDs) != 1 {
				t.Fatalf("after the kill: %s, %+v", run.Status, cp.Execution)
			}
			if test.meanwhile != nil {
				test.meanwhile(s)
			}
			r := report(t, s.must(0, "execute", "PLAN.md", "--json")) // the approval stands
			if r.Outcome != supervisor.ExecutionReviewPending || r.Status != store.StatusDone || !r.Checks[0].Passed || !r.Checks[1].Passed {
				t.Errorf("the report is %+v", r)
			}
			if lines := strings.Count(s.read("batch.txt"), "\n"); lines != test.lines {
				t.Errorf("the first check was worked on %d times, want %d", lines, test.lines)
			}
			if _, _, cp := s.onlyRun(); cp.Execution.MustReverify() || cp.Phase != store.PhaseImplementationReview {
				t.Errorf("at the end: %s, %+v", cp.Phase, cp.Execution)
			}
		})
	}
}

func TestAnInterruptedExecutionIsStoppedAndCanBeResumedOrAbandoned(t *testing.T) {
	t.Parallel()
	s := newScene(t, halting()...)
	j := s.halt()
	dir, _, _ := s.onlyRun()
	for _, args := range [][]string{{"execute", "PLAN.md"}, {"stop", dir.ID}, {"abandon", dir.ID, "--yes"}, {"resume", dir.ID}} {
		if e := s.start(args...).wait(); e.code != 4 || !strings.Contains(e.stderr, "actively owned") {
			t.Errorf("%v while it is executed: %d, %q", args, e.code, e.stderr)
		}
	}
	j.signal(os.Interrupt)
	if e := j.wait(); e.code != 130 || !strings.Contains(e.stderr, "go on with `pilothouse execute --run "+dir.ID+"`") || !strings.Contains(e.stdout, "[x] VC-001") {
		t.Errorf("ended with %d\n%s\n%s", e.code, e.stdout, e.stderr)
	}
	s.noSurvivors()
	_, run, cp := s.onlyRun()
	if run.Status != store.StatusStopped || !strings.Contains(cp.Execution.PausedReason, "SIGINT") {
		t.Errorf("status %s, %+v", run.Status, cp.Execution)
	}

	e := s.must(0, "resume")
	if !strings.HasPrefix(e.stdout, "PI-PLANS RESUME") || !strings.Contains(e.stdout, "still valid: VC-001") || !strings.Contains(e.stderr, "pilothouse execute --run "+dir.ID) {
		t.Errorf("resume printed\n%s\n%s", e.stdout, e.stderr)
	}
	if e := s.must(0, "stop", dir.ID, "--reason", "lunch"); !strings.Contains(e.stdout, "is stopped") {
		t.Errorf("stop printed %q", e.stdout)
	}
	if _, _, cp := s.onlyRun(); cp.Execution.PausedReason != "lunch" {
		t.Errorf("paused for %q", cp.Execution.PausedReason)
	}
	if e := s.must(3, "abandon", dir.ID); !strings.Contains(e.stderr, "--yes") {
		t.Errorf("abandon said %q", e.stderr)
	}
	s.must(0, "abandon", dir.ID, "--yes")
	if e := s.must(3, "stop", dir.ID); !strings.Contains(e.stderr, "it is abandoned already") {
		t.Errorf("stop said %q", e.stderr)
	}
	if e := s.must(2, "resume"); !strings.Contains(e.stderr, "no run to resume") {
		t.Errorf("resume said %q", e.stderr)
	}
	if e := s.must(3, "resume", dir.ID); !strings.Contains(e.stderr, "it is over") {
		t.Errorf("resume said %q", e.stderr)
	}
}

func TestAnExecutionThatGetsNowhereStopsAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		step     scriptedmodel.Step
		requests int
		reason   string
	}{
		"no progress":          {says("Let me think."), 3, "no progress in 3 rounds"},
		"the provider refuses": {scriptedmodel.Step{Status: 401, Message: "bad key"}, 1, "bad key"},
		"cut off":              {scriptedmodel.Step{Text: "I", Finish: "length"}, 1, "length"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, when(`a plan is being executed`, test.step))
			r := report(t, s.must(1, "execute", "PLAN.md", "--approve", s.digest("PLAN.md"), "--json"))
			if r.Outcome != supervisor.ExecutionStopped || !strings.Contains(r.Reason, test.reason) || r.Status != store.StatusStopped || r.WayOut == "" {
				t.Errorf("the report is %+v", r)
			}
			if stats := s.model.Stats(); stats.Requests != test.requests {
				t.Errorf("%d requests, want %d", stats.Requests, test.requests)
			}
		})
	}
}

func TestAReviewThatWasInterruptedIsNotPaidForTwice(t *testing.T) {
	t.Parallel()
	hang := scriptedmodel.Step{Stall: scriptedmodel.StallStart, Times: 1}
	answer := says("F-001 rejected: the unit is there.")
	hang.Then = &answer
	s := newScene(t, append([]scriptedmodel.Rule{
		when(`independent reviewers have looked`, hang),
		when(`the working tree as it is now`, scriptedmodel.Step{Text: finding, Times: 1, Then: &scriptedmodel.Step{Text: "a second answer"}}),
	}, diligent...)...)
	j := s.start("execute", "PLAN.md", "--approve", s.digest("PLAN.md"), "--review", "1", "--reviewer-model", "inherit")
	s.await(func(stats scriptedmodel.Stats) bool { return stats.Requests == 7 && stats.Open == 1 })
	j.signal(syscall.SIGKILL)
	j.wait()
	s.noSurvivors()
	r := report(t, s.must(0, "execute", "PLAN.md", "--reviewer-model", "inherit", "--json")) // the condition is on record
	if r.Outcome != supervisor.ExecutionCompleted || len(r.Rounds) != 1 || r.Rounds[0].Findings["high"] != 1 || r.Rounds[0].Cost != 0 {
		t.Errorf("the report is %+v", r)
	}
	if stats := s.model.Stats(); stats.Requests != 8 {
		t.Errorf("%d requests, want one more for what was left", stats.Requests)
	}
}
