package lanes

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes/pijson"
)

// lane is the actor of one lane. It owns at most one child at a time, and its
// life is
//
//	idle ──Warm──▶ warm ──Begin──▶ working ──retryable failure──▶ waiting
//	  └───────────Begin──────────────▲  │  ◀────────timer───────────┘
//	                                    ▼
//	            any state ──Cancel──▶ ended: one Finished to the parent, then stop
//
// Blocking work (starting, reading, ending a child) happens on a goroutine that
// reports back with the epoch it belongs to; reports of an older epoch are
// those of a child that no longer matters and are dropped.
type lane struct {
	host    Host
	spec    Spec
	limits  Limits
	history *history

	epoch       int
	traceparent string
	begun       bool
	cancelled   string // reason; "" while not cancelled
	retries     *retries
	timer       *time.Timer

	work *work // the running goroutine, nil when none
	warm Child // a started child without a task
}

// history is what outlives a restart of the lane's actor after a panic: what
// was spent stays spent.
type history struct {
	attempts int
	usage    pijson.Usage
	turns    int
	started  time.Time // carries the monotonic clock
}

// work is a goroutine of the lane. The lane cancels it and waits for done.
type work struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Messages of a lane to itself.
type (
	warmed struct {
		epoch int
		child Child
		err   error
	}
	progressed struct {
		epoch    int
		progress pijson.Progress
	}
	attempted struct {
		epoch   int
		outcome outcome
	}
	retryDue struct{ epoch int }
)

// ready tells the parent that a lane (re)started and waits for Begin.
type ready struct{ laneID string }

func newLane(spec Spec, host Host) actor.Producer {
	past := &history{}
	return func() actor.Actor {
		limits := spec.Limits.withDefaults()
		return &lane{host: host, spec: spec, limits: limits, history: past, retries: newRetries(limits.Attempts)}
	}
}

// Receive implements actor.Actor.
func (l *lane) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Send(ctx.Parent(), ready{l.spec.ID})
	case Warm:
		l.startWarm(ctx)
	case Begin:
		l.begin(ctx)
	case Cancel:
		l.cancel(ctx, m.Reason)
	case warmed:
		l.takeWarm(ctx, m)
	case progressed:
		l.tell(ctx, m)
	case attempted:
		l.judge(ctx, m)
	case retryDue:
		if m.epoch == l.epoch && l.cancelled == "" {
			l.attempt(ctx)
		}
	case *actor.Stopping, *actor.Restarting:
		l.release()
	}
}

// startWarm starts a child ahead of its task.
func (l *lane) startWarm(ctx actor.Context) {
	if l.begun || l.work != nil || l.warm != nil {
		return
	}
	epoch, traceparent := l.epoch, traceparent(ctx)
	l.spawn(ctx, func(work context.Context) any {
		child, err := l.host.Start(work, l.spec, traceparent)
		return warmed{epoch, child, err}
	})
}

// takeWarm keeps a warm child, or puts it to work when Begin was faster. A
// failed warm start costs nothing: the first attempt starts its own child.
func (l *lane) takeWarm(ctx actor.Context, m warmed) {
	l.work = nil
	if m.err == nil {
		l.warm = m.child
	}
	switch {
	case l.cancelled != "":
		l.finishCancelled(ctx)
	case l.begun:
		l.attempt(ctx)
	}
}

func (l *lane) begin(ctx actor.Context) {
	if l.begun {
		return
	}
	l.begun = true
	l.traceparent = traceparent(ctx)
	if l.work == nil { // else the warm start reports first
		l.attempt(ctx)
	}
}

// attempt runs the next child of the lane.
func (l *lane) attempt(ctx actor.Context) {
	l.epoch++
	l.history.attempts++
	if l.history.started.IsZero() {
		l.history.started = time.Now()
	}
	epoch, self, root := l.epoch, ctx.Self(), ctx.ActorSystem().Root
	run := &attempt{
		host: l.host, spec: l.spec, limits: l.limits,
		remaining:   l.remaining(),
		traceparent: l.traceparent,
		report:      func(p pijson.Progress) { root.Send(self, progressed{epoch, p}) },
	}
	warm := l.warm
	l.warm = nil
	l.send(ctx, pijson.Progress{Phase: "starting"})
	l.spawn(ctx, func(work context.Context) (message any) {
		defer func() {
			if reason := recover(); reason != nil {
				message = attempted{epoch, run.crashed(reason)}
			}
		}()
		return attempted{epoch, run.run(work, warm)}
	})
}

