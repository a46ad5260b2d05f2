package supervisor

import (
	"context"
	"path/filepath"

	"pilothouse/store"
)

// roots remember where the state of a directory is: a hook has no time to start git,
// which the places that [store.Find] cannot read by itself need.
type roots struct{ known[store.Root] }

// find is [store.Find], which it asks only for what it does not know, or what may have
// become another.
func (r *roots) find(ctx context.Context, workdir string) (store.Root, error) {
	r.mu.Lock()
	found, ok := r.values[workdir]
	r.mu.Unlock()
	if ok && found.current() {
		return found.value, nil
	}
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return store.Root{}, err
	}
	if marks, err := marksOf(root); err == nil { // else it is changing under our eyes
		r.keep(workdir, root, marks)
	}
	return root, nil
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
