package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func TestStateLivesInTheCommonGitDirectoryWhereverOneStandsInTheRepository(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T) (workdir, commonDir, worktree string){
		"at the top": func(t *testing.T) (string, string, string) {
			dir := newRepo(t)
			return dir, filepath.Join(dir, ".git"), dir
		},
		"in a subdirectory": func(t *testing.T) (string, string, string) {
			dir := newRepo(t)
			write(t, filepath.Join(dir, "a/b/file"), "")
			return filepath.Join(dir, "a/b"), filepath.Join(dir, ".git"), dir
		},
		"in a linked work tree": func(t *testing.T) (string, string, string) {
			dir := newRepo(t)
			gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
			linked := filepath.Join(tempDir(t), "linked")
			gitIn(t, dir, "worktree", "add", "-q", linked)
			return linked, filepath.Join(dir, ".git"), linked
		},
		"in a subdirectory of a linked work tree": func(t *testing.T) (string, string, string) {
			dir := newRepo(t)
			gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
			linked := filepath.Join(tempDir(t), "linked")
			gitIn(t, dir, "worktree", "add", "-q", linked)
			write(t, filepath.Join(linked, "sub/file"), "")
			return filepath.Join(linked, "sub"), filepath.Join(dir, ".git"), linked
		},
		"in a submodule": func(t *testing.T) (string, string, string) {
			inner, outer := newRepo(t), newRepo(t)
			gitIn(t, inner, "commit", "-q", "--allow-empty", "-m", "x")
			gitIn(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "mod")
			return filepath.Join(outer, "mod"), filepath.Join(outer, ".git/modules/mod"), filepath.Join(outer, "mod")
		},
		"in a linked work tree of a submodule": func(t *testing.T) (string, string, string) {
			inner, outer, linked := newRepo(t), newRepo(t), filepath.Join(tempDir(t), "linked")
			gitIn(t, inner, "commit", "-q", "--allow-empty", "-m", "x")
			gitIn(t, outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "mod")
			gitIn(t, filepath.Join(outer, "mod"), "worktree", "add", "-q", linked)
			return linked, filepath.Join(outer, ".git/modules/mod"), linked
		},
		"inside the git directory, as some hooks are": func(t *testing.T) (string, string, string) {
			dir := newRepo(t)
			return filepath.Join(dir, ".git/refs"), filepath.Join(dir, ".git"), filepath.Join(dir, ".git/refs")
		},
		"with a separate git directory": func(t *testing.T) (string, string, string) {
			dir, elsewhere := tempDir(t), filepath.Join(tempDir(t), "gitdir")
			gitIn(t, dir, "init", "-q", "--separate-git-dir", elsewhere)
			return dir, elsewhere, dir
		},
		"with a linked .git": func(t *testing.T) (string, string, string) {
			dir, elsewhere := newRepo(t), filepath.Join(tempDir(t), "gitdir")
			if err := os.Rename(filepath.Join(dir, ".git"), elsewhere); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			return dir, elsewhere, dir
		},
		"with spaces in the path": func(t *testing.T) (string, string, string) {
			dir := filepath.Join(tempDir(t), "a b  c")
			write(t, filepath.Join(dir, "file"), "")
			gitIn(t, dir, "init", "-q")
			return dir, filepath.Join(dir, ".git"), dir
		},
		"with a line break in the path": func(t *testing.T) (string, string, string) {
			dir := filepath.Join(tempDir(t), "a\nb")
			write(t, filepath.Join(dir, "sub/file"), "")
			gitIn(t, dir, "init", "-q")
			return filepath.Join(dir, "sub"), filepath.Join(dir, ".git"), dir
		},
		"in a sha256 repository": func(t *testing.T) (string, string, string) {
			dir := tempDir(t)
			gitIn(t, dir, "init", "-q", "--object-format=sha256")
			return dir, filepath.Join(dir, ".git"), dir
		},
	}
	for name, setup := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			workdir, commonDir, worktree := setup(t)
			want := store.Root{Dir: filepath.Join(commonDir, "pi_plans"), CommonDir: commonDir, Workdir: workdir, Worktree: worktree}
			found, err := store.Find(t.Context(), workdir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Stat(found.Dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Find created %s (%v)", found.Dir, err)
			}
			if diff := cmp.Diff(want, ensure(t, workdir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALinkToASubdirectoryFindsTheRepositoryBehindTheLink(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	write(t, filepath.Join(dir, "sub/file"), "")
	link := filepath.Join(tempDir(t), "link")
	if err := os.Symlink(filepath.Join(dir, "sub"), link); err != nil {
		t.Fatal(err)
	}
	root, err := store.Find(t.Context(), link)
	if err != nil {
		t.Fatal(err)
	}
	if root.CommonDir != filepath.Join(dir, ".git") || root.Workdir != link {
		t.Errorf("got %+v", root)
	}
}

func TestEnsureCreatesARepositoryWithoutACommitAndSaysSo(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	root, notices, err := store.Ensure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "git init") {
		t.Errorf("notices %q", notices)
	}
	if head, err := store.Head(t.Context(), dir); head != nil || err != nil {
		t.Errorf("head %v, %v", head, err)
	}
	for _, name := range []string{"runs", "tmp", "cache"} {
		info, err := os.Stat(filepath.Join(root.Dir, name))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	info, err := os.Stat(filepath.Join(root.Dir, "config.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("config: %v %v", info, err)
	}
	if _, notices, err = store.Ensure(t.Context(), dir); err != nil || len(notices) != 0 {
		t.Errorf("the second time: %q, %v", notices, err)
	}
}

func TestASubdirectoryUsesTheEnclosingRepositoryAndSaysSo(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	sub := filepath.Join(dir, "sub")
	write(t, filepath.Join(sub, "file"), "")
	_, notices, err := store.Ensure(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], dir) {
		t.Errorf("notices %q", notices)
	}
	if _, err := os.Stat(filepath.Join(sub, ".git")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a nested .git: %v", err)
	}
}

func TestEnsureRefusesPlacesThatMustNotBecomeRepositories(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		workdir string
		want    error
	}{
		"the home directory":   {home, store.ErrInitRefused},
		"the home by its name": {"~", store.ErrInitRefused},
		"a missing directory":  {filepath.Join(tempDir(t), "missing"), store.ErrWorkdirMissing},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := store.Ensure(t.Context(), test.workdir); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(home, ".git")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a repository in the home directory: %v", err)
	}
}

func TestABrokenRepositoryIsReportedInTheWordsOfGitAndNeverTouched(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T) (workdir, marker string){
		"a .git file that leads nowhere": func(t *testing.T) (string, string) {
			dir := tempDir(t)
			write(t, filepath.Join(dir, ".git"), "gitdir: /nowhere/at/all\n")
			return dir, filepath.Join(dir, ".git")
		},
		"a .git file above that is no pointer": func(t *testing.T) (string, string) {
			dir := tempDir(t)
			write(t, filepath.Join(dir, ".git"), "what is this")
			write(t, filepath.Join(dir, "sub/file"), "")
			return filepath.Join(dir, "sub"), filepath.Join(dir, ".git")
		},
	}
	for name, setup := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, marker := setup(t)
			before := read(t, marker)
			for _, ensure := range []func() error{
				func() error { _, err := store.Find(t.Context(), dir); return err },
				func() error { _, _, err := store.Ensure(t.Context(), dir); return err },
			} {
				err := ensure()
				var broken *store.RepositoryError
				if !errors.Is(err, store.ErrBrokenRepository) || !errors.As(err, &broken) || !strings.Contains(broken.Message, "git") {
					t.Errorf("got %v", err)
				}
				if errors.Is(err, store.ErrNoRepository) {
					t.Errorf("%v says there is no repository", err)
				}
			}
			if read(t, marker) != before {
				t.Error("the .git file was changed")
			}
		})
	}
}

