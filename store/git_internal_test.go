package store

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoVariableThatGitItselfCallsLocalReachesIt(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "rev-parse", "--local-env-vars").Output()
	if err != nil {
		t.Fatal(err)
	}
	local := strings.Fields(string(out))
	if !slices.Contains(local, "GIT_DIR") || !slices.Contains(local, "GIT_CONFIG_COUNT") {
		t.Fatalf("git lists %v", local)
	}
	var environment []string
	for _, name := range local {
		environment = append(environment, name+"=1")
	}
	if left := gitEnvironment(environment); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestGitSeesAllOfTheEnvironmentButWhatMovesTheRepository(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ environment, want []string }{
		"other variables stay": {
			[]string{"PATH=/bin", "GIT_DIR=/x", "GIT_CONFIG_GLOBAL=/g", "GIT_SSH_COMMAND=ssh", "GIT_CEILING_DIRECTORIES=/home", "A=GIT_DIR=/x"},
			[]string{"PATH=/bin", "GIT_CONFIG_GLOBAL=/g", "GIT_SSH_COMMAND=ssh", "GIT_CEILING_DIRECTORIES=/home", "A=GIT_DIR=/x"},
		},
		"settings go": {
			[]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.worktree", "GIT_CONFIG_VALUE_0=/x", "GIT_CONFIG_PARAMETERS='core.bare'='true'"},
			[]string{},
		},
		"leave to use a repository stays": {
			[]string{
				"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=core.worktree", "GIT_CONFIG_VALUE_0=/x", "GIT_CONFIG_KEY_1=Safe.Directory", "GIT_CONFIG_VALUE_1=*",
				"GIT_CONFIG_KEY_2=safe.bareRepository", "GIT_CONFIG_VALUE_2=explicit",
			},
			[]string{
				"GIT_CONFIG_KEY_0=Safe.Directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_KEY_1=safe.bareRepository", "GIT_CONFIG_VALUE_1=explicit", "GIT_CONFIG_COUNT=2",
			},
		},
		"settings beyond their number are none": {
			[]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*"},
			[]string{},
		},
		"a number beyond the settings": {
			[]string{"GIT_CONFIG_COUNT=2000000000", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
			[]string{"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_CONFIG_COUNT=1"},
		},
		"no number": {
			[]string{"GIT_CONFIG_COUNT=many", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
			[]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tt.environment)
			if diff := cmp.Diff(tt.want, gitEnvironment(tt.environment)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.Equal(before, tt.environment) {
				t.Error("the environment itself was changed")
			}
		})
	}
}
