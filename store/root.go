package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrNoState tells that a workspace has no pi-plans state yet.
	ErrNoState = errors.New("no pi-plans state found")
	// ErrNoRepository tells that a directory is in no git repository. Such an error
	// matches ErrNoState too: without a repository there is no state.
	ErrNoRepository = errors.New("not in a git repository")
	// ErrBareRepository tells that a repository has no work tree to plan in.
	ErrBareRepository = errors.New("the repository is bare")
	// ErrBrokenRepository tells that there is a repository but git refuses it; a
	// *RepositoryError carries git's own message.
	ErrBrokenRepository = errors.New("git cannot use the repository")
	// ErrInitRefused tells that a directory must not become a repository by itself.
	ErrInitRefused = errors.New("no repository is created here")
)

// RepositoryError is a repository that git refuses: a broken .git, an owner it does
// not trust. It matches ErrBrokenRepository. Nothing is ever repaired or created there.
type RepositoryError struct {
	// Dir is where the repository was found.
	Dir string
	// Message is what git said, untouched.
	Message string
}

func (e *RepositoryError) Error() string {
	return fmt.Sprintf("git cannot use the repository at %s, repair it first: %s", e.Dir, e.Message)
}

// Unwrap makes the error match ErrBrokenRepository.
func (e *RepositoryError) Unwrap() error { return ErrBrokenRepository }

// Root is where the state of a workspace lives. Linked work trees of one
// repository share one root.
type Root struct {
	// Dir is the state root, <git common dir>/pi_plans. It is free of symbolic
	// links, so it identifies the workspace.
	Dir string
	// CommonDir is the git directory that all work trees share.
	CommonDir string
	// Workdir is the directory asked for, absolute, links kept.
	Workdir string
	// Worktree is the top of the work tree, or Workdir where there is none.
	Worktree string
}

// Find locates the state root of workdir without writing anything; the state
// directory itself need not exist. Errors: ErrNoRepository (also ErrNoState),
// ErrBrokenRepository, ErrWorkdirMissing, ErrGitMissing.
func Find(ctx context.Context, workdir string) (Root, error) {
	root, _, err := find(ctx, workdir)
	return root, err
}

func find(ctx context.Context, workdir string) (_ Root, bare bool, err error) {
	if workdir, err = Expand(workdir); err != nil {
		return Root{}, false, err
	}
	places, err := locate(ctx, workdir)
	var refused *gitError
	if errors.As(err, &refused) {
		if dir, ok := enclosingRepository(workdir); ok {
			return Root{}, false, &RepositoryError{Dir: dir, Message: refused.message}
		}
		return Root{}, false, fmt.Errorf("%w: %s is %w; run `pilothouse plans init` there", ErrNoState, workdir, ErrNoRepository)
	}
	if err != nil {
		return Root{}, false, err
	}
	root := Root{Workdir: workdir, Worktree: places.worktree}
	if root.CommonDir, err = commonDir(workdir, places.gitDir); err != nil {
		return Root{}, false, fmt.Errorf("resolve git directory: %w", err)
	}
	root.Dir = filepath.Join(root.CommonDir, "pi_plans")
	if root.Worktree == "" {
		root.Worktree = workdir
	}
	return root, places.bare, nil
}

// places is what git says about a directory, as git prints it or with absolute paths.
type places struct {
	gitDir   string // of this work tree, not the one that all share
	worktree string // empty in a bare repository or inside a git directory
	bare     bool
}

// locate asks git only where the answer is not plain to see, and then one question
// where it can: starting git is most of the cost of a short command. Only a path that
// holds a line break needs more.
func locate(ctx context.Context, workdir string) (places, error) {
	if ctx.Err() == nil { // git is to tell why it was not even asked
		if found, ok := ordinary(workdir, os.Environ()); ok {
			return found, nil
		}
	}
	out, err := git(ctx, workdir, "rev-parse", "--is-bare-repository", "--git-dir", "--show-toplevel")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	var refused *gitError
	switch {
	case err == nil && len(lines) == 3:
		return places{bare: lines[0] == "true", gitDir: lines[1], worktree: lines[2]}, nil
	case err != nil && !errors.As(err, &refused):
		return places{}, err
	}
	gitDir, err := git(ctx, workdir, "rev-parse", "--git-dir")
	if err != nil {
		return places{}, err
	}
	bare, err := git(ctx, workdir, "rev-parse", "--is-bare-repository")
	if err != nil {
		return places{}, err
	}
	worktree, err := git(ctx, workdir, "rev-parse", "--show-toplevel")
	if err != nil && !errors.As(err, &refused) {
		return places{}, err
	}
	return places{
		gitDir:   strings.TrimSuffix(gitDir, "\n"),
		worktree: strings.TrimSuffix(worktree, "\n"),
		bare:     strings.TrimSpace(bare) == "true",
	}, nil
}

