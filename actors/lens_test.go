package actors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
)

func TestReviewersAreClampedAndDividedByLens(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]string{
		-1: {"general"}, 0: {"general"}, 1: {"general"},
		2: {"correctness", "ordering"},
		3: {"correctness", "ordering", "verification"},
		9: {"correctness", "ordering", "verification"},
	} {
		if diff := cmp.Diff(want, actors.ReviewerLanes(n)); diff != "" {
			t.Errorf("ReviewerLanes(%d): %s", n, diff)
		}
	}
}

func TestOnlyTheDividedLanesHaveALensAndEachItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range actors.ReviewerLanes(3) {
		lens := actors.Lens(id)
		if other, dup := seen[lens]; lens == "" || dup {
			t.Errorf("lane %s has the lens %q, that of %q", id, lens, other)
		}
		seen[lens] = id
	}
	for _, id := range []string{"general", "criticizer", "ref-1", ""} {
		if lens := actors.Lens(id); lens != "" {
			t.Errorf("lane %q has the lens %q, want none", id, lens)
		}
	}
}
