// Package story_test lives through the whole way of a plan with the real Pi and a
// scripted model: from the request over reviews, approval, an execution that does not go
// smoothly and is killed, to a reviewed implementation.
package story_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const planText = `# Say how long a batch takes

## Implementation Items
- ` + "`I-001`" + `: write batch.txt
- ` + "`I-002`" + `: bake faster

## Verifier Checklist
- [ ] ` + "`VC-001`" + ` covers I-001; batch.txt says 45
- [ ] ` + "`VC-002`" + ` covers I-002; oven.go says 40
`

// revisedText is the plan after its review.
var revisedText = strings.Replace(planText, "write batch.txt", "write batch.txt, with its unit", 1)

const doubt = `## Findings

### F-001 · medium · The unit is left open
- Affects: I-001
- Evidence: README.md:1 — "# Bakery"
- Impact: a reader cannot tell minutes from hours.
- Fix: name the unit in I-001.
- Disposition: accept

## Checked

- README.md
`

const criticism = `## Summary
It rests on one oven.

## Questions
1. Does I-002 hold for the new oven?
   Why: VC-002 looks at one constant.
`

const finding = `## Findings

### F-001 · high · The batch has no unit
- Affects: I-001
- Evidence: batch.txt:1 — "45 minutes"
- Impact: a reader cannot tell what it counts.
- Fix: say what takes so long.
- Disposition: accept

## Checked

- batch.txt
`

const clean = "## Findings\n\nNo findings.\n\n## Checked\n\n- batch.txt\n- oven/oven.go\n"

// What the briefs of subagents say, and nobody else.
const (
	ofPlanReviewer = "review one plan against this repository"
	ofCriticizer   = "criticize one plan by asking"
	ofWorkReviewer = "review an implementation against the plan"
)

// subagents find a little in the plan, and one thing of high severity in what was made
// of it, once.
func subagents() []scriptedmodel.Rule {
	return []scriptedmodel.Rule{
		when(ofPlanReviewer, says(doubt)),
		when(ofCriticizer, says(criticism)),
		when(ofWorkReviewer, scriptedmodel.Step{Text: finding, Times: 1, Then: &scriptedmodel.Step{Text: clean}}),
	}
}

// untilClean is the condition that the user chooses for the review.
var untilClean = execution.TerminationOptions[1]

// artifacts is the directory of the documents of a run that a script names beforehand.
// It has the date in its name, so it is not asked for shortly before midnight.
func artifacts(t *testing.T) string {
	t.Helper()
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < 2*time.Minute {
		midnight := time.NewTimer(left + time.Second)
		defer midnight.Stop()
		<-midnight.C
	}
	return "docs/pi-plans/" + time.Now().UTC().Format("2006-01-02") + "-a-batch"
}

// The steps of the story.

var startRun = plans(map[string]any{"action": "start-run", "topic": "A batch", "skill": "plan-normal", "requestText": "say how long a batch takes"})

var askOven = scriptedmodel.Step{Tool: "ask_choice", Args: map[string]any{
	"question": "Which oven is it about?", "questionId": "oven", "autoComplete": false,
	"options": []map[string]any{{"label": "the old one"}, {"label": "the new one", "recommended": true}},
}}

func plans(args map[string]any) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "plans", Args: args}
}

// transition records a step of the workflow.
func transition(name string, more map[string]any) scriptedmodel.Step {
	step := map[string]any{"transition": name}
	for key, value := range more {
		step[key] = value
	}
	return plans(map[string]any{"action": "record-checkpoint", "checkpoint": step})
}

func consolidated(round string) scriptedmodel.Step {
	return transition("review-consolidated", map[string]any{"roundId": round})
}

func write(path, text string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "write", Args: map[string]any{"path": path, "content": text}}
}

func replace(path, from, to string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "edit", Args: map[string]any{"path": path, "edits": []map[string]any{{"oldText": from, "newText": to}}}}
}

func bash(command string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": command}}
}

// says is a step that ends the agent's run.
func says(text string) scriptedmodel.Step { return scriptedmodel.Step{Text: text} }

// when answers a message that has these words.
func when(words string, steps ...scriptedmodel.Step) scriptedmodel.Rule {
	return scriptedmodel.Rule{Match: words, Steps: steps}
}

// asked counts the requests of the model whose message has these words.
func asked(s *piharness.Scene, words string) int {
	n := 0
	for _, request := range s.Model.Requests() {
		if strings.Contains(request.User, words) {
			n++
		}
	}
	return n
}

// subagentsPaid checks that no subagent was asked twice for the same.
func subagentsPaid(t *testing.T, s *piharness.Scene) {
	t.Helper()
	for words, want := range map[string]int{ofPlanReviewer: 3, ofCriticizer: 1, ofWorkReviewer: 2} {
		if n := asked(s, words); n != want {
			t.Errorf("%d subagents were asked to %q, want %d", n, words, want)
		}
	}
}

// concluded checks the end of the story in the work tree at dir.
func concluded(t *testing.T, s *piharness.Scene, dir string) {
	t.Helper()
	for name, want := range map[string]string{"batch.txt": "45 minutes a batch\n", "oven/oven.go": "const Minutes = 40\n"} {
		if text := s.Read(filepath.Join(dir, name)); !strings.HasSuffix(text, want) {
			t.Errorf("%s is %q", name, text)
		}
	}
	run, record, cp := s.OnlyRun()
	if record.Status != store.StatusDone || cp.Phase != store.PhaseCompleted || cp.NextAction != store.ActionNone {
		t.Errorf("the run is %s, in phase %s, next %s", record.Status, cp.Phase, cp.NextAction)
	}
	if cp.PendingQuestion != nil || len(cp.ReviewRounds) != 4 {
		t.Errorf("pending %+v, %d rounds", cp.PendingQuestion, len(cp.ReviewRounds))
	}
	for _, round := range cp.ReviewRounds {
		if !round.Consolidated {
			t.Errorf("round %s is not consolidated", round.RoundID)
		}
	}
	if review := cp.ImplementationReview; review == nil || review.CompletedRounds != 2 || review.CurrentRoundID != "" {
		t.Errorf("the review is %+v", review)
	}
	decisions, err := run.Decisions()
	if err != nil {
		t.Fatal(err)
	}
	answered := map[string]int{}
	for _, decision := range decisions {
		answered[decision.QuestionID]++
	}
	for id, times := range answered {
		if times != 1 {
			t.Errorf("question %s is answered %d times", id, times)
		}
	}
	if _, state, err := run.Owner(); err != nil || state != store.OwnerNone {
		t.Errorf("owner %s, %v", state, err)
	}
}
