package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guardOf runs the subcommand in a directory that is no repository.
func guardOf(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, message bytes.Buffer
	status = run(append([]string{"guard", "--workdir", t.TempDir()}, args...), streams{in: strings.NewReader(""), out: &out, err: &message})
	return status, out.String(), message.String()
}

func TestGuardTellsItsVerdictByStatusAndReason(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		status int
		out    string // the beginning of stdout
		err    string // a part of stderr
	}{
		{[]string{"git status && git log"}, exitDone, "allow: every command of it only reads\n", ""},
		{[]string{"ls; rm x"}, exitRefused, "block: Blocked `rm x`: rm removes files. ", ""},
		{[]string{""}, exitRefused, "block: ", ""},
		{[]string{"--", "-x"}, exitRefused, "block: ", ""},
		{[]string{"--tool", "read", "--args", `{"path":"x"}`}, exitDone, "allow: ", ""},
		{[]string{"--tool", "bash", "--args", `{"command":"ls"}`}, exitDone, "allow: ", ""},
		{[]string{"--tool", "bash", "--args", `{"command":"rm x"}`}, exitRefused, "block: Blocked `rm x`: ", ""},
		{[]string{"--tool", "write", "--args", `{"path":"main.go","content":"x"}`}, exitRefused, "block: Blocked `write main.go`: ", ""},
		{[]string{"--tool", "wiki"}, exitRefused, "block: ", ""},
		{[]string{"--tool", "wiki", "--side-effect", "none"}, exitDone, "allow: ", ""},
		{[]string{"--tool", "read", "--side-effect", "external"}, exitRefused, "block: ", ""},
		{nil, exitUsage, "", "guard takes one shell command, 0 were given"},
		{[]string{"git", "status"}, exitUsage, "", "quote it"},
		{[]string{"--tool", "bash", "ls"}, exitUsage, "", "not both"},
		{[]string{"--args", "{}", "ls"}, exitUsage, "", "name it with --tool"},
		{[]string{"--tool", "bash", "--args", `[1]`}, exitUsage, "", "--args is no JSON object"},
		{[]string{"--tool", "bash", "--args", `{`}, exitUsage, "", "--args is no JSON object"},
	} {
		status, out, message := guardOf(t, test.args...)
		if status != test.status || !strings.HasPrefix(out, test.out) || test.out == "" && out != "" || !strings.Contains(message, test.err) {
			t.Errorf("%q: status %d, stdout %q, stderr %q", test.args, status, out, message)
		}
	}
}

func TestGuardPrintsOneObjectWithJSON(t *testing.T) {
	t.Parallel()
	type segment struct{ Text, Verdict, Reason string }
	type object struct {
		Verdict, Reason string
		Segments        []segment
	}
	for _, test := range []struct {
		args   []string
		status int
		want   object
	}{
		{[]string{"--json", "ls | wc -l"}, exitDone, object{
			"allow", "every command of it only reads", []segment{{"ls", "allow", "only reads"}, {"wc -l", "allow", "only reads"}},
		}},
		{[]string{"--json", "ls && touch x"}, exitRefused, object{
			"block",
			"Blocked `touch x`: touch writes files. Plan mode only reads: inspect with other commands, and propose the change with exit_plan_mode, or ask the user to leave with /plan off.",
			[]segment{{"ls", "allow", "only reads"}, {"touch x", "block", "touch writes files"}},
		}},
		{[]string{"--json", "--tool", "ls"}, exitDone, object{"allow", "the tool only reads", []segment{}}},
	} {
		status, out, message := guardOf(t, test.args...)
		var got object
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Errorf("%q: %v in %q", test.args, err, out)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || status != test.status || message != "" {
			t.Errorf("%q: status %d, stderr %q: %s", test.args, status, message, diff)
		}
	}
}
