package supervisor_test

import (
	"os"
	"strings"
	"testing"

	"pilothouse/store"
	"pilothouse/supervisor"
)

const smallPlan = `# Bake bread

## Implementation Items

- ` + "`I-001`" + `: Knead.
- ` + "`I-002`" + `: Bake.

## Verifier Checklist

- [ ] ` + "`VC-001`" + ` covers I-001; the dough is smooth.
- [x] ` + "`VC-002`" + ` covers I-002; the bread is brown.
`

func TestPlansTellsWhereTheSessionStands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pi("s1")
	tell := func() string { return notices(p.command("plans", "", p.nobody)) }
	says(t, tell(), "Plan mode: off", "Run: none")
	p.command("plan", "", p.nobody)
	run := p.startRun()
	says(t, tell(), "Plan mode: on", run.RunID, "of this session", "planning", "bake-bread", "plan-normal", "not written yet", run.ArtifactDir,
		"Phase: planning, next: continue-planning", "Auto-complete: off")
	says(t, notices(b.pi("s2").command("plans", "", p.nobody)), "the active one of this workspace")
	if err := os.WriteFile(inDir(run.ArtifactDir, "PLAN_v1.md"), []byte(smallPlan), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.system.AskQuestion(t.Context(), p.Session, run.RunID, store.PendingQuestion{QuestionID: "rye", Question: "Rye or\nwheat?", Options: []string{}}); err != nil {
		t.Fatal(err)
	}
	says(t, tell(), "PLAN_v1.md, 2 items, 1 of 2 checks passed", "Open question: Rye or wheat? (rye)")
	if err := os.WriteFile(inDir(p.root().Dir, "runs", run.RunID, "checkpoint.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, tell(), run.RunID, "Phase: ", "checkpoint.json", "PLAN_v1.md")
	p.Workdir = t.TempDir()
	says(t, tell(), "no git repository")
}

func TestARunIsAbandonedAfterAQuestion(t *testing.T) {
	t.Parallel()
	p := setup(t).pi("s1")
	status := func(run store.Run) store.RunStatus {
		detail, err := p.system.Show(t.Context(), p.Session, run.RunID)
		if err != nil {
			t.Fatal(err)
		}
		return detail.Status
	}
	says(t, notices(p.command("plans-abandon", "", p.nobody)), "no run")
	run := p.startRun()
	for name, no := range map[string]func(supervisor.Dialog) supervisor.Answer{"no": confirm(false), "dismissed": dismiss} {
		says(t, notices(p.command("plans-abandon", "", p.inTurn(no))), "Nothing was abandoned")
		if got := status(run); got != store.StatusPlanning {
			t.Errorf("%s: the run is %s", name, got)
		}
	}
	p.screen.Has = false
	says(t, notices(p.command("plans-abandon", "", p.nobody)), "pilothouse abandon")
	if got := status(run); got != store.StatusPlanning {
		t.Errorf("with nobody to ask the run is %s", got)
	}
	p.screen.Has = true
	reply := p.command("plans-abandon", "", p.inTurn(func(d supervisor.Dialog) supervisor.Answer {
		if d.Kind != supervisor.DialogConfirm || !strings.Contains(d.Title, run.RunID) {
			t.Errorf("the question does not name the run: %+v", d)
		}
		return confirm(true)(d)
	}))
	says(t, notices(reply), run.RunID, "abandoned")
	if got := status(run); got != store.StatusAbandoned {
		t.Errorf("the run is %s", got)
	}
	if reason := p.writes("main.go"); reason != "" {
		t.Errorf("the workspace of an abandoned run is guarded: %s", reason)
	}
	says(t, notices(p.command("plans-abandon", "", p.nobody)), "no run")
}
