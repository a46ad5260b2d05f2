package execute_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/piharness"
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
func (s *scene) halt() *piharness.Program {
	s.t.Helper()
	j := s.Start("execute", "PLAN.md", "--approve", s.Digest("PLAN.md"))
	s.Await(func(stats scriptedmodel.Stats) bool { return stats.Requests == 3 && stats.Open == 1 })
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
			cmd := exec.Command("git", "-C", s.Dir, "commit", "-q", "--allow-empty", "-m", "meanwhile")
			cmd.Env = s.Env
			if out, err := cmd.CombinedOutput(); err != nil {
				s.t.Fatalf("%v\n%s", err, out)
			}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, halting()...)
			j := s.halt()
			j.Signal(syscall.SIGKILL)
			j.Wait()
			s.NoSurvivors()
			if _, run, cp := s.OnlyRun(); run.Status != store.StatusExecuting || len(cp.Execution.DoneVCIDs) != 1 {
				t.Fatalf("after the kill: %s, %+v", run.Status, cp.Execution)
			}
			if test.meanwhile != nil {
				test.meanwhile(s)
			}
			r := report(t, s.Must(0, "execute", "PLAN.md", "--json")) // the approval stands
			if r.Outcome != supervisor.ExecutionReviewPending || r.Status != store.StatusDone || !r.Checks[0].Passed || !r.Checks[1].Passed {
				t.Errorf("the report is %+v", r)
			}
			if lines := strings.Count(s.Read("batch.txt"), "\n"); lines != test.lines {
				t.Errorf("the first check was worked on %d times, want %d", lines, test.lines)
			}
			if _, _, cp := s.OnlyRun(); cp.Execution.MustReverify() || cp.Phase != store.PhaseImplementationReview {
				t.Errorf("at the end: %s, %+v", cp.Phase, cp.Execution)
			}
		})
	}
}

func TestAnInterruptedExecutionIsStoppedAndCanBeResumedOrAbandoned(t *testing.T) {
	t.Parallel()
	s := newScene(t, halting()...)
	j := s.halt()
	dir, _, _ := s.OnlyRun()
	for _, args := range [][]string{{"execute", "PLAN.md"}, {"stop", dir.ID}, {"abandon", dir.ID, "--yes"}, {"resume", dir.ID}} {
		if e := s.Start(args...).Wait(); e.Code != 4 || !strings.Contains(e.Stderr, "actively owned") {
			t.Errorf("%v while it is executed: %d, %q", args, e.Code, e.Stderr)
		}
	}
	j.Signal(os.Interrupt)
	if e := j.Wait(); e.Code != 130 || !strings.Contains(e.Stderr, "go on with `pilothouse execute --run "+dir.ID+"`") || !strings.Contains(e.Stdout, "[x] VC-001") {
		t.Errorf("ended with %d\n%s\n%s", e.Code, e.Stdout, e.Stderr)
	}
	s.NoSurvivors()
	_, run, cp := s.OnlyRun()
	if run.Status != store.StatusStopped || !strings.Contains(cp.Execution.PausedReason, "SIGINT") {
		t.Errorf("status %s, %+v", run.Status, cp.Execution)
	}

	e := s.Must(0, "resume")
	if !strings.HasPrefix(e.Stdout, "PI-PLANS RESUME") || !strings.Contains(e.Stdout, "still valid: VC-001") || !strings.Contains(e.Stderr, "pilothouse execute --run "+dir.ID) {
		t.Errorf("resume printed\n%s\n%s", e.Stdout, e.Stderr)
	}
	if e := s.Must(0, "stop", dir.ID, "--reason", "lunch"); !strings.Contains(e.Stdout, "is stopped") {
		t.Errorf("stop printed %q", e.Stdout)
	}
	if _, _, cp := s.OnlyRun(); cp.Execution.PausedReason != "lunch" {
		t.Errorf("paused for %q", cp.Execution.PausedReason)
	}
	if e := s.Must(3, "abandon", dir.ID); !strings.Contains(e.Stderr, "--yes") {
		t.Errorf("abandon said %q", e.Stderr)
	}
	s.Must(0, "abandon", dir.ID, "--yes")
	if e := s.Must(3, "stop", dir.ID); !strings.Contains(e.Stderr, "it is abandoned already") {
		t.Errorf("stop said %q", e.Stderr)
	}
	if e := s.Must(2, "resume"); !strings.Contains(e.Stderr, "no run to resume") {
		t.Errorf("resume said %q", e.Stderr)
	}
	if e := s.Must(3, "resume", dir.ID); !strings.Contains(e.Stderr, "it is over") {
		t.Errorf("resume said %q", e.Stderr)
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
			r := report(t, s.Must(1, "execute", "PLAN.md", "--approve", s.Digest("PLAN.md"), "--json"))
			if r.Outcome != supervisor.ExecutionStopped || !strings.Contains(r.Reason, test.reason) || r.Status != store.StatusStopped || r.WayOut == "" {
				t.Errorf("the report is %+v", r)
			}
			if stats := s.Model.Stats(); stats.Requests != test.requests {
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
	j := s.Start("execute", "PLAN.md", "--approve", s.Digest("PLAN.md"), "--review", "1", "--reviewer-model", "inherit")
	s.Await(func(stats scriptedmodel.Stats) bool { return stats.Requests == 7 && stats.Open == 1 })
	j.Signal(syscall.SIGKILL)
	j.Wait()
	s.NoSurvivors()
	r := report(t, s.Must(0, "execute", "PLAN.md", "--reviewer-model", "inherit", "--json")) // the condition is on record
	if r.Outcome != supervisor.ExecutionCompleted || len(r.Rounds) != 1 || r.Rounds[0].Findings["high"] != 1 || r.Rounds[0].Cost != 0 {
		t.Errorf("the report is %+v", r)
	}
	if stats := s.Model.Stats(); stats.Requests != 8 {
		t.Errorf("%d requests, want one more for what was left", stats.Requests)
	}
}