func TestARepositoryOfAnotherUserIsNeverInitialised(t *testing.T) {
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	dir := tempDir(t)
	command := filepath.Join(dir, "sub")
	write(t, filepath.Join(command, "file"), "")
	gitIn(t, dir, "init", "-q")
	for _, workdir := range []string{dir, command} {
		_, _, err := store.Ensure(t.Context(), workdir)
		var broken *store.RepositoryError
		if !errors.As(err, &broken) || !strings.Contains(broken.Message, "safe.directory") {
			t.Errorf("%s: got %v", workdir, err)
		}
	}
	if _, err := os.Stat(filepath.Join(command, ".git")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a nested repository: %v", err)
	}
}

func TestABareRepositoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	gitIn(t, dir, "init", "-q", "--bare")
	if _, _, err := store.Ensure(t.Context(), dir); !errors.Is(err, store.ErrBareRepository) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pi_plans")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state in a bare repository: %v", err)
	}
}

func TestTheWorkTreeOfABareRepositoryIsFine(t *testing.T) {
	t.Parallel()
	source, bare, linked := newRepo(t), filepath.Join(tempDir(t), "bare"), filepath.Join(tempDir(t), "linked")
	gitIn(t, source, "commit", "-q", "--allow-empty", "-m", "x")
	gitIn(t, source, "clone", "-q", "--bare", source, bare)
	gitIn(t, bare, "worktree", "add", "-q", linked)
	if root := ensure(t, linked); root.CommonDir != bare {
		t.Errorf("got %+v", root)
	}
}

