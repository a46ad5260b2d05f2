package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
)

// theirs is what another program leaves that has taken a run.
const theirs = `{"schema":1,"host":"elsewhere","pid":1,"pidStart":null,"sessionId":null,"processToken":"0123456789abcdef0123456789abcdef","generation":7,"acquiredAt":"2026-11-30T00:00:00Z"}`

// watchedSystem looks at the owners of its runs all the time.
func watchedSystem(t *testing.T, receivers ...actor.ReceiverMiddleware) *System {
	t.Helper()
	system, err := New(Options{ownerCheck: time.Millisecond, receivers: receivers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := system.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return system
}

// Lanes that think write nothing, so no write tells that the run is lost.
func TestARunThatIsTakenWhileItsLanesThinkStopsByItself(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(owner string) error{
		"taken over":         func(owner string) error { return os.WriteFile(owner, []byte(theirs), 0o600) },
		"released by hand":   os.Remove,
		"taken by a renamer": func(owner string) error { return replace(owner, theirs) },
		"unreadable for a while, then taken": func(owner string) error {
			return errors.Join(replace(owner, "{"), replace(owner, ""), replace(owner, theirs))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := holdingRequest(t)
			marker := proctest.Marker()
			req.Pi += " " + marker
			system := watchedSystem(t)
			started, working := make(chan RoundStarted, 1), make(chan struct{}, 100)
			done := make(chan error, 1)
			go func() {
				_, err := system.Refine(context.Background(), req, func(event any) {
					switch m := event.(type) {
					case RoundStarted:
						started <- m
					case lanes.Progress:
						if m.Phase == "responding" {
							working <- struct{}{}
						}
					}
				})
				done <- err
			}()
			round := <-started
			<-working
			dir := filepath.Join(req.Workdir, ".git/pi_plans/runs", round.RunID)
			before := contents(t, dir)
			if err := take(filepath.Join(dir, "owner.json")); err != nil {
				t.Fatal(err)
			}
			var lost *store.LostOwnerError
			if err := <-done; !errors.As(err, &lost) || lost.RunID != round.RunID {
				t.Errorf("got %v, want a LostOwnerError", err)
			}
			if left := proctest.Survivors(marker); len(left) > 0 {
				t.Errorf("%d children are left", len(left))
			}
			for name, content := range contents(t, dir) {
				if name != "owner.json" && content != before[name] {
					t.Errorf("%s was written after the run was lost", name)
				}
			}
			if owner, err := os.ReadFile(filepath.Join(dir, "owner.json")); err == nil && string(owner) != theirs {
				t.Errorf("the record of the new owner is %s", owner)
			}
		})
	}
}

func replace(path, content string) error {
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// contents are the shared files of a run.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"run.json", "checkpoint.json", "subagents.jsonl", "owner.json"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			all[name] = string(data)
		}
	}
	return all
}

// losing makes a run hear that it is lost just before it hears that a change of the
// wanted kind is on disk.
func losing(wanted func(change) bool) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		var lease *store.Lease
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			switch m := envelope.Message.(type) {
			case acquired:
				lease = m.lease
			case committed:
				if wanted(m.change) {
					next(c, &actor.MessageEnvelope{Message: lost{lease, &store.LostOwnerError{RunID: "of the test", Reason: "injected"}}})
				}
			}
			next(c, envelope)
		}
	}
}

func TestARunThatIsLostWhileAWriteIsUnderWayEndsWithThatReason(t *testing.T) {
	t.Parallel()
	for name, wanted := range map[string]func(change) bool{
		"the begin of a round": func(c change) bool { _, is := c.(*beginRound); return is },
		"a lane":               func(c change) bool { _, is := c.(*recordLane); return is },
		"the end of a round":   func(c change) bool { _, is := c.(*endRound); return is },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := answering(holdingRequest(t))
			system := watchedSystem(t, losing(wanted))
			_, err := system.Refine(context.Background(), req, nil)
			var lost *store.LostOwnerError
			if !errors.As(err, &lost) || lost.Reason != "injected" {
				t.Errorf("got %v, want the injected LostOwnerError", err)
			}
		})
	}
}

// A message about a lease that the run has no more says nothing about the one it has.
func TestTheLossOfAnEarlierLeaseDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	system := watchedSystem(t, func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if _, is := envelope.Message.(committed); is {
				next(c, &actor.MessageEnvelope{Message: lost{&store.Lease{}, &store.LostOwnerError{}}})
			}
			next(c, envelope)
		}
	})
	result, err := system.Refine(context.Background(), answering(holdingRequest(t)), nil)
	if err != nil || result.Complete() != 1 {
		t.Errorf("%d lanes are complete, %v", result.Complete(), err)
	}
}
