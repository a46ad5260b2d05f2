package execution_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/execution"
)

func marker(kind execution.MarkerKind, id string) execution.Marker {
	return execution.Marker{Kind: kind, ID: id}
}

func TestMarkersAreFoundInOrderWithRepetitions(t *testing.T) {
	t.Parallel()
	var s execution.Scanner
	got := s.Scan("did [I-1:current] and [DONE:VC-001][DONE:VC-001], `[I-2:implemented]` [[I-3:validating]] [I-3:finished] [DONE:VC-x] [DONE:VC-] [done:VC-1] [DONE: VC-1] [I-:current] [VC-1:current] [DONE:I-1] [see [DONE:VC-2]")
	want := []execution.Marker{
		marker(execution.MarkerCurrent, "I-1"), marker(execution.MarkerDone, "VC-001"), marker(execution.MarkerDone, "VC-001"),
		marker(execution.MarkerImplemented, "I-2"), marker(execution.MarkerValidating, "I-3"), marker(execution.MarkerDone, "VC-2"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMarkerCountsWhereverItIsSplit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[DONE:VC-001]", "[I-12:current]"} {
		for cut := 1; cut < len(text); cut++ {
			for _, joint := range []string{"", "\n", "\r\n"} {
				var one, two execution.Scanner
				if got := one.Scan("a " + text[:cut] + joint + text[cut:] + " b"); len(got) != 1 {
					t.Errorf("split over text blocks as %q %q: %v", text[:cut]+joint, text[cut:], got)
				}
				first := two.Scan("a " + text[:cut] + joint)
				if got := append(first, two.Scan(text[cut:]+" b")...); len(got) != 1 {
					t.Errorf("split over messages as %q %q: %v", text[:cut]+joint, text[cut:], got)
				}
			}
		}
	}
}

func TestAnOpenBracketIsKeptOnlyAsLongAsAMarkerMayFollow(t *testing.T) {
	t.Parallel()
	var s execution.Scanner
	s.Scan("see [" + strings.Repeat("x", 70))
	if got := s.Scan("001]"); got != nil {
		t.Errorf("got %v", got)
	}
	s.Scan("[DONE:VC-1")
	if got := s.Scan(" [DONE:VC-2] 3]"); len(got) != 1 || got[0].ID != "VC-2" {
		t.Errorf("got %v", got)
	}
	s.Scan("[DONE:VC-1")
	s.Scan("") // a message of tool calls alone
	if got := s.Scan("0]"); len(got) != 1 || got[0].ID != "VC-10" {
		t.Errorf("got %v", got)
	}
}

// Where a text is cut makes no difference.
func FuzzCutsMakeNoDifferenceToMarkers(f *testing.F) {
	f.Add("a [DONE:VC-001] [I-2:current", ":x] [I-2:validating]", 3)
	f.Add("[DONE:VC-", "1]", 9)
	f.Fuzz(func(t *testing.T, a, b string, cut int) {
		text := a + b
		if cut < 0 || cut > len(text) || longBracket(text) {
			return
		}
		var whole, parts execution.Scanner
		want := whole.Scan(text)
		got := append(parts.Scan(text[:cut]), parts.Scan(text[cut:])...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// longBracket tells whether a marker with many digits could be lost at a cut.
func longBracket(text string) bool {
	for _, part := range strings.Split(text, "[") {
		if len(part) >= 63 {
			return true
		}
	}
	return false
}
