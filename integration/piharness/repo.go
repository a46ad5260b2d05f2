package piharness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// repoFiles are the contents of Repo, by path.
var repoFiles = map[string]string{
	"README.md":        "# Bakery\n\nTakes orders for bread and says when they are done.\n",
	"go.mod":           "module example.org/bakery\n\ngo 1.22\n",
	"order/order.go":   "// Package order knows what was asked for.\npackage order\n\n// Order is a number of loaves.\ntype Order struct{ Loaves int }\n",
	"oven/oven.go":     "// Package oven bakes.\npackage oven\n\n// Minutes is how long a batch takes.\nconst Minutes = 45\n",
	"docs/decision.md": "# One oven\n\nOne oven is enough until there are more than forty orders a day.\n",
}

// Repo is a new git repository with a handful of files in one commit on branch
// main. It goes away with the test.
func Repo(t testing.TB) string {
	t.Helper()
	dir := shortTempDir(t)
	for name, text := range repoFiles {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "--quiet", "--initial-branch=main")
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--message=Start the bakery")
	return dir
}

func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, gitEnv()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// gitEnv makes git the same on every machine: no configuration from outside, a
// name for commits, no question at a terminal.
func gitEnv() []string {
	return []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Pilot", "GIT_AUTHOR_EMAIL=pilot@example.org",
		"GIT_COMMITTER_NAME=Pilot", "GIT_COMMITTER_EMAIL=pilot@example.org",
	}
}

// Git runs git in a directory of the scene.
func (s *Scene) Git(dir string, args ...string) {
	s.t.Helper()
	git(s.t, dir, args...)
}
