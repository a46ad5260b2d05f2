package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrapBreaksAtBlanksAndKeepsIdsWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"short", "as it is", "as it is"},
		{"an id at the edge", "let only I-004 decide", "let only\nI-004 decide"},
		{"a word that is too long", "see src/a/very/long/path.go there", "see\nsrc/a/very/long/path.go\nthere"},
		{"wide characters", "über — öffnet sie", "über —\nöffnet sie"},
		{"lines of their own", "one\n\ntwo", "one\n\ntwo"},
		{"a list", "- one two three\n- four", "- one two\n  three\n- four"},
	} {
		if diff := cmp.Diff(test.want, wrap(test.text, 12)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}
