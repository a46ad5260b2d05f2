package supervisor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"

	"pilothouse/actors"
	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
)

// actorKinds are the actors that may panic, by the beginning of their names.
var actorKinds = []string{"registry", "run-", "checkpoint", "ownership", "round-", "batch-", "lane-"}

// fault makes the actors of one kind panic at a message, or at all from then on.
type fault struct {
	kind    string
	at      int64
	forever bool
	seen    atomic.Int64
}

// throttle is what the actor library needs up to a second for after a dead letter.
var throttle = goleak.IgnoreAnyFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1")

// faults is a receiver middleware that panics.
type faults struct{ list []*fault }

func (f *faults) receive(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(c actor.ReceiverContext, envelope *actor.MessageEnvelope) {
		name := c.Self().Id[strings.LastIndexByte(c.Self().Id, '/')+1:]
		for _, fault := range f.list {
			if _, over := envelope.Message.(*actor.Stopped); over || !strings.HasPrefix(name, fault.kind) {
				continue // no actor of ours runs code at Stopped, and the library tells nobody of an end there
			}
			if n := fault.seen.Add(1); n == fault.at || fault.forever && n > fault.at && !isEnd(envelope.Message) {
				panic(fmt.Sprintf("injected into %s at %T", name, envelope.Message))
			}
		}
		next(c, envelope)
	}
}

// isEnd recognises what an actor hears at its end. One that always panics then
// cannot be ended by anybody.
func isEnd(message any) bool {
	switch message.(type) {
	case *actor.Stopping, *actor.Restarting:
		return true
	}
	return false
}

// drawFaults draws up to three faults. Most hit early: a round is some dozens of
// messages for each actor.
func drawFaults(random *rand.Rand) *faults {
	f := &faults{}
	for range 1 + random.IntN(3) {
		kind := actorKinds[random.IntN(len(actorKinds))]
		if kind == "registry" && random.IntN(3) > 0 {
			kind = "lane-" // the end of everything hides much
		}
		f.list = append(f.list, &fault{kind: kind, at: 1 + int64(random.IntN(60)), forever: random.IntN(4) == 0})
	}
	return f
}

func (f *faults) String() string {
	var all []string
	for _, fault := range f.list {
		all = append(all, fmt.Sprintf("%s at %d, for ever %v", fault.kind, fault.at, fault.forever))
	}
	return strings.Join(all, "; ")
}

func TestWhicheverActorPanicsEveryCallIsAnsweredOnceAndNothingLeaks(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			earlier := goleak.IgnoreCurrent()
			random := rand.New(rand.NewPCG(seed, 0))
			f := drawFaults(random)
			t.Log(f)
			marker := proctest.Marker()
			system, err := New(Options{receivers: []actor.ReceiverMiddleware{f.receive}})
			if err != nil {
				t.Fatal(err)
			}
			var calls sync.WaitGroup
			requests := make([]RefineRequest, 3)
			for i := range requests {
				req := holdingRequest(t)
				req.Pi += " " + marker
				req.Reviewers = 3
				requests[i] = answering(req)
				if i > 0 {
					req = requests[i]
				}
				calls.Go(func() { callThatMayBeLost(t, system, req) })
			}
			answered := make(chan struct{})
			go func() { calls.Wait(); close(answered) }()
			timeout := time.NewTimer(2 * time.Minute)
			defer timeout.Stop()
			select {
			case <-answered:
			case <-timeout.C:
				t.Fatal("a call is not answered")
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := system.Close(ctx); err != nil {
				t.Errorf("close: %v", err)
			}
			if left := proctest.Survivors(marker); len(left) > 0 {
				t.Errorf("%d children are left", len(left))
			}
			if err := goleak.Find(earlier, throttle); err != nil {
				t.Error(err)
			}
			for _, req := range requests {
				resumeAll(t, req)
			}
		})
	}
}

// answering makes the stub answer at once whatever its task says.
func answering(req RefineRequest) RefineRequest {
	req.Environ = append([]string{"PILOTHOUSE_STUB_PI=answering"}, req.Environ...) // the first one counts
	return req
}

// callThatMayBeLost makes a review and, beside it in the same run, an analysis of
// five references. Both are cancelled when they go on for long.
func callThatMayBeLost(t *testing.T, system *System, req RefineRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var beside sync.WaitGroup
	defer beside.Wait()
	var round RoundStarted
	ended := map[string]int{}
	result, err := system.Refine(ctx, req, func(event any) {
		switch m := event.(type) {
		case RoundStarted:
			round = m
			beside.Go(func() { analyzeBeside(ctx, t, system, req.Session) })
		case LaneEnded:
			ended[m.Lane.LaneID]++
		}
	})
	if !mayEndACall(err) {
		t.Errorf("the review: %v", err)
	}
	if err != nil {
		return
	}
	for i, lane := range result.Lanes {
		if !lane.Status.Terminal() || lane.LaneID != round.Lanes[i].Spec.ID || ended[lane.LaneID] != 1 {
			t.Errorf("lane %s is %s, it was reported %d times", lane.LaneID, lane.Status, ended[lane.LaneID])
		}
	}
	if len(result.Lanes) != len(round.Lanes) {
		t.Errorf("%d lanes of %d", len(result.Lanes), len(round.Lanes))
	}
}

func analyzeBeside(ctx context.Context, t *testing.T, system *System, session Session) {
	req := AnalyzeRequest{Session: session, Model: ModelAnswer{Answered: true}}
	for i := range 5 {
		req.Refs = append(req.Refs, actors.Reference{ID: fmt.Sprint(i), LocalPath: "."})
	}
	result, err := system.AnalyzeRefs(ctx, req, nil)
	if !mayEndACall(err) {
		t.Errorf("the analysis: %v", err)
	}
	if err != nil {
		return
	}
	if len(result.Lanes) != len(req.Refs) || slices.ContainsFunc(result.Lanes, func(l LaneResult) bool { return !l.Status.Terminal() }) {
		t.Errorf("the analysis has %+v", result.Lanes)
	}
}

// mayEndACall tells the errors that the death of an actor can come to.
func mayEndACall(err error) bool {
	var (
		lost      *LostRunError
		closed    *ClosedError
		cancelled *CancelledError
	)
	return err == nil || errors.As(err, &lost) || errors.As(err, &closed) || errors.As(err, &cancelled)
}

// resumeAll runs what is on record to its end, in a system without faults: what
// was recorded before the panic is whole, and nobody owns it any more.
func resumeAll(t *testing.T, req RefineRequest) {
	t.Helper()
	root, err := store.Find(context.Background(), req.Workdir)
	if errors.Is(err, store.ErrNoState) { // it never came to that
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	runs, err := root.Runs()
	if err != nil {
		t.Fatal(err)
	}
	system, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := system.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	for _, run := range runs {
		if _, state, err := run.Dir.Owner(); err != nil || state != store.OwnerNone {
			t.Errorf("the run is still owned: %v, %v", state, err)
		}
		cp, err := run.Dir.LoadCheckpoint()
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, round := range cp.ReviewRounds {
			req.RunID, req.ResumeRoundID = run.Dir.ID, round.RoundID
			result, err := system.Refine(context.Background(), req, nil)
			if err != nil || result.Complete() != len(round.Lanes) {
				t.Errorf("resumed: %d of %d lanes are complete, %v", result.Complete(), len(round.Lanes), err)
			}
		}
	}
}
