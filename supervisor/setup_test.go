package supervisor_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// bundle is a system over a git workspace whose pi is the stub.
type bundle struct {
	t       *testing.T
	system  *supervisor.System
	session supervisor.Session
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return setupWith(t, supervisor.Options{})
}

func setupWith(t *testing.T, options supervisor.Options) *bundle {
	t.Helper()
	session := newSession(t) // its directory goes after the system, which still writes at its end
	system, err := supervisor.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := system.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &bundle{t: t, system: system, session: session}
}

func newSession(t *testing.T) supervisor.Session {
	t.Helper()
	workdir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", workdir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return supervisor.Session{Workdir: workdir, Pi: self, Environ: append(os.Environ(), stubMarker)}
}

// plan writes a plan and asks for its review by three reviewers.
func (b *bundle) plan(name, text string) supervisor.RefineRequest {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.session.Workdir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return supervisor.RefineRequest{
		Session: b.session, PlanPath: name, Reviewers: 3, Model: supervisor.ModelAnswer{Answered: true},
	}
}

func (b *bundle) run(id string) store.RunDir {
	b.t.Helper()
	root, err := store.Find(context.Background(), b.session.Workdir)
	if err != nil {
		b.t.Fatal(err)
	}
	dir, err := root.Run(id)
	if err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// watcher collects the events of a call and signals when every lane responds.
type watcher struct {
	mu        sync.Mutex
	started   supervisor.RoundStarted
	ended     []string
	responds  map[string]bool
	announced chan struct{} // closed at RoundStarted
	working   chan struct{} // closed when every lane has responded
}

func newWatcher() *watcher {
	return &watcher{responds: map[string]bool{}, announced: make(chan struct{}), working: make(chan struct{})}
}

func (w *watcher) watch(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := event.(type) {
	case supervisor.RoundStarted:
		w.started = m
		close(w.announced)
	case lanes.Progress:
		if m.Phase == "responding" && !w.responds[m.LaneID] {
			w.responds[m.LaneID] = true
			if len(w.responds) == len(w.started.Lanes) {
				close(w.working)
			}
		}
	case supervisor.LaneEnded:
		w.ended = append(w.ended, m.Lane.LaneID)
	}
}

func statuses(r supervisor.RoundResult) map[string]lanes.Status {
	all := map[string]lanes.Status{}
	for _, lane := range r.Lanes {
		all[lane.LaneID] = lane.Status
	}
	return all
}

var allLanes = actors.ReviewerLanes(3)
