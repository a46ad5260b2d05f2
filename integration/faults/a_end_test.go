package faults_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc/proctest"
)

// Section A: the end of a child.

func answers(t *testing.T) []string { return prints(t, lanestest.Answer(report)...) }

func says(text string) scriptedmodel.Step { return scriptedmodel.Step{Text: text, Chunks: 4} }

// on scripts the conversations whose task has match in it.
func on(match string, steps ...scriptedmodel.Step) scriptedmodel.Rule {
	return scriptedmodel.Rule{Match: match, Steps: steps}
}

// anyTask is a word that is in every brief.
const anyTask = "Goal:"

func TestFaultA01AnAnswerCountsThoughItsChildDoesNotExit(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(answers(t), "--then", "hang")...)
	lane := s.refine("--drain-timeout", "200ms").wait().complete(report)
	if !slices.Equal(lane.Notes, []string{"did not exit by itself"}) || lane.Exit.Signal == nil || *lane.Exit.Signal != "SIGTERM" {
		t.Errorf("notes %q, exit %+v", lane.Notes, lane.Exit)
	}
}

func TestFaultA03AChildThatSaysNothingMoreIsEnded(t *testing.T) {
	t.Parallel()
	t.Run("after its answer", func(t *testing.T) {
		t.Parallel()
		lines := lanestest.Join(lanestest.Opening(), lanestest.Says(report))
		s := stubScene(t, append(prints(t, lines...), "--then", "hang")...)
		s.refine("--drain-timeout", "200ms").wait().complete(report)
	})
	for name, lines := range map[string][]string{
		"before a message": lanestest.Opening(),
		"mid-message":      lanestest.Join(lanestest.Opening(), lanestest.Streams("I see")),
		"after a tool":     lanestest.Join(lanestest.Opening(), lanestest.Uses("read")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, append(prints(t, lines...), "--then", "hang")...)
			s.refine("--silence-timeout", "500ms", "--attempts", "1").wait().failed(pijson.ClassSilent)
		})
	}
	generations(t, func(t *testing.T, pi piharness.Command) {
		s := piScene(t, pi, on(anyTask, scriptedmodel.Step{Text: "I see that", Chunks: 2, Stall: 1}))
		lane := s.refine("--silence-timeout", "4s", "--attempts", "1").wait().failed(pijson.ClassSilent)
		if lane.Output != "I see" {
			t.Errorf("what it had said is %q", lane.Output)
		}
	})
}

func TestFaultA04AChildThatReadsItsInputToTheEndIsNotLeftWaiting(t *testing.T) {
	t.Parallel()
	t.Run("input ends", func(t *testing.T) {
		t.Parallel()
		heard := filepath.Join(t.TempDir(), "heard")
		s := stubScene(t, append(answers(t), "--read-stdin", "--stdin-dump", heard)...)
		s.refine().wait().complete(report)
		if !strings.Contains(piharness.ReadFile(t, heard), planText) {
			t.Error("the child did not hear the plan")
		}
	})
	t.Run("input is not read", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, answers(t)...)
		piharness.WriteFile(t, s.plan, planText+strings.Repeat("- more bread\n", 100_000)) // does not fit into a pipe
		s.refine().wait().complete(report)
	})
	t.Run("no first event", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, "--then", "hang")
		s.refine("--first-event-timeout", "300ms", "--attempts", "1").wait().failed(pijson.ClassNoFirstEvent)
	})
}

func TestFaultA05AGrandchildThatHoldsTheOutputHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(answers(t), "--grandchild", "inherit")...)
	lane := s.refine().wait().complete(report)
	if lane.Exit.Code == nil || *lane.Exit.Code != 0 || len(lane.Notes) != 0 {
		t.Errorf("exit %+v, notes %q", lane.Exit, lane.Notes)
	}
	s.noSurvivors()
}

