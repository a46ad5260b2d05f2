package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pilothouse/store"
)

// A linked work tree is one of the places that git has to be asked about.
func TestAHookStartsNoGitForAWorkspaceThatIsKnown(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	main, linked := filepath.Join(dir, "main"), filepath.Join(dir, "linked")
	for _, args := range [][]string{
		{"init", "-q", main},
		{"-C", main, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", main, "worktree", "add", "-q", linked},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	var known roots
	first, err := known.find(t.Context(), linked)
	if err != nil || first.Worktree != linked || first.CommonDir != filepath.Join(main, ".git") {
		t.Fatalf("%+v, %v", first, err)
	}
	t.Setenv("PATH", dir) // there is no git any more
	again, err := known.find(t.Context(), linked)
	if err != nil || again != first {
		t.Errorf("%+v, %v", again, err)
	}
	if err := os.WriteFile(filepath.Join(linked, ".git"), []byte("gitdir: "+dir), 0o600); err != nil {
		t.Fatal(err)
	}
	if moved, err := known.find(t.Context(), linked); err == nil {
		t.Errorf("a work tree that leads elsewhere is still taken for %+v", moved)
	}
}

func TestAHookStartsNoGitWhereThereIsNoRepository(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var known roots
	if _, err := known.find(t.Context(), dir); !errors.Is(err, store.ErrNoRepository) {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", dir) // there is no git any more
	if _, err := known.find(t.Context(), dir); !errors.Is(err, store.ErrNoRepository) {
		t.Errorf("asked again: %v", err)
	}
	t.Setenv("PATH", path)
	if out, err := exec.Command("git", "init", "-q", filepath.Dir(dir)).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	if root, err := known.find(t.Context(), dir); err != nil || filepath.Base(root.Worktree) != "a" {
		t.Errorf("a repository that has come above it: %+v, %v", root, err)
	}
}
