package store_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/store"
)

var pinned = time.Date(2026, 8, 25, 13, 0, 0, 0, time.UTC)

// helperVariable makes the test binary act as another process.
const helperVariable = "STORE_TEST_HELPER"

func TestMain(m *testing.M) {
	if helper := os.Getenv(helperVariable); helper != "" {
		os.Exit(runHelper(helper, os.Args[1:]))
	}
	home, err := os.MkdirTemp("", "store-home-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name, value := range map[string]string{
		"HOME": home, "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
		"GIT_CEILING_DIRECTORIES": os.TempDir(),
	} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// tempDir is t.TempDir without symbolic links, so that paths can be compared.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func newRepo(t testing.TB) string {
	t.Helper()
	dir := tempDir(t)
	gitIn(t, dir, "init", "-q")
	return dir
}

func ensure(t testing.TB, dir string) store.Root {
	t.Helper()
	root, _, err := store.Ensure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func newRun(t testing.TB) store.RunDir {
	t.Helper()
	root := ensure(t, newRepo(t))
	run, _, err := store.StartRun(root, store.StartRunRequest{Topic: "Same topic", Skill: "plan-normal", RequestText: "do it"}, pinned)
	if err != nil {
		t.Fatal(err)
	}
	return runDir(t, root, run.RunID)
}

func runDir(t testing.TB, root store.Root, id string) store.RunDir {
	t.Helper()
	dir, err := root.Run(id)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func withCheckpoint(t testing.TB) store.RunDir {
	t.Helper()
	dir := newRun(t)
	if _, err := dir.CreateCheckpoint(pinned); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
