package execute_test

import (
	"testing"

	"pilothouse/integration/scriptedmodel"
	"pilothouse/supervisor"
)

// The executor is still there while its work is reviewed. It must not have the place
// that the reviewers wait for.
func TestAnExecutionIsReviewedAlsoWhereThereIsOnePlace(t *testing.T) {
	t.Parallel()
	s := newScene(t, append([]scriptedmodel.Rule{
		when(`independent reviewers have looked`, says("F-001 accepted: it stays as it is.")),
		when(`the working tree as it is now`, says(finding)),
	}, diligent...)...)
	s.Env = append(s.Env, "PILOTHOUSE_MAX_CHILDREN=1")
	e := s.Must(0, "execute", "PLAN.md", "--approve", s.Digest("PLAN.md"), "--review", "1", "--reviewer-model", "inherit", "--json")
	if r := report(t, e); r.Outcome != supervisor.ExecutionCompleted || len(r.Rounds) != 1 {
		t.Errorf("the report is %+v", r)
	}
}
