package supervisor

import (
	"fmt"
	"maps"
	"sync"

	"pilothouse/store"
)

// bindings remember which run each session started. The pointer of a workspace,
// active.json, belongs to all sessions: the last one that starts a run moves it. What
// a session does without naming a run must still go to its own (seed: Run Ownership).
type bindings struct {
	mu   sync.Mutex
	runs map[binding]string // run id
}

// binding is a session in a workspace: one session may work in several.
type binding struct{ sessionID, stateRoot string }

// bind makes run the session's own. A command line is no session: its process ends
// with the call.
func (b *bindings) bind(sessionID string, run store.RunDir) {
	if sessionID == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[binding]string{}
	}
	b.runs[binding{sessionID, run.Root.Dir}] = run.ID
}

// unbind forgets a session.
func (b *bindings) unbind(sessionID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.runs, func(k binding, _ string) bool { return k.sessionID == sessionID })
}

// turnTo makes run the session's own, which leaves the execution of any other.
func (s *System) turnTo(sessionID string, run store.RunDir) {
	if sessionID == "" {
		return
	}
	s.bindings.bind(sessionID, run)
	s.executions.turnTo(sessionID, run)
}

// elsewhere tells whether a session has another run of its own than this.
func (b *bindings) elsewhere(sessionID string, run store.RunDir) bool {
	meant, own, _, err := b.meant(sessionID, run.Root)
	return err == nil && own && meant.ID != run.ID
}

// release lets a session mean the run that the workspace points to again.
func (b *bindings) release(sessionID string, root store.Root) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.runs, binding{sessionID, root.Dir})
}

// current is the run that a session means when it names none: its own, else, also
// when that is gone, the one that the workspace points to.
func (b *bindings) current(sessionID string, root store.Root) (store.RunDir, bool, error) {
	run, _, found, err := b.meant(sessionID, root)
	return run, found, err
}

// meant is current, and tells whether the run is the session's own.
func (b *bindings) meant(sessionID string, root store.Root) (run store.RunDir, own, found bool, err error) {
	b.mu.Lock()
	id := b.runs[binding{sessionID, root.Dir}]
	b.mu.Unlock()
	if id != "" {
		if run, err := root.Run(id); err == nil {
			return run, true, true, nil
		}
	}
	run, found, err = root.Active()
	if err != nil {
		return store.RunDir{}, false, false, fmt.Errorf("find the active run: %w", err)
	}
	return run, false, found, nil
}
