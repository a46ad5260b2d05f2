package supervisor_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// carriedOut is a session whose plan is carried out and whose implementation is reviewed
// until a condition is met.
func (b *bundle) carriedOut(condition string) (*pi, store.RunDir) {
	b.t.Helper()
	p, run := b.executing("s1", threeChecks)
	p.says("[DONE:VC-001][DONE:VC-002][DONE:VC-003]")
	if err := p.records(supervisor.CheckpointParams{Transition: "implementation-review-configured", TerminationCondition: condition}); err != nil {
		b.t.Fatal(err)
	}
	return p, run
}

func (p *pi) records(step supervisor.CheckpointParams) error {
	_, err := p.system.Plans(p.t.Context(), p.Session, supervisor.PlansAction{Action: "record-checkpoint", Checkpoint: &step})
	return err
}

// reviewed starts a round of the implementation review.
func (p *pi) reviewed(run store.RunDir) (supervisor.RoundResult, error) {
	cp, err := run.LoadCheckpoint()
	if err != nil {
		p.t.Fatal(err)
	}
	return p.system.Refine(p.t.Context(), supervisor.RefineRequest{
		Session: p.Session, PlanPath: cp.Plan.Path, Target: actors.TargetImplementation, Reviewers: 1, Model: supervisor.ModelAnswer{Answered: true},
	}, nil)
}

// finished makes a whole round, in which the reviewer answers with a text.
func (p *pi) finished(run store.RunDir, answer string) {
	p.t.Helper()
	round, err := p.reviewed(run)
	if err != nil {
		p.t.Fatal(err)
	}
	overwrite(p.t, *round.Lanes[0].ResultFile, answer)
	for _, step := range []supervisor.CheckpointParams{{Transition: "review-consolidated", RoundID: round.RoundID}, {Transition: "implementation-round-finished"}} {
		if err := p.records(step); err != nil {
			p.t.Fatal(err)
		}
	}
}

const (
	cleanReview = "No findings.\n\nChecked:\n- all of it\n"
	highReview  = "## F-001 high: It leaks\n- Affects: I-1\n- Evidence: main.go:3 \"x := open()\"\n- Impact: it leaks\n- Fix: close it\n- Disposition: accept\n"
)

var completion = supervisor.CheckpointParams{Transition: "completed", Evidence: "all of it"}

func TestTheReviewOfAnImplementationIsHeldToItsNumberOfRounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.carriedOut("2 rounds")
	for _, want := range []string{"0 of 2 rounds", "1 of 2 rounds"} {
		refusedBy(t, p.records(completion), want)
		p.finished(run, highReview)
	}
	_, err := p.reviewed(run)
	refusedBy(t, err, "2 of at most 2 rounds are done")
	if err := p.records(completion); err != nil {
		t.Error(err)
	}
	if cp := b.checkpoint(run); cp.Phase != store.PhaseCompleted || cp.NextAction != store.ActionNone || cp.ImplementationReview.CompletedRounds != 2 {
		t.Errorf("phase %s, %+v", cp.Phase, cp.ImplementationReview)
	}
}

func TestNoReviewOfAnImplementationHasMoreThanFiveRounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.carriedOut("Until no finding of high severity is left (at most 5 rounds)")
	refusedBy(t, p.records(completion), "no round of the implementation review is done")
	for range 5 {
		p.finished(run, highReview)
	}
	_, err := p.reviewed(run)
	refusedBy(t, err, "5 of at most 5 rounds are done")
	if err := p.records(completion); err != nil {
		t.Errorf("at the cap: %v", err)
	}
}

func TestAReviewUntilNothingHighIsLeftEndsWithACleanRound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.carriedOut("until no high-severity finding")
	p.finished(run, highReview)
	refusedBy(t, p.records(completion), "has findings of high severity (general/F-001)")
	p.finished(run, "LGTM")
	refusedBy(t, p.records(completion), "can be read as a review")
	p.finished(run, cleanReview)
	if err := p.records(completion); err != nil {
		t.Error(err)
	}
}

func TestARoundWithResultsIsFinishedBeforeTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.carriedOut("3 rounds")
	first, err := p.reviewed(run)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []supervisor.CheckpointParams{{Transition: "review-consolidated", RoundID: first.RoundID}, {Transition: "implementation-round-finished"}} {
		_, err = p.reviewed(run)
		refusedBy(t, err, "round "+first.RoundID+" has results")
		if err := p.records(step); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = p.reviewed(run); err != nil {
		t.Error(err)
	}
	if cp := b.checkpoint(run); cp.ImplementationReview.CompletedRounds != 1 {
		t.Errorf("got %+v", cp.ImplementationReview)
	}
}

func TestTheFindingsOfARunAreShownOncePerFault(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, run := b.carriedOut("3 rounds")
	cp := b.checkpoint(run)
	round, err := p.system.Refine(t.Context(), supervisor.RefineRequest{
		Session: p.Session, PlanPath: cp.Plan.Path, Target: actors.TargetImplementation, Reviewers: 3, Model: supervisor.ModelAnswer{Answered: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, lane := range round.Lanes {
		answer := highReview
		if i == 2 {
			answer = cleanReview
		}
		overwrite(t, filepath.Clean(*lane.ResultFile), answer)
	}
	detail, err := b.system.Show(t.Context(), p.Session, run.ID)
	if err != nil || len(detail.Findings) != 1 {
		t.Fatalf("%+v, %v", detail.Findings, err)
	}
	got := detail.Findings[0]
	want := []actors.FindingSource{{LaneID: round.Lanes[0].LaneID, ID: "F-001"}, {LaneID: round.Lanes[1].LaneID, ID: "F-001"}}
	if got.RoundID != round.RoundID || got.Target != "implementation" || len(got.Findings) != 1 || got.Findings[0].Agreement != 2 || got.Findings[0].Title != "It leaks" {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff(want, got.Findings[0].Sources); diff != "" {
		t.Error(diff)
	}
}
