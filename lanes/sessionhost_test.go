package lanes_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestASessionIsOnItsOwnInTheWorkspaceOfItsUser(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		extension string
		args      []string // beside those of every session
		refiner   []string
	}{
		"an executor, in which pi-plans stays inert": {"", nil, []string{"PI_PLANS_REFINER=1"}},
		"a planner, which has one extension":         {"/ext/index.ts", []string{"--extension", "/ext/index.ts"}, []string{"PI_PLANS_REFINER=0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := piHost(t, tellTale)
			host.Extension = test.extension
			host.Command.Untrusting = true
			host.Environ = append(host.Environ, "GIT_DIR=/elsewhere/.git", "GIT_WORK_TREE=/elsewhere", "GIT_INDEX_FILE=/x", "GIT_AUTHOR_NAME=Pilot", "GIT_CONFIG_GLOBAL=/dev/null")
			s := spec("executor")
			s.Dir, s.Model, s.Tools = t.TempDir(), "sim/plain", []string{"read", "bash"}
			child, err := host.StartSession(context.Background(), s, "00-inner-01")
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Say([]byte("one\n")); err != nil {
				t.Error(err)
			}
			if err := child.Say([]byte("two\n")); err != nil {
				t.Error(err)
			}
			child.HangUp()
			data, err := io.ReadAll(child.Stdout())
			if err != nil {
				t.Error(err)
			}
			if exit := child.Wait(); exit.Code != 0 {
				t.Errorf("exit status %d: %s", exit.Code, exit.Stderr)
			}
			told := map[string][]string{}
			for line := range strings.Lines(string(data)) {
				kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				told[kind] = append(told[kind], rest)
			}
			args := told["arg"]
			want := slices.Concat([]string{
				"first", "--mode", "rpc", "--no-session", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--tools", "read,bash",
			}, test.args, []string{"--no-approve", "--model", "sim/plain", "--append-system-prompt"})
			if diff := cmp.Diff(want, args[:len(args)-1]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"one", "two"}, told["task"]); diff != "" {
				t.Error(diff)
			}
			about := func(prefixes ...string) []string {
				found := slices.DeleteFunc(slices.Clone(told["env"]), func(variable string) bool {
					return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
				})
				slices.Sort(found)
				return found
			}
			if diff := cmp.Diff([]string{"GIT_AUTHOR_NAME=Pilot", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"}, about("GIT_")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.refiner, about("PI_PLANS_REFINER=")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"TRACEPARENT=00-inner-01"}, about("TRACEPARENT=")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