// spawn runs blocking work and sends what it returns to the lane itself.
func (l *lane) spawn(ctx actor.Context, task func(context.Context) any) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	work := &work{done: make(chan struct{})}
	workCtx, cancel := context.WithCancel(context.Background())
	work.cancel = cancel
	l.work = work
	go func() {
		defer close(work.done)
		defer cancel()
		root.Send(self, task(workCtx))
	}()
}

func (l *lane) remaining() time.Duration {
	return l.limits.Lane - time.Since(l.history.started)
}

func (l *lane) tell(ctx actor.Context, m progressed) {
	if m.epoch == l.epoch {
		l.send(ctx, m.progress)
	}
}

func (l *lane) send(ctx actor.Context, p pijson.Progress) {
	ctx.Send(ctx.Parent(), Progress{
		LaneID: l.spec.ID, Status: Running, Phase: p.Phase, Tool: p.Tool,
		Attempt: l.history.attempts, Turns: l.history.turns + p.Turns, Usage: l.history.usage.Plus(p.Usage), Model: p.Model,
		Elapsed: time.Since(l.history.started),
	})
}

// judge takes the outcome of an attempt: the lane is done, or waits for another.
func (l *lane) judge(ctx actor.Context, m attempted) {
	if m.epoch != l.epoch {
		return
	}
	l.work = nil
	verdict := m.outcome.verdict
	l.history.usage = l.history.usage.Plus(verdict.Usage)
	l.history.turns += verdict.Turns
	if l.cancelled == "" {
		if delay, again := l.retries.next(verdict, l.history.attempts, l.remaining()); again {
			l.send(ctx, pijson.Progress{Phase: fmt.Sprintf("waiting: %s, next attempt in %s", verdict.Class, delay.Round(100*time.Millisecond))})
			epoch, self, root := l.epoch, ctx.Self(), ctx.ActorSystem().Root
			l.timer = time.AfterFunc(delay, func() { root.Send(self, retryDue{epoch}) })
			return
		}
	}
	l.finish(ctx, l.result(m.outcome))
}

func (l *lane) result(o outcome) Result {
	v := o.verdict
	r := Result{
		LaneID: l.spec.ID, Status: Status(v.Status), Attempts: l.history.attempts, Model: v.Model,
		Usage: l.history.usage, Turns: l.history.turns, Started: l.history.started,
		Duration: time.Since(l.history.started), Output: v.Output, Notes: v.Notes,
	}
	if o.started {
		r.Stderr = o.exit.Stderr
		r.Exit.Signal = o.exit.Signal
		if o.exit.Signal == "" {
			code := o.exit.Code
			r.Exit.Code = &code
		}
	}
	if r.Status != Complete {
		r.Output = v.Partial
		r.Error = &Failure{Class: v.Class, Message: v.Message}
	}
	return r
}

// cancel ends the lane from any state. A child is ended by its kill ladder
// first; its verdict may still be a complete answer that came just before.
func (l *lane) cancel(ctx actor.Context, reason string) {
	if l.cancelled != "" {
		return
	}
	l.cancelled = reason
	if l.work != nil {
		l.work.cancel() // the goroutine reports
		return
	}
	l.finishCancelled(ctx)
}

func (l *lane) finishCancelled(ctx actor.Context) {
	r := Result{
		LaneID: l.spec.ID, Status: Cancelled, Attempts: l.history.attempts,
		Usage: l.history.usage, Turns: l.history.turns, Started: l.history.started,
		Error: &Failure{Class: pijson.ClassCancelled, Message: l.cancelled},
	}
	if !l.history.started.IsZero() {
		r.Duration = time.Since(l.history.started)
	}
	l.finish(ctx, r)
}

func (l *lane) finish(ctx actor.Context, r Result) {
	ctx.Send(ctx.Parent(), Finished{r})
	ctx.Stop(ctx.Self())
}

// release ends whatever child the lane has and waits until it is gone. It
// blocks the actor while it stops or restarts, which is what keeps a parent
// from ending before the child of its lane has ended.
func (l *lane) release() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.work != nil {
		l.work.cancel()
		<-l.work.done
		l.work = nil
	}
	if l.warm != nil {
		endChild(l.warm)
		l.warm = nil
	}
}

// endChild ends a child that nobody reads.
func endChild(child Child) {
	child.Terminate()
	_, _ = io.Copy(io.Discard, child.Stdout())
	child.Wait()
}

// traceparent is the W3C trace context of the message at hand, "" without one.
func traceparent(ctx actor.Context) string {
	if header := ctx.MessageHeader(); header != nil {
		return header.Get("traceparent")
	}
	return ""
}
