package store

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The shapes of the format as it states them (spec: checkpoint 2.1).
func TestShapesAreThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	shapes := map[string]struct {
		pattern string
		dots    bool // two dots together are allowed
		holds   func(string) bool
	}{
		"id":   {`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`, false, ValidID},
		"run":  {`^\d{8}T\d{6}Z-[A-Za-z0-9][A-Za-z0-9._-]{0,200}$`, false, ValidRunID},
		"time": {`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`, true, func(s string) bool { return hasShape(s, "0000-00-00T00:00:00Z") }},
		"sha":  {`^[0-9a-f]{64}$`, true, isSHA256},
	}
	for name, shape := range shapes {
		re := regexp.MustCompile(shape.pattern)
		rapid.Check(t, func(t *rapid.T) {
			s := rapid.StringMatching(strings.Trim(shape.pattern, "^$")).Draw(t, "text")
			if rapid.Bool().Draw(t, "spoil") {
				at := rapid.IntRange(0, len(s)).Draw(t, "at")
				s = s[:at] + rapid.SampledFrom([]string{".", "..", "/", "\x00", "\n", "é", "_", "0", "Z", ""}).Draw(t, "with") + s[min(len(s), at+rapid.IntRange(0, 2).Draw(t, "instead of")):]
			}
			if want := re.MatchString(s) && (shape.dots || !strings.Contains(s, "..")); shape.holds(s) != want {
				t.Fatalf("%s: %q is taken as %v", name, s, !want)
			}
		})
	}
	if ValidRunID("20260101T000000Z-" + strings.Repeat("a", 239)) {
		t.Error("a name that no file system takes is taken")
	}
}
