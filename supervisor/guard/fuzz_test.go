package guard_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/guard"
)

func FuzzShellHasOneVerdictForEveryText(f *testing.F) {
	for _, row := range append(rows(f, "shell.tsv"), rows(f, "traps.tsv")...) {
		f.Add(row.command)
	}
	policy := guard.Policy{Workspace: "/w/repo"}
	f.Fuzz(func(t *testing.T, command string) {
		verdict := policy.Shell(command)
		if diff := cmp.Diff(verdict, policy.Shell(command)); diff != "" {
			t.Errorf("two verdicts: %s", diff)
		}
		if verdict.Reason == "" || len(verdict.Segments) == 0 {
			t.Errorf("no reason or no segments: %+v", verdict)
		}
		if !verdict.Allowed() {
			return
		}
		for _, s := range verdict.Segments {
			if s.Decision != guard.Allow {
				t.Errorf("allowed with the blocked segment %+v", s)
			}
		}
		// A bad segment at the end is seen, whatever stands before it, unless that
		// makes it a comment, data or an argument.
		if got := policy.Shell(command + "\nrm x"); got.Allowed() {
			t.Errorf("%q is allowed with a line that removes a file", command)
		}
		if got := policy.Shell("rm x\n" + command); got.Allowed() {
			t.Errorf("%q is allowed after a line that removes a file", command)
		}
	})
}
