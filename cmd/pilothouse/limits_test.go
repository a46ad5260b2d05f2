package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheNumberOfChildrenComesFromTheEnvironment(t *testing.T) {
	for text, want := range map[string]int{"": 0, "1": 1, "48": 48} {
		t.Setenv(maxChildrenVariable, text)
		if got, err := maxChildren(); got != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-3", "many", "3.5", " 3", "99999999999999999999"} {
		t.Setenv(maxChildrenVariable, text)
		if got, err := maxChildren(); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
}

func TestANumberOfChildrenThatMakesNoSenseIsAMistakeOfUsage(t *testing.T) {
	for _, test := range []struct {
		variable string
		args     []string
		says     string
	}{
		{"", []string{"serve", "--max-children", "0"}, "--max-children 0 is not a number from 1"},
		{"9", []string{"serve", "--max-children", "-1"}, "--max-children -1 is not a number from 1"},
		{"many", []string{"serve"}, `PILOTHOUSE_MAX_CHILDREN "many" is not a number from 1`},
		{"0", []string{"runs", "--local"}, `PILOTHOUSE_MAX_CHILDREN "0" is not a number from 1`},
	} {
		t.Setenv(maxChildrenVariable, test.variable)
		var out, message bytes.Buffer
		args := append([]string{"--workdir", t.TempDir()}, test.args...)
		status := run(args, streams{in: strings.NewReader(""), out: &out, err: &message})
		if status != exitUsage || !strings.Contains(message.String(), test.says) || out.Len() > 0 {
			t.Errorf("%q with %q: status %d, stdout %q, stderr %q", test.args, test.variable, status, out.String(), message.String())
		}
	}
}
