package proc

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTheTailIsTheEndOfWhatWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kept := tail{limit: rapid.IntRange(1, 20).Draw(t, "limit")}
		all := ""
		for _, piece := range rapid.SliceOf(rapid.StringMatching(`[a-z]{0,30}`)).Draw(t, "pieces") {
			if n, err := kept.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("write: %d, %v", n, err)
			}
			all += piece
		}
		want := all[max(0, len(all)-kept.limit):]
		if got := kept.String(); got != want || kept.total != int64(len(all)) {
			t.Fatalf("tail %q of %d bytes, want %q of %d", got, kept.total, want, len(all))
		}
	})
}

func TestACutCharacterIsMadeValid(t *testing.T) {
	t.Parallel()
	kept := tail{limit: 4}
	_, _ = kept.Write([]byte("xé€"))
	if got := kept.String(); !strings.HasSuffix(got, "€") || got == "é€" {
		t.Errorf("tail %q", got)
	}
}

func TestAnOwnersNameIsRead(t *testing.T) {
	t.Parallel()
	want := Identity{PID: 12, StartTicks: 345, BootID: bootID(), PIDNamespace: "4026531836"}
	if got, ok := parseOwner(ownerName(want)); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, name := range []string{"", "pilothouse-", "pilothouse-1-2", "pilothouse-1-2-3-4", "pilothouse-1-2-3x", "user.slice", "pilothouse-a-1--2"} {
		if got, ok := parseOwner(name); ok {
			t.Errorf("%q is read as %+v", name, got)
		}
	}
}