func TestFaultA06AGrandchildThatLeftTheGroupHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for _, cgroup := range []bool{true, false} {
		for _, kind := range []string{"setsid", "daemon"} {
			t.Run(fmt.Sprintf("%s, cgroup %v", kind, cgroup), func(t *testing.T) {
				t.Parallel()
				s := stubScene(t, append(answers(t), "--grandchild", kind)...)
				if !cgroup {
					s.setenv("PILOTHOUSE_NO_CGROUP", "1")
				}
				s.refine().wait().complete(report)
				s.noSurvivors()
			})
		}
	}
	// Without a cgroup, one that also empties its environment is out of reach.
	t.Run("out of reach", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, append(answers(t), "--grandchild", "scrubbed")...)
		s.setenv("PILOTHOUSE_NO_CGROUP", "1")
		o := s.refine("-v").wait()
		lane := o.complete(report)
		if want := []string{"a process of its tree could not be ended"}; !slices.Equal(lane.Notes, want) {
			t.Errorf("notes %q, want %q", lane.Notes, want)
		}
		if !strings.Contains(o.Stderr, "something of a child's process tree could not be ended") {
			t.Errorf("nothing is logged:\n%s", o.Stderr)
		}
		for _, pid := range piharness.Survivors(s.Marker) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // its marker proves that it is ours
		}
		s.eventually("it is gone", func() bool { return len(piharness.Survivors(s.Marker)) == 0 })
	})
}

func TestFaultA08TheEndOfOutputIsNoSuccessAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	t.Run("before the answer", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, append(prints(t, lanestest.Opening()...), "--then", "close-stdout")...)
		s.refine("--drain-timeout", "200ms").wait().failed(pijson.ClassEmpty, "closed its standard output")
	})
	t.Run("after the answer", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, append(answers(t), "--then", "close-stdout")...)
		s.refine("--drain-timeout", "200ms").wait().complete(report)
	})
}

func TestFaultA09OutputIsReadToItsEndAfterTheAnswer(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	epipe := s.file("epipe", "Error: write EPIPE\n    at afterWriteDispatched (node:internal/stream_base_commons:161:15)\n")
	s.stub(append(answers(t), "--big", "20000000", "--stderr-lines", epipe, "--then", "exit 1")...)
	lane := s.refine().wait().complete(report)
	if len(lane.Notes) != 2 || lane.Notes[0] != "exit status 1 after the answer" || !strings.HasSuffix(lane.Notes[1], "lines on standard output were no events") {
		t.Errorf("notes %q", lane.Notes)
	}
}

func TestFaultA10AChildThatPrintsForEverGoesWithItsKilledParent(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(prints(t, lanestest.Opening()...), "--ignore", "PIPE,HUP,TERM,INT", "--then", "spam")...)
	j := s.refine()
	s.started(1)
	j.Signal(os.Kill)
	j.wait()
	s.eventually("nothing survives", func() bool { return len(piharness.Survivors(s.Marker)) == 0 })
}

func TestFaultA11AKilledChildIsNoSuccess(t *testing.T) {
	t.Parallel()
	lines := lanestest.Join(lanestest.Opening(), lanestest.Uses("read"))
	s := stubScene(t, append(prints(t, lines...), "--then", "kill KILL")...)
	lane := s.refine("--attempts", "2").wait().failed(pijson.ClassKilled, "SIGKILL")
	if lane.Attempts != 2 || lane.Exit.Code != nil || lane.Exit.Signal == nil || *lane.Exit.Signal != "SIGKILL" {
		t.Errorf("%d attempts, exit %+v", lane.Attempts, lane.Exit)
	}
	if _, _, record := s.recorded(); record.Lanes[0].Exit.Signal != "SIGKILL" || record.Lanes[0].Attempts != 2 {
		t.Errorf("record %+v", record.Lanes[0])
	}
}

