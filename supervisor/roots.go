package supervisor

import (
	"context"
	"errors"
	"path/filepath"

	"pilothouse/store"
)

// roots remember where the state of a directory is, or that it is in no repository: a
// hook has no time to start git, which the places that [store.Find] cannot read by itself
// need.
type roots struct{ known[foundRoot] }

// foundRoot is an answer of [store.Find].
type foundRoot struct {
	root store.Root
	err  error // ErrNoRepository
}

// find is [store.Find], which it asks only for what it does not know, or what may have
// become another.
func (r *roots) find(ctx context.Context, workdir string) (store.Root, error) {
	r.mu.Lock()
	found, ok := r.values[workdir]
	r.mu.Unlock()
	if ok && found.current() {
		return found.value.root, found.value.err
	}
	root, err := store.Find(ctx, workdir)
	var marks []mark
	var unmarked error
	switch {
	case err == nil:
		marks, unmarked = marksOf(root)
	case errors.Is(err, store.ErrNoRepository):
		marks, unmarked = marksOfNone(workdir)
	default:
		return store.Root{}, err
	}
	if unmarked == nil { // else it is changing under our eyes
		r.keep(workdir, foundRoot{root, err}, marks)
	}
	return root, err
}

func (k knownValue[T]) current() bool {
	for _, m := range k.marks {
		if !m.same(markOf(m.path)) {
			return false
		}
	}
	return true
}

// marksOf are what a root depends on: which directory is asked for, and the .git of each
// directory from there up to the work tree.
func marksOf(root store.Root) ([]mark, error) {
	dir, err := filepath.EvalSymlinks(root.Workdir)
	if err != nil {
		return nil, err
	}
	top, err := filepath.EvalSymlinks(root.Worktree)
	if err != nil {
		return nil, err
	}
	marks := []mark{markOf(dir), markOf(root.CommonDir)}
	if dir != root.Workdir { // a link may be led elsewhere
		marks = append(marks, markOf(root.Workdir))
	}
	for {
		marks = append(marks, markOf(filepath.Join(dir, ".git")))
		if parent := filepath.Dir(dir); dir != top && parent != dir {
			dir = parent
			continue
		}
		return marks, nil
	}
}

// marksOfNone are what would make a repository of a directory that is in none: a .git in
// it or above, or one of those being a git directory itself.
func marksOfNone(workdir string) ([]mark, error) {
	dir, err := filepath.EvalSymlinks(workdir)
	if err != nil {
		return nil, err
	}
	marks := []mark{markOf(workdir), markOf(dir)}
	for {
		marks = append(marks, markOf(filepath.Join(dir, ".git")), markOf(filepath.Join(dir, "HEAD")))
		parent := filepath.Dir(dir)
		if parent == dir {
			return marks, nil
		}
		dir = parent
	}
}
