// Package proctest helps tests that start children: it builds the stub child
// (its switches are described in its source) and finds what survived a test.
package proctest

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var stub struct {
	sync.Once
	dir, path string
	err       error
}

// Build compiles the stub child once for the test binary and returns its path.
// Call Clean in TestMain after the tests.
func Build(t testing.TB) string {
	t.Helper()
	stub.Do(func() {
		if stub.dir, stub.err = os.MkdirTemp("", "stubchild-"); stub.err != nil {
			return
		}
		// Other users, whom some tests change to, have to be able to run it.
		if stub.err = os.Chmod(stub.dir, 0o755); stub.err != nil {
			return
		}
		stub.path = filepath.Join(stub.dir, "stubchild")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", stub.path, "pilothouse/lanes/proc/internal/stubchild")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := build.CombinedOutput(); err != nil {
			stub.err = err
			t.Logf("go build: %s", out)
		}
	})
	if stub.err != nil {
		t.Fatalf("build the stub child: %v", stub.err)
	}
	return stub.path
}

// Clean deletes what Build made.
func Clean() {
	if stub.dir != "" {
		_ = os.RemoveAll(stub.dir)
	}
}

// Marker returns a word that no other process has in its arguments, for --marker and Survivors.
func Marker() string { return "stub-" + strings.ToLower(rand.Text()) }
