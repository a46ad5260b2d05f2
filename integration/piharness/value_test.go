package piharness_test

import (
	"testing"

	"pilothouse/integration/piharness"
)

func TestAValueIsLookedIntoAndWhatIsNotThereIsEmpty(t *testing.T) {
	t.Parallel()
	v := piharness.Parse([]byte(`{"a":[{"b":"x"},{"b":"y"},{}],"n":3,"yes":true}`))
	if got := v.At("a.1.b").Text(); got != "y" {
		t.Errorf("a.1.b is %q", got)
	}
	if got := v.At("a").Each("b"); got != "x y " {
		t.Errorf("each b is %q", got)
	}
	if v.At("n").Number() != 3 || !v.At("yes").Truth() || len(v.At("a").List()) != 3 {
		t.Errorf("read as %s", v)
	}
	for _, path := range []string{"a.3.b", "a.-1", "a.b", "n.x", "none"} {
		if got := v.At(path); got.String() != "null" || got.Text() != "" || got.Truth() || got.Number() != 0 || len(got.List()) != 0 {
			t.Errorf("%s is %s", path, got)
		}
	}
	if got := piharness.Parse([]byte("{")).String(); got != "null" {
		t.Errorf("no JSON is %s", got)
	}
}