func TestFaultA12AModelErrorIsNoSuccessThoughTheExitStatusIsZero(t *testing.T) {
	t.Parallel()
	s := stubScene(t, prints(t, lanestest.Join(lanestest.Opening(), lanestest.Fails("401 Incorrect API key"), lanestest.Closing())...)...)
	lane := s.refine().wait().failed(pijson.ClassAuth, "401 Incorrect API key")
	if lane.Attempts != 1 || lane.Exit.Code == nil || *lane.Exit.Code != 0 {
		t.Errorf("%d attempts, exit %+v", lane.Attempts, lane.Exit)
	}
	refused := scriptedmodel.Step{Status: 401, Message: "no such key"}
	dropped := scriptedmodel.Step{Text: "## Findings", Chunks: 3, DropAfter: 1}
	for name, fault := range map[string]struct {
		pi    func(testing.TB) piharness.Command
		step  scriptedmodel.Step
		class pijson.Class
	}{
		"refused":         {piharness.NewPi, refused, pijson.ClassAuth},
		"refused, old pi": {piharness.OldPi, refused, pijson.ClassAuth},
		"dropped":         {piharness.NewPi, dropped, pijson.ClassNetwork},
		"dropped, old pi": {piharness.OldPi, dropped, pijson.ClassNetwork},
		"reset":           {piharness.NewPi, scriptedmodel.Step{Reset: "headers"}, pijson.ClassNetwork},
		"in the stream":   {piharness.NewPi, scriptedmodel.Step{Text: "## Findings", Malformed: "errorevent"}, pijson.ClassUnknown},
		"cut off":         {piharness.NewPi, scriptedmodel.Step{Text: "## Findings", Finish: "length"}, pijson.ClassTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lane := piScene(t, fault.pi(t), on(anyTask, fault.step)).refine("--attempts", "1").wait().failed(fault.class)
			if lane.Exit.Code == nil || *lane.Exit.Code != 0 {
				t.Errorf("exit %+v", lane.Exit)
			}
		})
	}
}

func TestFaultA13ARunWithoutAnAnswerIsNoEmptySuccess(t *testing.T) {
	t.Parallel()
	const overflow = "400 This model's maximum context length is 8192 tokens"
	for name, fault := range map[string]struct {
		lines []string
		then  string
		class pijson.Class
	}{
		"no message":         {lanestest.Join(lanestest.Opening(), lanestest.Closing()), "exit 0", pijson.ClassEmpty},
		"no content":         {lanestest.Join(lanestest.Opening(), []string{`{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"stop"}}`}, lanestest.Closing()), "exit 0", pijson.ClassEmpty},
		"overflow, status 0": {lanestest.Join(lanestest.Opening(), lanestest.Fails(overflow), lanestest.Closing()), "exit 0", pijson.ClassContextOverflow},
		"overflow, status 1": {lanestest.Join(lanestest.Opening(), lanestest.Fails(overflow), lanestest.Closing()), "exit 1", pijson.ClassContextOverflow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if lane := stubScene(t, append(prints(t, fault.lines...), "--then", fault.then)...).refine().wait().failed(fault.class); lane.Attempts != 1 || lane.Output != "" {
				t.Errorf("%d attempts, output %q", lane.Attempts, lane.Output)
			}
		})
	}
	generations(t, func(t *testing.T, pi piharness.Command) {
		s := piScene(t, pi, on(anyTask, scriptedmodel.Step{Status: 400, Message: "This model's maximum context length is 8192 tokens"}))
		if lane := s.refine().wait().failed(pijson.ClassContextOverflow); lane.Attempts != 1 {
			t.Errorf("%d attempts", lane.Attempts)
		}
	})
}

func TestFaultA15ExhaustedRetriesFailAndTheirCostCounts(t *testing.T) {
	t.Parallel()
	const limit = "429 Too Many Requests"
	lines := lanestest.Join(lanestest.Opening(), lanestest.Uses("read"))
	for n := range 3 {
		lines = append(lines, fmt.Sprintf(`{"type":"auto_retry_start","attempt":%d,"maxAttempts":3,"delayMs":200,"errorMessage":%q}`, n+1, limit))
	}
	lines = append(lines, `{"type":"auto_retry_end","success":false,"attempt":3,"finalError":"`+limit+`"}`)
	lane := stubScene(t, prints(t, lines...)...).refine("--attempts", "2").wait().failed(pijson.ClassRateLimit, limit)
	if lane.Attempts != 2 || lane.Usage.Cost != 2*lanestest.Cost.Cost {
		t.Errorf("%d attempts for %v dollars", lane.Attempts, lane.Usage.Cost)
	}
	generations(t, func(t *testing.T, pi piharness.Command) {
		s := piScene(t, pi, on(anyTask,
			scriptedmodel.Step{Tool: "read", Args: map[string]any{"path": "README.md"}}, scriptedmodel.Step{Status: 429, Message: "slow down"}))
		lane := s.refine("--attempts", "1").wait().failed(pijson.ClassRateLimit, "slow down")
		if lane.Usage.Cost == 0 || lane.Exit.Code == nil || *lane.Exit.Code != 0 {
			t.Errorf("cost %v, exit %+v", lane.Usage.Cost, lane.Exit)
		}
		if got := s.model.Stats().Requests; got != 5 { // one that worked, and the four of pi's own retries
			t.Errorf("the model got %d requests", got)
		}
	})
}

