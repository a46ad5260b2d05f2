// Package execute_test carries plans out with the real Pi and a scripted model: the
// program alone, no Pi session.
package execute_test

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// planText has two checks.
const planText = `# Say how long a batch takes

## Implementation Items
- ` + "`I-001`" + `: write batch.txt
- ` + "`I-002`" + `: bake faster

## Verifier Checklist
- [ ] ` + "`VC-001`" + ` covers I-001; batch.txt says 45
- [ ] ` + "`VC-002`" + ` covers I-002; oven.go says 40
`

// scene has the plan as PLAN.md.
type scene struct {
	*piharness.Scene
	t *testing.T
}

func newScene(t *testing.T, rules ...scriptedmodel.Rule) *scene {
	t.Helper()
	s := &scene{piharness.NewScene(t, rules...), t}
	s.Write("PLAN.md", planText)
	return s
}

// report is what execute --json printed.
func report(t *testing.T, e piharness.Ended) supervisor.ExecuteResult {
	t.Helper()
	var r supervisor.ExecuteResult
	if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
		t.Fatalf("%v in:\n%s\nstderr:\n%s", err, e.Stdout, e.Stderr)
	}
	return r
}

// bash is a step that runs a command.
func bash(command string) scriptedmodel.Step {
	return scriptedmodel.Step{Tool: "bash", Args: map[string]any{"command": command}}
}

// says is a step that ends the agent's run.
func says(text string) scriptedmodel.Step { return scriptedmodel.Step{Text: text} }

// when answers a message of the executor that has these words.
func when(words string, steps ...scriptedmodel.Step) scriptedmodel.Rule {
	return scriptedmodel.Rule{Match: words, Steps: steps}
}
