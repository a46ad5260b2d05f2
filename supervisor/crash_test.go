package supervisor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
)

// Deaths are caused inside the tree, whose actors only a test of the package
// itself can name.

func TestTheDeathOfAnActorOfARunIsToldToItsCallers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"checkpoint", "ownership", "round"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			system, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := system.Close(ctx); err != nil {
					t.Error(err)
				}
			}()
			started := make(chan RoundStarted, 1)
			working := make(chan struct{}, 100)
			type answer struct {
				result RoundResult
				err    error
			}
			done := make(chan answer, 1)
			req := holdingRequest(t)
			go func() {
				result, err := system.Refine(context.Background(), req, func(event any) {
					switch m := event.(type) {
					case RoundStarted:
						started <- m
					case lanes.Progress:
						if m.Phase == "responding" {
							working <- struct{}{}
						}
					}
				})
				done <- answer{result, err}
			}()
			m := <-started
			<-working
			path := "registry/run-" + m.RunID + "/" + name
			if name == "round" {
				path += "-" + m.RoundID
			}
			pid := actor.NewPID(system.actors.Address(), path)
			if name == "round" { // it ends without a word, as after a panic
				system.actors.Root.Stop(pid)
			} else {
				system.actors.Root.Send(pid, workPanicked{"injected"})
			}
			a := <-done
			if name == "round" {
				if a.err != nil || a.result.Lanes[0].Status != lanes.Failed || a.result.Lanes[0].Error.Class != "internal" {
					t.Errorf("got %+v, %v; want a lane failed with class internal", a.result.Lanes, a.err)
				}
				return
			}
			var lost *LostRunError
			if !errors.As(a.err, &lost) || lost.RunID != m.RunID {
				t.Errorf("got %v, want a LostRunError", a.err)
			}
		})
	}
}

func holdingRequest(t *testing.T) RefineRequest {
	t.Helper()
	workdir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", workdir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(workdir, "PLAN.md"), []byte("# A plan\nSTUB-HOLD\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return RefineRequest{
		Session:  Session{Workdir: workdir, Pi: self, Environ: append(os.Environ(), "PILOTHOUSE_STUB_PI=1")},
		PlanPath: "PLAN.md", Model: ModelAnswer{Answered: true},
	}
}