func TestOutsideARepositoryFindSaysThatThereIsNoState(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	_, err := store.Find(t.Context(), dir)
	if !errors.Is(err, store.ErrNoRepository) || !errors.Is(err, store.ErrNoState) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("Find wrote %v", entries)
	}
}

func TestInheritedGitVariablesDoNotMoveTheState(t *testing.T) {
	other, dir := newRepo(t), newRepo(t)
	for name, value := range map[string]string{
		"GIT_DIR": filepath.Join(other, ".git"), "GIT_COMMON_DIR": filepath.Join(other, ".git"), "GIT_WORK_TREE": other,
		"GIT_INDEX_FILE": filepath.Join(other, "index"), "GIT_PREFIX": "x/",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.worktree", "GIT_CONFIG_VALUE_0": other,
		"GIT_CONFIG_PARAMETERS": "'core.worktree'='" + other + "'",
	} {
		t.Setenv(name, value)
	}
	root := ensure(t, dir)
	if root.CommonDir != filepath.Join(dir, ".git") || root.Worktree != dir {
		t.Errorf("got %+v", root)
	}
	if _, err := os.Stat(filepath.Join(other, ".git/pi_plans")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("state in the other repository: %v", err)
	}
}

func TestAMissingGitIsToldApartFromAMissingDirectory(t *testing.T) {
	dir := newRepo(t)
	t.Setenv("PATH", tempDir(t))
	if _, err := store.Find(t.Context(), dir); !errors.Is(err, store.ErrGitMissing) {
		t.Errorf("got %v", err)
	}
	if _, err := store.Find(t.Context(), filepath.Join(dir, "missing")); !errors.Is(err, store.ErrWorkdirMissing) {
		t.Errorf("got %v", err)
	}
}

func TestHeadIsNilWithoutCommitsAndAnObjectNameWithOne(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	if head, err := store.Head(t.Context(), dir); head != nil || err != nil {
		t.Errorf("unborn: %v, %v", head, err)
	}
	if head, err := store.Head(t.Context(), tempDir(t)); head != nil || err == nil {
		t.Errorf("outside a repository: %v, %v", head, err)
	}
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
	gitIn(t, dir, "checkout", "-q", "--detach")
	head, err := store.Head(t.Context(), dir)
	if err != nil || head == nil || *head != strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD")) {
		t.Errorf("detached: %v, %v", head, err)
	}
}

func TestExpandKnowsTheHomeDirectory(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"~": home, "~/x/../y": filepath.Join(home, "y"), "/a/~": "/a/~"} {
		if got, err := store.Expand(path); got != want || err != nil {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
}
