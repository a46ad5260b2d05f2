package store_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func TestWhatDiffersFromACommitIsCountedAndNewFilesAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q")
	write("kept", "same\n")
	write("edited", "one\ntwo\n")
	write("committed", "a\n")
	write(".gitignore", "ignored\n")
	run("add", ".")
	run("commit", "-q", "-m", "first")
	head := run("rev-parse", "HEAD")
	write("committed", "a\nb\nc\n")
	run("commit", "-q", "-am", "second")
	write("edited", "one\n2\n3\n")
	write("new file\twith ä", "x\n")
	write("ignored", "x\n")
	write("binary", "\x00\x01")
	run("add", "binary")

	got, err := store.DiffStat(t.Context(), dir, head)
	if err != nil {
		t.Fatal(err)
	}
	want := []store.FileChange{
		{Path: "binary"}, {Path: "committed", Added: 2}, {Path: "edited", Added: 2, Removed: 1}, {Path: "new file\twith ä", New: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := store.DiffStat(t.Context(), dir, strings.Repeat("0", 40)); err == nil {
		t.Error("a commit that is not there was compared with")
	}
}
