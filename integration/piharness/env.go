package piharness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Env is a whole environment for Pi and pilothouse, made anew for this test and
// free of whatever the developer's own session sets: agentDir as Pi's folder, no
// network use besides the model, a PATH that starts with the pinned rg and Node,
// and a HOME and a TMPDIR that go away with the test. Their paths are short, so
// that a unix socket fits below them. Only what Node has compiled of Pi is kept, as
// it is for a user, since a third of a start goes into that.
func Env(t testing.TB, agentDir string) []string {
	t.Helper()
	base := shortTempDir(t)
	home, tmp := filepath.Join(base, "home"), filepath.Join(base, "tmp")
	for _, dir := range []string{home, tmp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return append([]string{
		"PI_OFFLINE=1",
		"PI_TELEMETRY=0",
		"PI_SKIP_VERSION_CHECK=1",
		"PI_CODING_AGENT_DIR=" + agentDir,
		"PATH=" + searchPath(t),
		"HOME=" + home,
		"TMPDIR=" + tmp,
		"NODE_COMPILE_CACHE=" + filepath.Join(modules(t), ".compile-cache"),
		"LANG=C.UTF-8",
	}, gitEnv()...)
}

// searchPath puts the pinned tools before the machine's own.
func searchPath(t testing.TB) string {
	t.Helper()
	var dirs []string
	modules := modules(t)
	if rg := pinnedRipgrep(modules); rg != "" {
		dirs = append(dirs, filepath.Dir(rg))
	} else if _, err := exec.LookPath("rg"); err != nil {
		t.Fatalf("ripgrep is missing, and Pi's grep tool needs it: run \"make pi\" on linux/amd64, elsewhere install rg")
	}
	if node := pinnedNode(modules); node != "" {
		dirs = append(dirs, filepath.Dir(node))
	}
	dirs = append(dirs, os.Getenv("PATH"))
	return strings.Join(dirs, string(os.PathListSeparator))
}

// shortTempDir is like t.TempDir without the test's name in the path, which may
// alone be longer than a socket address.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ph")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	return dir
}
