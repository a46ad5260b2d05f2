package lanes

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cenkalti/backoff/v4"
)

// LaneRestarts is how often a panicking lane actor is started again. An actor
// that panics more often than that will do so for ever; its lane fails with
// the reason instead.
const LaneRestarts = 3

// restartDelay is the wait before the first restart; it doubles each time.
const restartDelay = 20 * time.Millisecond

// Supervision restarts a panicking child actor a bounded number of times, each
// time after a longer wait, and then stops it. The parent embeds it, so that
// it runs inside the parent's Receive, and asks [Supervision.Reason] when the
// child turns out to be gone. The zero value restarts nothing.
type Supervision struct {
	// Restarts is the number of restarts of one child.
	Restarts uint64
	failures map[string]*failure // by child pid
}

type failure struct {
	reason any
	wait   backoff.BackOff
}

// HandleFailure implements actor.SupervisorStrategy.
func (s *Supervision) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, reason, message any) {
	if s.failures == nil {
		s.failures = map[string]*failure{}
	}
	f := s.failures[child.Id]
	if f == nil {
		f = &failure{wait: s.waits()}
		s.failures[child.Id] = f
	}
	f.reason = reason
	delay := f.wait.NextBackOff()
	// The timers only post system messages; the child's mailbox is suspended meanwhile.
	_, whileStopping := message.(*actor.Stop)
	switch {
	case whileStopping:
		time.AfterFunc(restartDelay, func() { stopAnew(parent, child) })
	case s.Restarts == 0:
		stopAnew(parent, child) // it may have been stopping, and have waited for children of its own
	case delay == backoff.Stop:
		parent.StopChildren(child)
	default:
		time.AfterFunc(delay, func() { parent.RestartChildren(child) })
	}
}

// stopAnew stops a child that may have been stopping when it panicked. It would
// ignore a further Stop then, and neither it nor its parent would ever end. A
// restart lets it release what it holds and makes it hear again; left alone after
// that it would live on (faults D54).
func stopAnew(parent actor.Supervisor, child *actor.PID) {
	parent.RestartChildren(child)
	parent.StopChildren(child)
}

// Once is the producer of an actor that is not restarted to work on. What a restart
// on the way to its end makes (see stopAnew) hears nothing: there is a moment
// before the Stop arrives, and it has forgotten what its predecessor knew.
func Once(produce actor.Producer) actor.Producer {
	made := false
	return func() actor.Actor {
		if made {
			return actor.ReceiveFunc(func(actor.Context) {})
		}
		made = true
		return produce()
	}
}

func (s *Supervision) waits() backoff.BackOff {
	if s.Restarts == 0 { // WithMaxRetries takes 0 for "no limit"
		return &backoff.StopBackOff{}
	}
	return backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(restartDelay),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0),
		backoff.WithMaxElapsedTime(0), // a second panic an hour later is no last one
	), s.Restarts)
}

// Reason says why a child is gone.
func (s *Supervision) Reason(child *actor.PID) string {
	if f := s.failures[child.Id]; f != nil {
		return fmt.Sprintf("its actor failed with: %v", f.reason)
	}
	return "its actor ended without a result"
}
