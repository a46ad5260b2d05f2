package actors

import (
	"context"
	"errors"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
)

// Executor is the role that carries a plan out. It has no lane: its child is talked to
// and may change the workspace.
const Executor Role = "executor"

// executorTools are what carrying out a plan needs.
var executorTools = []string{"read", "bash", "edit", "write", "grep", "find", "ls"}

// Messages to an executor. It takes [lanes.Begin] and [lanes.Cancel] besides.
type (
	// Say gives the agent, which is at rest, its next message.
	Say struct{ Text string }
	// Finish lets the child leave.
	Finish struct{}
)

// Messages of an executor to its parent, besides [lanes.Progress].
type (
	// ExecutorReady tells that the child is there and waits for its first message.
	ExecutorReady struct{}
	// ExecutorTurn is a message of the agent whose tools have run.
	ExecutorTurn struct{ lanes.Turn }
	// ExecutorRested tells that the agent waits for its next message.
	ExecutorRested struct{ lanes.Rested }
	// ExecutorEnded is the last message, once the child and its descendants are gone.
	ExecutorEnded struct{ lanes.SessionEnd }
)

// ExecutorSpec is the child of an execution in dir.
func ExecutorSpec(runID, dir, model, prompt, transcript string, limits lanes.Limits) lanes.Spec {
	return lanes.Spec{
		ID: string(Executor), Name: "pi-plans-executor-" + runID, Role: string(Executor), Dir: dir, Model: model,
		Tools: executorTools, SystemPrompt: prompt, Transcript: transcript, Limits: limits,
	}
}

// executor owns the child of one execution. What is said to the child is decided by
// others; the executor guarantees that the child is gone before ExecutorEnded, which
// it sends once.
type executor struct {
	spec lanes.Spec
	host lanes.SessionHost

	ctx       context.Context // of the opening and of what is said
	cancel    context.CancelCauseFunc
	work      sync.WaitGroup
	begun     bool
	cancelled bool
	session   *lanes.Session // nil while it is not open
	refused   error          // of a message that the child did not take
	activity  lanes.Activity
}

// Messages of an executor to itself.
type (
	sessionOpened struct {
		session *lanes.Session
		err     error
	}
	sessionHeard struct{ event any }
	sayRefused   struct{ err error }
	sessionEnded struct{ end lanes.SessionEnd }
)

// NewExecutor makes the executor of a spec. It starts its child at [lanes.Begin].
func NewExecutor(spec lanes.Spec, host lanes.SessionHost) actor.Producer {
	return func() actor.Actor {
		ctx, cancel := context.WithCancelCause(context.Background())
		return &executor{spec: spec, host: host, ctx: ctx, cancel: cancel}
	}
}

// Receive implements actor.Actor.
func (e *executor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case lanes.Begin:
		e.begin(ctx)
	case sessionOpened:
		e.opened(ctx, m)
	case Say:
		e.say(ctx, m.Text)
	case sayRefused:
		e.refused = m.err
		e.session.Cancel(m.err.Error())
	case Finish:
		if e.session != nil {
			e.session.End()
		}
	case lanes.Cancel:
		e.cancelled = true
		e.cancel(errors.New(m.Reason))
	case sessionHeard:
		e.heard(ctx, m.event)
	case sessionEnded:
		e.ended(ctx, m.end)
	case *actor.Stopping, *actor.Restarting:
		e.abandon()
	}
}

func (e *executor) begin(ctx actor.Context) {
	if e.begun {
		return
	}
	e.begun = true
	e.activity = lanes.BeginActivity(ctx, "execution")
	root, self := ctx.ActorSystem().Root, ctx.Self()
	hear := func(event any) { root.Send(self, sessionHeard{event}) }
	opening, stop := context.WithCancelCause(e.activity.Context())
	context.AfterFunc(e.ctx, func() { stop(context.Cause(e.ctx)) })
	e.work.Go(func() {
		defer stop(nil)
		session, err := lanes.OpenSession(opening, e.host, e.spec, hear, nil)
		root.Send(self, sessionOpened{session, err})
		if err != nil {
			return
		}
		context.AfterFunc(e.ctx, func() { session.Cancel(context.Cause(e.ctx).Error()) })
		root.Send(self, sessionEnded{session.Wait()})
	})
}

func (e *executor) opened(ctx actor.Context, m sessionOpened) {
	switch {
	case m.err != nil:
		class := pijson.ClassStartFailure
		if e.cancelled {
			class = pijson.ClassCancelled
		}
		e.ended(ctx, lanes.SessionEnd{Error: &lanes.Failure{Class: class, Message: m.err.Error()}})
	case !e.cancelled:
		e.session = m.session
		ctx.Send(ctx.Parent(), ExecutorReady{})
	}
}

func (e *executor) say(ctx actor.Context, text string) {
	session := e.session
	if session == nil || e.cancelled {
		return
	}
	root, self := ctx.ActorSystem().Root, ctx.Self()
	e.work.Go(func() {
		if err := session.Prompt(e.ctx, text); err != nil && e.ctx.Err() == nil {
			root.Send(self, sayRefused{err})
		}
	})
}

func (e *executor) heard(ctx actor.Context, event any) {
	switch event := event.(type) {
	case lanes.Turn:
		ctx.Send(ctx.Parent(), ExecutorTurn{event})
	case lanes.Rested:
		ctx.Send(ctx.Parent(), ExecutorRested{event})
	default:
		ctx.Send(ctx.Parent(), event)
	}
}

func (e *executor) ended(ctx actor.Context, end lanes.SessionEnd) {
	if e.refused != nil && !e.cancelled && end.Error != nil && end.Error.Class == pijson.ClassCancelled { // it was ended for that
		end.Error = &lanes.Failure{Class: pijson.ClassProtocol, Message: e.refused.Error()}
	}
	failure := ""
	if end.Error != nil {
		failure = string(end.Error.Class)
	}
	e.activity.End(failure)
	ctx.Send(ctx.Parent(), ExecutorEnded{end})
	ctx.Stop(ctx.Self())
}

// abandon ends the child of an executor that ends, and waits for it.
func (e *executor) abandon() {
	e.cancel(errors.New("the execution was ended"))
	e.work.Wait()
	e.activity.End("") // it has ended with a word of its own, or nobody asks
}
