package supervisor_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// in is the session in a process of its own, which end kills.
func (p *pi) in() (end func()) {
	p.t.Helper()
	process := exec.Command("sleep", "600")
	if err := process.Start(); err != nil {
		p.t.Fatal(err)
	}
	over := false
	end = func() {
		if !over {
			over = true
			_ = process.Process.Kill()
			_ = process.Wait()
		}
	}
	p.t.Cleanup(end)
	p.PID = process.Process.Pid
	p.hook("session_start", object{"reason": "startup"})
	return end
}

func (p *pi) resumes(run store.RunDir) error {
	_, err := p.system.Resume(context.Background(), supervisor.ResumeRequest{Session: p.Session, RunID: run.ID})
	return err
}

func TestARunOfASessionWhosePiWasKilledIsFree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, q := b.pi("s1"), b.pi("s2")
	kill := p.in()
	run := b.run(p.startRun().RunID)
	var owned *store.OwnedError
	if err := q.resumes(run); !errors.As(err, &owned) || owned.SessionID != "s1" {
		t.Fatalf("while it lives: %v", err)
	}
	says(t, owned.Error(), "session s1 works on it; close that session")
	kill()
	if err := q.resumes(run); err != nil {
		t.Fatal(err)
	}
	if owner := b.owner(run.ID); owner != "s2" {
		t.Errorf("the run is owned by %s", owner)
	}
	// The same session in another Pi is one that asks like any other.
	p.PID = 0
	p.in()
	if err := p.resumes(run); !errors.As(err, &owned) || owned.SessionID != "s2" {
		t.Errorf("taken from one whose process is not known: %v", err)
	}
}

func TestWorkUnderWayKeepsARunWhosePiWasKilled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, q := b.pi("s1"), b.pi("s2")
	kill := p.in()
	w := newWatcher()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n")
	req.Session = p.Session
	done := make(chan error, 1)
	go func() {
		_, err := b.system.Refine(ctx, req, w.watch)
		done <- err
	}()
	<-w.working
	kill()
	run := b.run(w.started.RunID)
	var owned *store.OwnedError
	if err := q.resumes(run); !errors.As(err, &owned) || owned.SessionID != "s1" {
		t.Errorf("while its reviewers are at work: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := q.resumes(run); err != nil {
		t.Error(err)
	}
}
