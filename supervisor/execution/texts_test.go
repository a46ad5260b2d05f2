package execution_test

import (
	"strings"
	"testing"
)

func TestTheUserSeesWhatIsApprovedWithWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	s := state("## Verifier Checklist\n- [ ] VC-1 "+strings.Repeat("long ", 40)+"\n- [ ] VC-2 b\n- [ ] VC-2 c\n", done("VC-2"))
	lines := strings.Split(strings.TrimSpace(s.Items()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "[ ] VC-1 long") || !strings.HasSuffix(lines[0], "…") || lines[1] != "[x] VC-2 b" || !strings.HasPrefix(lines[2], "! line 4: VC-2 stands on line 3 already") {
		t.Errorf("got %q", lines)
	}
}

func TestTheBeginningAndTheEndNameThePlan(t *testing.T) {
	t.Parallel()
	s := state(covered, done("VC-1"), done("VC-2"), done("VC-3"))
	if text := s.Started("/w/PLAN_v1.md"); !strings.Contains(text, "`/w/PLAN_v1.md`, 3 checks") || !strings.Contains(text, "[DONE:VC-1]") {
		t.Errorf("got %q", text)
	}
	text := s.Completed("/w/PLAN_v1.md")
	if !strings.Contains(text, "/w/PLAN_v1.md") || strings.Count(text, "✓") != 3 {
		t.Errorf("got %q", text)
	}
}
