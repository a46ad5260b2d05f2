package execute_test

import (
	"strings"
	"testing"

	"pilothouse/integration/scriptedmodel"
	"pilothouse/store"
	"pilothouse/supervisor"
)

const (
	writeBatch = `echo 45 minutes > batch.txt && cat batch.txt`
	bakeFaster = `sed -i 's/45/40/' oven/oven.go && grep 40 oven/oven.go`
)

// diligent carries the plan out: its second check fails at first, and passes when it is
// woken up.
var diligent = []scriptedmodel.Rule{
	when(`Verified: 0 of 2`,
		bash(writeBatch),
		says("batch.txt says `45 minutes`. [DONE:VC-001] [I-001:implemented] [I-002:current]"),
	),
	when(`Verified: 1 of 2`,
		bash(`grep 40 oven/oven.go`), // fails
		bash(bakeFaster),
		says("`grep 40 oven/oven.go` prints the line. [DONE:VC-002]"),
	),
}

const finding = `## Findings

### F-001 · high · The batch has no unit
- Affects: I-001
- Evidence: batch.txt:1 — "45 minutes"
- Impact: a reader cannot tell what it counts.
- Fix: write the unit in full.
- Disposition: accept

## Checked

- batch.txt
`

const clean = "## Findings\n\nNo findings.\n\n## Checked\n\n- batch.txt\n- oven/oven.go\n"

func TestAPlanIsCarriedOutReviewedAndMended(t *testing.T) {
	t.Parallel()
	s := newScene(t, append([]scriptedmodel.Rule{
		when(`independent reviewers have looked`, bash(`echo '45 minutes a batch' > batch.txt`), says("F-001 accepted: batch.txt has its unit, `cat` shows it.")),
		when(`the working tree as it is now`, says(finding)),
	}, diligent...)...)
	e := s.Must(0, "execute", "PLAN.md", "--approve", s.Digest("PLAN.md"), "--review", "1", "--reviewer-model", "inherit", "--json")
	r := report(t, e)
	if r.Outcome != supervisor.ExecutionCompleted || r.Status != store.StatusDone || r.Phase != store.PhaseCompleted || r.WayOut != "" {
		t.Errorf("the report is %+v", r)
	}
	if got := s.Read("batch.txt"); got != "45 minutes a batch\n" {
		t.Errorf("batch.txt is %q", got)
	}
	if got := s.Read("oven/oven.go"); !strings.Contains(got, "Minutes = 40") {
		t.Errorf("oven.go is %q", got)
	}
	for i, evidence := range []string{"batch.txt says `45 minutes`", "`grep 40 oven/oven.go` prints"} {
		if c := r.Checks[i]; !c.Passed || !strings.Contains(c.Evidence, evidence) {
			t.Errorf("check %d is %+v, want evidence %q", i, c, evidence)
		}
	}
	if len(r.Rounds) != 1 || r.Rounds[0].Findings["high"] != 1 || r.Rounds[0].Disposition == "" {
		t.Errorf("the rounds are %+v", r.Rounds)
	}
	changes := map[string]bool{}
	for _, change := range r.Changes {
		changes[change.Path] = change.New
	}
	if isNew, there := changes["batch.txt"]; !there || !isNew || changes["oven/oven.go"] {
		t.Errorf("the changes are %+v", r.Changes)
	}
	if r.Usage.Input == 0 || r.Cost <= 0 || r.Turns < 5 || r.Tokens.OutToks == 0 {
		t.Errorf("usage %+v, cost %v, %d turns, tokens %+v", r.Usage, r.Cost, r.Turns, r.Tokens)
	}
	dir, _, cp := s.OnlyRun()
	if diff := cp.Execution.DoneVCIDs; len(diff) != 2 || cp.ImplementationReview.CompletedRounds != 1 || !cp.ReviewRounds[0].Consolidated {
		t.Errorf("the checkpoint is %+v", cp)
	}
	if text, err := dir.ReadReview(r.Rounds[0].Disposition); err != nil || !strings.Contains(text, "F-001 accepted") {
		t.Errorf("the disposition is %q, %v", text, err)
	}
	if ledger, err := dir.Subagents(); err != nil || len(ledger) != 2 {
		t.Errorf("the ledger is %+v, %v", ledger, err)
	}
	if _, state, err := dir.Owner(); err != nil || state != store.OwnerNone {
		t.Errorf("owner %s, %v", state, err)
	}
}

func TestAReviewGoesOnUntilNothingOfHighSeverityIsLeft(t *testing.T) {
	t.Parallel()
	s := newScene(t, append([]scriptedmodel.Rule{
		when(`independent reviewers have looked`, says("F-001 accepted: it is mended, `cat` shows it.")),
		when(`the working tree as it is now`, scriptedmodel.Step{Text: finding, Times: 1, Then: &scriptedmodel.Step{Text: clean}}),
	}, diligent...)...)
	r := report(t, s.Must(0, "execute", "PLAN.md", "--approve", s.Digest("PLAN.md"), "--review", "high", "--reviewer-model", "inherit", "--json"))
	if r.Outcome != supervisor.ExecutionCompleted || len(r.Rounds) != 2 || r.Rounds[0].Findings["high"] != 1 || len(r.Rounds[1].Findings) != 0 {
		t.Errorf("the report is %+v", r)
	}
}

func TestNothingIsChangedWithoutAnApprovalOfThisVersion(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, test := range map[string]struct {
		args  []string
		code  int
		words string
	}{
		"nobody can be asked": {nil, 3, "nobody can be asked here"},
		"another version":     {[]string{"--approve", strings.Repeat("a", 64)}, 3, "not the version that was approved"},
		"no digest":           {[]string{"--approve", "yes"}, 2, "is no SHA-256"},
		"no such run":         {[]string{"--run", "20260501T120000Z-none"}, 2, "run does not exist"},
	} {
		e := s.Start(append([]string{"execute", "PLAN.md"}, test.args...)...).Wait()
		if e.Code != test.code || !strings.Contains(e.Stderr, test.words) {
			t.Errorf("%s: ended with %d, %q; want %d with %q", name, e.Code, e.Stderr, test.code, test.words)
		}
		if test.code == 3 && !strings.Contains(e.Stderr, "--approve "+s.Digest("PLAN.md")) {
			t.Errorf("%s: the way out is not in %q", name, e.Stderr)
		}
	}
	if stats := s.Model.Stats(); stats.Requests != 0 {
		t.Errorf("%d requests were made", stats.Requests)
	}
	s.Write("EMPTY.md", "# No checks\n")
	if e := s.Start("execute", "EMPTY.md", "--approve", s.Digest("EMPTY.md")).Wait(); e.Code != 2 || !strings.Contains(e.Stderr, "Verifier Checklist") {
		t.Errorf("a plan without checks: %d, %q", e.Code, e.Stderr)
	}
}
