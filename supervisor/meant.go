package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"pilothouse/store"
)

// meantRun is the run that a session means when it names none.
type meantRun struct {
	root  *store.Root // nil without a repository
	dir   store.RunDir
	bound bool       // it is the session's own
	run   *store.Run // nil for none
}

// rootOf is where the state of a session's workspace is, if that is in a repository.
func (s *System) rootOf(ctx context.Context, session Session) (root store.Root, found bool, err error) {
	root, err = s.roots.find(ctx, session.Workdir)
	if errors.Is(err, store.ErrNoState) {
		return store.Root{}, false, nil
	}
	if err != nil {
		return store.Root{}, false, fmt.Errorf("find the state of the workspace: %w", err)
	}
	return root, true, nil
}

// meant finds the run of a session without starting a process, where that can be. A run
// of somebody else that cannot be read is none; the session's own must be known.
func (s *System) meant(ctx context.Context, session Session) (meantRun, error) {
	root, found, err := s.rootOf(ctx, session)
	if err != nil || !found {
		return meantRun{}, err
	}
	m := meantRun{root: &root}
	dir, bound, found, err := s.bindings.meant(session.ID, root)
	if err != nil || !found {
		return m, err
	}
	run, err := s.runs.get(dir.Dir, []string{filepath.Join(dir.Dir, "run.json")}, dir.Load)
	if err != nil && bound {
		return m, fmt.Errorf("read the run of the session: %w", err)
	}
	if err == nil {
		m.dir, m.bound, m.run = dir, bound, &run
	}
	return m, nil
}

// planning tells whether there is a run whose plan is not carried out yet.
func (m meantRun) planning() bool {
	return m.run != nil && (m.run.Status == store.StatusPlanning || m.run.Status == store.StatusAccepted)
}