// commonDir returns the git directory that all work trees share: the one that the
// commondir file of a linked work tree's leads to. Git is not asked for it, because
// before 2.13 it gave a wrong answer in a subdirectory, and before 2.5 none (faults
// F85); the file is the documented layout of a repository since there are linked
// work trees.
func commonDir(workdir, gitDir string) (string, error) {
	gitDir, err := resolve(workdir, gitDir)
	if err != nil {
		return "", err
	}
	shared, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	return resolve(gitDir, strings.TrimRight(string(shared), "\r\n"))
}

// resolve makes what git printed absolute and free of links. Git answers relative
// to where a link leads, not to the link, so links go first.
func resolve(workdir, path string) (string, error) {
	if !filepath.IsAbs(path) {
		physical, err := filepath.EvalSymlinks(workdir)
		if err != nil {
			return "", err
		}
		path = filepath.Join(physical, path)
	}
	return filepath.EvalSymlinks(path)
}

// enclosingRepository looks for something that is meant as a repository at workdir
// or above: a .git in workdir itself, whatever it holds; above it one that git would
// stop at; or a git directory without a .git.
func enclosingRepository(workdir string) (string, bool) {
	dir := workdir
	if physical, err := filepath.EvalSymlinks(workdir); err == nil {
		dir = physical
	}
	for first := true; ; first = false {
		marker := filepath.Join(dir, ".git")
		if info, err := os.Lstat(marker); err == nil && (first || !info.IsDir() || looksLikeGitDir(marker)) {
			return dir, true
		}
		if looksLikeGitDir(dir) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func looksLikeGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// Ensure is [Find] for commands that change something: it creates the repository
// (never a commit) and the state directory where they are missing, and completes
// config.json. The notices are sentences to show to the user. Errors beside those of
// Find: ErrBareRepository, ErrInitRefused, *CorruptError for config.json
// (spec: state 1.2).
func Ensure(ctx context.Context, workdir string) (Root, []string, error) {
	var notices []string
	root, bare, err := find(ctx, workdir)
	if errors.Is(err, ErrNoRepository) || errors.Is(err, ErrBrokenRepository) {
		root, bare, notices, err = findOrInit(ctx, workdir)
	}
	if err != nil {
		return Root{}, nil, err
	}
	if bare {
		return Root{}, nil, fmt.Errorf("%w: %s has no work tree; use a clone or a linked work tree", ErrBareRepository, root.CommonDir)
	}
	for _, dir := range []string{"runs", "tmp", "cache", privateName} {
		if err := makeBelow(root.CommonDir, filepath.Join(root.Dir, dir), privateDir); err != nil {
			return Root{}, nil, fmt.Errorf("create state directory: %w", err)
		}
	}
	if !sameDirectory(root.Worktree, root.Workdir) {
		notices = append(notices, fmt.Sprintf("using the state of the enclosing repository %s", root.Worktree))
	}
	if err := root.normaliseConfig(ctx); err != nil {
		return Root{}, nil, err
	}
	return root, notices, nil
}

// privateName is the folder beside the shared files that only pilothouse uses.
const privateName = "pilothouse"

// findOrInit looks again while no other pilothouse is creating a repository in
// workdir: half of a new one looks broken. The directory itself serves as the lock,
// since nothing else may be written there yet.
func findOrInit(ctx context.Context, workdir string) (root Root, bare bool, notices []string, err error) {
	if workdir, err = Expand(workdir); err != nil {
		return Root{}, false, nil, err
	}
	err = withLock(ctx, workdir, func() (err error) {
		if root, bare, err = find(ctx, workdir); !errors.Is(err, ErrNoRepository) {
			return err
		}
		notice, err := initRepository(ctx, workdir)
		if err != nil {
			return err
		}
		notices = append(notices, notice)
		root, bare, err = find(ctx, workdir)
		return err
	})
	return root, bare, notices, err
}

func initRepository(ctx context.Context, workdir string) (notice string, err error) {
	if inside, err := git(ctx, workdir, "rev-parse", "--is-inside-work-tree"); err == nil && strings.TrimSpace(inside) == "true" {
		return "", &RepositoryError{Dir: workdir, Message: "git sees a work tree but no git directory"}
	}
	home, _ := os.UserHomeDir()
	if sameDirectory(workdir, filepath.Dir(workdir)) || home != "" && sameDirectory(workdir, home) {
		return "", fmt.Errorf("%w: %s is the home or the root directory; choose a project directory with --workdir", ErrInitRefused, workdir)
	}
	_, err = git(ctx, workdir, "init")
	var failed *gitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("create repository in %s: %w", workdir, err)
	}
	return fmt.Sprintf("ran `git init` in %s, which was in no repository", workdir), err
}

func sameDirectory(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// Expand turns ~ and ~/x into paths below the home directory and makes path
// absolute. An empty path is the current directory.
func Expand(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("expand %s: %w", path, err)
		}
		path = home + path[1:]
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("expand %s: %w", path, err)
	}
	return absolute, nil
}
