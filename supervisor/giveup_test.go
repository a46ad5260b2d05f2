package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/gofrs/flock"

	"pilothouse/store"
)

// The only call of a run is cancelled while the run is being acquired. The next call
// comes at once: neither may what was acquired for the first be left behind, nor may
// giving it back take the run away from the second.
func TestACallAfterOneThatWasCancelledWhileItsRunWasAcquiredHasTheRunToItself(t *testing.T) {
	t.Parallel()
	acquiring := make(chan struct{}, 10)
	system, err := New(Options{receivers: []actor.ReceiverMiddleware{func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			next(c, envelope)
			if _, ok := envelope.Message.(acquire); ok {
				acquiring <- struct{}{}
			}
		}
	}}})
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
	req := holdingRequest(t)
	value, err := system.Plans(context.Background(), req.Session, PlansAction{Action: "start-run", Topic: "t", Skill: "s", RequestText: "r"})
	if err != nil {
		t.Fatal(err)
	}
	started, _ := value.(StartRunResult)
	req.RunID = started.Run.RunID
	root, err := store.Find(context.Background(), req.Workdir)
	if err != nil {
		t.Fatal(err)
	}
	run, err := root.Run(req.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(run.Dir, "pilothouse"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		lock := flock.New(filepath.Join(run.Dir, "pilothouse", "run.lock"))
		if err := lock.Lock(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := system.Refine(ctx, req, nil)
			first <- err
		}()
		<-acquiring
		cancel()
		var cancelled *CancelledError
		if err := <-first; !errors.As(err, &cancelled) {
			t.Errorf("the first: got %v, want a CancelledError", err)
		}
		go func() {
			_, err := system.RecordProgress(context.Background(), req.Session, req.RunID, store.Progress{})
			second <- err
		}()
		<-acquiring
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
		var state *store.StateError
		if err := <-second; !errors.As(err, &state) {
			t.Errorf("the second: got %v, want a StateError", err)
		}
		if _, owner, err := run.Owner(); err != nil || owner != store.OwnerNone {
			t.Fatalf("the run is left with an owner: %s, %v", owner, err)
		}
	}
}
