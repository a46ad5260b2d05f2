package story_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// decode reads what a command printed with --json.
func decode[T any](t *testing.T, e piharness.Ended) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(e.Stdout), &value); err != nil {
		t.Fatalf("%v in:\n%s\nstderr:\n%s", err, e.Stdout, e.Stderr)
	}
	return value
}

func requestFile(t *testing.T, s *piharness.Scene, script []scriptedmodel.Step, answers ...supervisor.PlanAnswer) {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"request": "say how long a batch takes " + scriptedmodel.Script(script...), "skill": "plan-normal", "model": "sim/plain", "answers": answers,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Write("request.json", string(data))
}

// consolidate records, as a script around pilothouse does, that the newest round has been
// worked into the plan.
func consolidate(t *testing.T, s *piharness.Scene) {
	t.Helper()
	run, _, cp := s.OnlyRun()
	action, err := json.Marshal(map[string]any{"action": "record-checkpoint", "runId": run.ID, "checkpoint": map[string]any{
		"transition": "review-consolidated", "roundId": cp.ReviewRounds[len(cp.ReviewRounds)-1].RoundID,
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Must(0, "plans", "--json", string(action))
}

func TestAPlanLivesThroughAKillWithoutASession(t *testing.T) {
	t.Parallel()
	dir := artifacts(t)
	askFindings := scriptedmodel.Step{Tool: "ask_choice", Args: map[string]any{
		"question": "What becomes of the findings?", "questionId": "findings", "autoComplete": false,
		"options": []map[string]any{{"label": "they are worked in", "recommended": true}, {"label": "they are dropped"}},
	}}
	thought := bash("sed -i 's/45/40/' oven/oven.go && grep 40 oven/oven.go")
	verified := says("`grep` prints the line. [DONE:VC-002]")
	s := piharness.NewScene(t, append(subagents(),
		when("PI-PLANS RESUME", askOven, askFindings, write(dir+"/PLAN_v2.md", revisedText),
			refinePlan(map[string]any{"role": "criticizer", "planPath": dir + "/PLAN_v2.md"}), says("The plan is written and waits for its user.")),
		when("independent reviewers have looked", replace("batch.txt", "45 minutes", "45 minutes a batch"), says("F-001 accepted: batch.txt says what it counts.")),
		when("Verified: 0 of 2", bash("echo 45 minutes >> batch.txt && cat batch.txt"), bash("grep 40 oven/oven.go"),
			says("`cat` prints 45 minutes; `grep` finds nothing. [DONE:VC-001] [I-001:implemented] [I-002:current]")),
		when("Verified: 1 of 2", scriptedmodel.Step{Text: "Let me think about the oven.", Times: 3, Then: &thought},
			scriptedmodel.Step{Stall: scriptedmodel.StallStart, Times: 1, Then: &verified}),
	)...)
	confirmRoles(s)

	// A plan is made, as far as the request has answers.
	script := []scriptedmodel.Step{
		startRun, askOven, write(dir+"/PLAN_v1.md", planText),
		refinePlan(map[string]any{"role": "reviewer", "reviewers": 3, "planPath": dir + "/PLAN_v1.md"}), askFindings, says("unreachable"),
	}
	oven := supervisor.PlanAnswer{Question: "which oven", Answer: "the new"}
	requestFile(t, s, script, oven)
	made := decode[supervisor.PlanResult](t, s.Must(3, "plan-run", "request.json", "--json"))
	if made.Question == nil || !strings.Contains(made.Question.Title, "What becomes of the findings?") {
		t.Fatalf("it ended with %+v", made)
	}
	s.NoSurvivors()
	consolidate(t, s)
	requestFile(t, s, script, oven, supervisor.PlanAnswer{Question: "the findings", Answer: "worked in"})
	made = decode[supervisor.PlanResult](t, s.Must(0, "plan-run", "request.json", "--resume", "--json"))
	consolidate(t, s)
	digest := s.Digest(dir + "/PLAN_v2.md")
	if made.PlanPath != filepath.Join(s.Dir, dir, "PLAN_v2.md") || made.PlanSHA256 != digest {
		t.Fatalf("the plan is %+v", made)
	}

	// Nobody has approved it, then somebody does; its agent gets nowhere.
	s.Must(3, "execute")
	words := []string{"execute", "--reviewer-model", "inherit", "--review", "high", "--json"}
	r := decode[supervisor.ExecuteResult](t, s.Must(1, append(words, "--approve", digest)...))
	if r.Outcome != supervisor.ExecutionStopped || !strings.Contains(r.Reason, "no progress in 3 rounds") || r.Status != store.StatusStopped || !r.Checks[0].Passed || r.Checks[1].Passed {
		t.Errorf("the report is %+v", r)
	}
	_, _, paused := s.OnlyRun()

	// It goes on and is killed, and then in another terminal.
	before := s.Model.Stats().Requests
	job := s.Start(words...)
	s.Await(func(stats scriptedmodel.Stats) bool { return stats.Requests == before+2 && stats.Open == 1 })
	job.Signal(syscall.SIGKILL)
	job.Wait()
	s.NoSurvivors()
	if _, run, cp := s.OnlyRun(); run.Status != store.StatusExecuting || !cmp.Equal(cp.Execution.DoneVCIDs, []string{"VC-001"}) {
		t.Fatalf("after the kill: %s, %+v", run.Status, cp.Execution)
	}
	if e := s.Must(0, "resume"); !strings.Contains(e.Stdout, "still valid: VC-001") || !strings.Contains(e.Stdout, "do not ask for it again") {
		t.Errorf("resume printed\n%s", e.Stdout)
	}
	r = decode[supervisor.ExecuteResult](t, s.Must(0, words...))
	if r.Outcome != supervisor.ExecutionCompleted || r.PlanSHA256 != digest || r.WayOut != "" || len(r.Rounds) != 2 || r.Rounds[0].Findings["high"] != 1 || len(r.Rounds[1].Findings) != 0 {
		t.Errorf("the report is %+v", r)
	}
	if r.Usage.Input == 0 || r.Cost <= 0 || r.Tokens.OutToks <= paused.Execution.Usage.OutToks || r.Tokens.InToks <= paused.Execution.Usage.InToks {
		t.Errorf("usage %+v, cost %v, tokens %+v after %+v", r.Usage, r.Cost, r.Tokens, paused.Execution.Usage)
	}
	if !r.Checks[0].Passed || !strings.Contains(r.Checks[1].Evidence, "`grep` prints the line") {
		t.Errorf("the checks are %+v", r.Checks)
	}
	concluded(t, s, s.Dir)
	subagentsPaid(t, s)
	run, _, cp := s.OnlyRun()
	if diff := cmp.Diff(paused.Execution.Approval, cp.Execution.Approval); diff != "" {
		t.Error(diff)
	}
	if len(cp.AnsweredQuestions) != 2 {
		t.Errorf("the answers are %+v", cp.AnsweredQuestions)
	}
	ledger, err := run.Subagents()
	roles := map[string]int{}
	for _, line := range ledger {
		roles[line.Role]++
	}
	if diff := cmp.Diff(map[string]int{"reviewer": 5, "criticizer": 1, "executor": 2}, roles); err != nil || diff != "" {
		t.Errorf("the ledger (-want +got): %s, %v", diff, err)
	}
}