func TestFaultA16AnErrorThatIsRetriedIsNotFinalAndTheLastOneIsToldOnce(t *testing.T) {
	t.Parallel()
	const reason = "429 slow down"
	first := lanestest.Join(lanestest.Opening(), lanestest.Fails(reason), []string{
		`{"type":"agent_end","messages":[],"willRetry":true}`,
		`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":200,"errorMessage":"` + reason + `"}`, `{"type":"agent_start"}`, `{"type":"turn_start"}`,
	})
	told := func(t *testing.T, o outcome, want int) {
		t.Helper()
		if got := strings.Count(o.Stderr, "slow down"); got != want {
			t.Errorf("the error is told %d times, want %d:\n%s", got, want, o.Stderr)
		}
	}
	t.Run("then an answer", func(t *testing.T) {
		t.Parallel()
		lines := lanestest.Join(first, []string{`{"type":"auto_retry_end","success":true,"attempt":1}`}, lanestest.Says(report), lanestest.Closing())
		o := stubScene(t, prints(t, lines...)...).refine("--progress", "none").wait()
		if lane := o.complete(report); lane.Attempts != 1 {
			t.Errorf("%d attempts", lane.Attempts)
		}
		told(t, o, 0)
	})
	t.Run("then another error", func(t *testing.T) {
		t.Parallel()
		lines := lanestest.Join(first, lanestest.Fails(reason), []string{`{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"` + reason + `"}`}, lanestest.Closing())
		o := stubScene(t, prints(t, lines...)...).refine("--progress", "none", "--attempts", "1").wait()
		o.failed(pijson.ClassRateLimit, reason)
		told(t, o, 1)
	})
	generations(t, func(t *testing.T, pi piharness.Command) {
		answer := says(report)
		recovers := scriptedmodel.Step{Status: 429, Message: "slow down", Times: 2, Then: &answer}
		o := piScene(t, pi, on(anyTask, recovers)).refine("--progress", "none").wait()
		if lane := o.complete(report); lane.Attempts != 1 {
			t.Errorf("%d attempts", lane.Attempts)
		}
		told(t, o, 0)
	})
	t.Run("new pi gives up", func(t *testing.T) {
		t.Parallel()
		o := piScene(t, piharness.NewPi(t), on(anyTask, scriptedmodel.Step{Status: 429, Message: "slow down"})).
			refine("--progress", "none", "--attempts", "1").wait()
		o.failed(pijson.ClassRateLimit)
		told(t, o, 1)
	})
}

func TestFaultA17OurTimeOutDuringPisRetryKeepsTheProvidersError(t *testing.T) {
	t.Parallel()
	t.Run("stub", func(t *testing.T) {
		t.Parallel()
		lines := lanestest.Join(lanestest.Opening(), lanestest.Fails("529 overloaded"), []string{
			`{"type":"agent_end","messages":[],"willRetry":true}`,
			`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":14000,"errorMessage":"529 overloaded"}`,
		})
		s := stubScene(t, append(prints(t, lines...), "--then", "hang")...)
		s.refine("--lane-timeout", "3s").wait().failed(pijson.ClassOverloaded, "529 overloaded", "the lane ran out of time")
	})
	generations(t, func(t *testing.T, pi piharness.Command) {
		s := piScene(t, pi, on(anyTask, scriptedmodel.Step{Status: 429, Message: "slow down"}))
		s.retryDelay(60_000)
		s.refine("--silence-timeout", "4s", "--attempts", "1").wait().failed(pijson.ClassRateLimit, "slow down", "pi printed nothing for too long")
	})
}

// retryDelay sets how many milliseconds pi waits before its first retry.
func (s *scene) retryDelay(ms int) {
	s.t.Helper()
	var path string
	for _, variable := range s.Env {
		if dir, ok := strings.CutPrefix(variable, "PI_CODING_AGENT_DIR="); ok {
			path = filepath.Join(dir, "settings.json")
		}
	}
	var settings map[string]any
	if err := json.Unmarshal([]byte(piharness.ReadFile(s.t, path)), &settings); err != nil {
		s.t.Fatal(err)
	}
	settings["retry"].(map[string]any)["baseDelayMs"] = ms //nolint:errcheck // a panic fails the test
	text, err := json.Marshal(settings)
	if err != nil {
		s.t.Fatal(err)
	}
	piharness.WriteFile(s.t, path, string(text))
}

