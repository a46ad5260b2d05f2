package piharness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Binary is the path of the program under test. PILOTHOUSE_BIN names one that is
// ready; otherwise cmd/pilothouse is built, once in a test process and with the
// race detector if the tests run with it.
//
// It is built into the repository's bin folder rather than a temporary one: Go
// has no hook at the end of a test process that could clear the latter.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("PILOTHOUSE_BIN"); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			t.Fatalf("PILOTHOUSE_BIN names no program: %v", err)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return abs
	}
	root := root(t)
	built.once.Do(func() { built.path, built.err = build(root) })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

var built struct {
	once sync.Once
	path string
	err  error
}

// build replaces the binary by a rename, since another test process may be
// running the one that is there.
func build(root string) (string, error) {
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("build pilothouse: %w", err)
	}
	dir, err := os.MkdirTemp(bin, "build-")
	if err != nil {
		return "", fmt.Errorf("build pilothouse: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder left in bin is harmless
	fresh, path := filepath.Join(dir, "pilothouse"), filepath.Join(bin, "pilothouse-test")

	args, env := []string{"build", "-o", fresh}, os.Environ()
	if raceEnabled {
		args = append(args, "-race")
	} else {
		env = append(env, "CGO_ENABLED=0") // as make build does
	}
	cmd := exec.Command("go", append(args, "./cmd/pilothouse")...)
	cmd.Dir, cmd.Env = root, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pilothouse: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", fmt.Errorf("build pilothouse: %w", err)
	}
	return path, nil
}
