package supervisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/supervisor"
)

func TestARoundOfReferencesGoesOnWithThoseThatHaveNoAnswer(t *testing.T) {
	t.Parallel()
	for name, inRun := range map[string]bool{"in a run": true, "in none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if inRun {
				b.startRun()
			}
			there, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
			req := supervisor.AnalyzeRequest{
				Session: b.session, Context: "a bakery", Model: supervisor.ModelAnswer{Answered: true},
				Refs: []actors.Reference{{ID: "a", LocalPath: there}, {ID: "b", LocalPath: missing}},
			}
			first, err := b.system.AnalyzeRefs(context.Background(), req, nil)
			if err != nil || first.Complete() != 1 {
				t.Fatalf("%+v, %v", first, err)
			}
			if err := os.Mkdir(missing, 0o700); err != nil {
				t.Fatal(err)
			}
			again := supervisor.AnalyzeRequest{Session: b.session, Model: req.Model, ResumeRoundID: first.RoundID}
			second, err := b.system.AnalyzeRefs(context.Background(), again, nil)
			if err != nil {
				t.Fatal(err)
			}
			if second.RoundID != first.RoundID || second.RunID != first.RunID || second.Complete() != 2 {
				t.Errorf("resumed %+v", second)
			}
			for i, reused := range []bool{true, false} {
				if lane := second.Lanes[i]; lane.Reused != reused || lane.RefID != string(rune('a'+i)) || lane.ResultFile == nil {
					t.Errorf("lane %d is %+v", i, lane)
				}
			}
			if diff := cmp.Diff(first.Lanes[0].Output, second.Lanes[0].Output); diff != "" {
				t.Error(diff)
			}
			if inRun {
				detail, err := b.system.Show(context.Background(), b.session, first.RunID)
				if err != nil || len(detail.Rounds) != 1 || detail.Rounds[0].Lanes[1].Status != "complete" || detail.Rounds[0].Context != "a bakery" {
					t.Errorf("on record: %+v, %v", detail.Rounds, err)
				}
			}

			var input *supervisor.InputError
			other := again
			other.Refs = []actors.Reference{{ID: "c", LocalPath: there}}
			if _, err := b.system.AnalyzeRefs(context.Background(), other, nil); !errors.As(err, &input) {
				t.Errorf("with other references: %v", err)
			}
			other = again
			other.ResumeRoundID = "refs-rnone"
			if _, err := b.system.AnalyzeRefs(context.Background(), other, nil); !errors.As(err, &input) {
				t.Errorf("a round that is not there: %v", err)
			}
		})
	}
}

func TestARoundOfReviewersIsNoRoundOfReferences(t *testing.T) {
	t.Parallel()
	b := setup(t)
	review, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil || review.Lanes[0].Status != lanes.Complete {
		t.Fatal(review, err)
	}
	var input *supervisor.InputError
	_, err = b.system.AnalyzeRefs(context.Background(), supervisor.AnalyzeRequest{
		Session: b.session, Model: supervisor.ModelAnswer{Answered: true}, ResumeRoundID: review.RoundID,
	}, nil)
	if !errors.As(err, &input) {
		t.Errorf("got %v", err)
	}
	dir := b.run(review.RunID)
	lost := b.mustResume(dir).Brief
	lacks(t, lost, "Unfinished rounds")
}