func TestFaultA18ALaneThatLoopsIsCapped(t *testing.T) {
	t.Parallel()
	turn := prints(t, lanestest.Uses("read")...)
	t.Run("by turns", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, append(turn, "--times", "10000", "--then", "hang")...)
		lane := s.refine("--max-turns", "50", "--max-cost", "-1").wait().failed(pijson.ClassBudget, " of 50 turns used")
		if lane.Attempts != 1 || lane.Turns <= 50 || lane.Turns >= 10_000 {
			t.Errorf("%d attempts, %d turns", lane.Attempts, lane.Turns)
		}
	})
	t.Run("by time", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, append(turn, "--times", "0", "--pause", "50ms")...)
		s.refine("--lane-timeout", "1s").wait().failed(pijson.ClassTimedOut)
	})
}

// held puts a stub in the place of pi that waits to be let go.
func (s *scene) held(args ...string) (letGo func()) {
	s.t.Helper()
	gate := filepath.Join(s.t.TempDir(), "gate")
	words := append(piharness.Command{proctest.Build(s.t), "--marker", s.Marker}, args...)
	path := s.script("while [ ! -e " + gate + " ]; do sleep 0.02; done\nexec " + words.String() + "\n")
	s.setenv("PILOTHOUSE_PI", piharness.Command{path, s.Marker}.String())
	return func() { piharness.WriteFile(s.t, gate, "") }
}

func TestFaultA22AQueuedLaneAndAFinishedOneAreFound(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	letGo := s.held(answers(t)...)
	s.command("plans", "start-run", "--topic", "Bread", "--skill", "plan", "--requestText", "bread").start().wait()
	runID := s.runs()[0].Run.RunID
	args := []string{"analyze-refs", "--model", "sim/plain", "--json"}
	for n := range 4 {
		dir := filepath.Join(s.Dir, fmt.Sprintf("ref%d", n))
		piharness.WriteFile(t, filepath.Join(dir, "NOTES.md"), "a list\n")
		args = append(args, "--ref", fmt.Sprintf("r%d=%s", n, dir))
	}
	j := s.command(args...).start()
	s.started(1)
	statuses := func() map[string]string {
		var shown struct {
			Rounds []struct {
				Lanes []struct{ LaneID, Status string }
			}
		}
		o := s.command("show", runID, "--json").start().wait()
		if err := json.Unmarshal([]byte(o.Stdout), &shown); err != nil || len(shown.Rounds) != 1 {
			t.Fatalf("%v in %s%s", err, o.Stdout, o.Stderr)
		}
		all := map[string]string{}
		for _, lane := range shown.Rounds[0].Lanes {
			all[lane.LaneID] = lane.Status
		}
		return all
	}
	if got := statuses(); len(got) != 4 || got["ref-4"] != "queued" {
		t.Errorf("while the first batch works: %v", got)
	}
	letGo()
	if o := j.wait(); o.Code != 0 || o.round().Complete() != 4 {
		t.Errorf("the call ended with %d before its lanes had: %s", o.Code, o.Stderr)
	}
	for lane, status := range statuses() {
		if status != string(lanes.Complete) {
			t.Errorf("afterwards %s is %s", lane, status)
		}
	}
}

func TestFaultA23WhoStopsWaitingEndsNobodyElsesLane(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	letGo := s.held(answers(t)...)
	other := filepath.Join(s.Dir, "OTHER.md")
	piharness.WriteFile(t, other, "# Bake cakes\n\n- I-001 Bake a cake.\n")
	leaves := s.refine()
	s.started(1)
	stays := s.command("refine", other, "--model", "sim/plain", "--json").start()
	s.started(2)
	leaves.Signal(os.Interrupt)
	if o := leaves.wait(); o.Code != 130 || o.lane("general").Status != lanes.Cancelled {
		t.Errorf("ended with %d: %s", o.Code, o.Stdout)
	}
	letGo()
	stays.wait().complete(report)
}
