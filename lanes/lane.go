package lanes

import (
	"cmp"
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
//	  │ ◀──giveWay──┘                ▲  │                           │
//	  └──Begin──▶ queued ──a place───┘  │        queued ◀──delay────┘
//	                                    ▼
//	            any state ──Cancel──▶ ended: one Finished to the parent, then stop
//
// Whatever takes time (starting, reading and ending a child, waiting) is [work]
// on a goroutine. There is at most one at a time, and the lane hears only of the
// one that it waits for.
type lane struct {
	host    Host
	spec    Spec
	limits  Limits
	history *history
	retries *retries

	begun     bool
	cancelled *Cancel // nil while not cancelled
	work      *work   // nil when nothing runs
	warm      Child   // a started child without a task
	place     Place   // of its child, or the one that it waits for; nil without
	yields    bool    // the warm child has to give its place back
	last      outcome // of the last attempt
}

// history is what outlives a restart of the lane's actor after a panic: what
// was spent stays spent. It belongs to the lane's actor until that has ended,
// then to the batch.
type history struct {
	attempts int
	usage    pijson.Usage
	turns    int
	started  time.Time     // carries the monotonic clock
	queued   time.Duration // in waits for a place since then; no clock of the lane runs in them
	activity Activity      // from Begin to the terminal record
}

func (h *history) add(v pijson.Verdict) {
	h.usage = h.usage.Plus(v.Usage)
	h.turns += v.Turns
}

// duration is the time since the first attempt without the waits for places; 0 if no
// attempt was made.
func (h *history) duration() time.Duration {
	if h.started.IsZero() {
		return 0
	}
	return time.Since(h.started) - h.queued
}

// waitedForPlace stops the lane's clocks for a wait between two attempts; before the
// first they have not started.
func (h *history) waitedForPlace(m queued) {
	if !h.started.IsZero() {
		h.queued += time.Since(m.since)
	}
}

// work is a goroutine of the lane. The lane cancels it, waits for done and then
// finds in report what came of it.
type work struct {
	cancel context.CancelFunc
	done   chan struct{}
	report any // warmed, discarded, queued, waited or outcome
}

// What work reports.
type (
	warmed    struct{ child Child } // nil when it could not be started
	discarded struct{}              // a warm child is gone
	queued    struct{ since time.Time }
	waited    struct{} // the next attempt is due
)

// Messages of a lane to itself. They name the work they come from: when the lane
// has moved on, they are dropped.
type (
	// giveWay comes when somebody waits for the place of the warm child. One that
	// comes too late, to a lane that was started anew, costs that a warm child.
	giveWay    struct{}
	worked     struct{ work *work }
	progressed struct {
		work     *work
		progress pijson.Progress
		warning  string
	}
)

// ready tells the parent that a lane (re)started and waits for Begin.
type ready struct{ laneID string }

func newLane(spec Spec, host Host, past *history) actor.Producer {
	return func() actor.Actor {
		limits := spec.Limits.withDefaults()
		return &lane{host: host, spec: spec, limits: limits, history: past, retries: newRetries(limits)}
	}
}

// Receive implements actor.Actor.
func (l *lane) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		l.start(ctx)
	case Warm:
		l.startWarm(ctx)
	case Begin:
		l.begin(ctx)
	case Cancel:
		l.cancel(ctx, m)
	case giveWay:
		l.giveWay(ctx)
	case progressed:
		if m.work == l.work {
			l.tell(ctx, Running, m.progress, m.warning)
		}
	case worked:
		if m.work == l.work {
			l.work = nil
			l.take(ctx, m.work.report)
		}
	case *actor.Restarting:
		l.release()
	case *actor.Stopping:
		l.release()
		l.abandon()
	}
}

func (l *lane) start(ctx actor.Context) {
	if l.history.attempts >= l.limits.Attempts {
		// Restarted after a panic, and no attempt is left: the batch reports why.
		ctx.Stop(ctx.Self())
		return
	}
	ctx.Send(ctx.Parent(), ready{l.spec.ID})
}

// startWarm starts a child ahead of its task. A failed warm start costs nothing:
// the first attempt starts its own child, and tells what is wrong.
func (l *lane) startWarm(ctx actor.Context) {
	if l.begun || l.cancelled != nil || l.work != nil || l.warm != nil {
		return
	}
	self, root := ctx.Self(), ctx.ActorSystem().Root
	place, ok := l.host.Spare(func() { root.Send(self, giveWay{}) })
	if !ok {
		return
	}
	l.place = place
	traceparent := traceparent(MessageTrace(ctx))
	l.spawn(ctx, func(ctx context.Context, _ *work) (report any) {
		defer func() {
			if recover() != nil {
				report = warmed{}
			}
		}()
		child, err := l.host.Start(ctx, l.spec, traceparent)
		if err != nil {
			return warmed{}
		}
		return warmed{child}
	})
}

func (l *lane) begin(ctx actor.Context) {
	if l.begun {
		return
	}
	l.begun = true
	if !l.history.activity.Begun() { // else restarted after a panic
		l.history.activity = BeginActivity(ctx, "lane", laneAttributes(l.spec)...)
	}
	if l.work == nil { // else the warm start, or the end of the warm child, reports first
		l.goOn(ctx)
	}
}

// giveWay ends the child that waits for its task because another lane has one.
func (l *lane) giveWay(ctx actor.Context) {
	if l.begun || l.cancelled != nil || l.place == nil {
		return // its place is spoken for, or given back already
	}
	l.yields = true
	if l.work == nil { // else the warm start reports first
		l.goOn(ctx)
	}
}

// take goes on with what work has reported.
func (l *lane) take(ctx actor.Context, report any) {
	switch m := report.(type) {
	case warmed:
		l.takeWarm(ctx, m)
	case outcome:
		l.judge(ctx, m)
	case queued:
		l.history.waitedForPlace(m)
		l.goOn(ctx)
	case waited:
		l.goOn(ctx)
	case discarded:
		l.leave()
		l.goOn(ctx)
	}
}

// takeWarm keeps a warm child, or puts it to work when Begin was faster.
func (l *lane) takeWarm(ctx actor.Context, m warmed) {
	l.warm = m.child
	if l.warm == nil {
		l.leave()
	}
	l.goOn(ctx)
}

// leave gives the place back, or the turn in the queue, if the lane has one.
func (l *lane) leave() {
	if l.place != nil {
		l.place.Release()
		l.place = nil
	}
	l.yields = false
}

// goOn does what is next when nothing of the lane's is at work.
func (l *lane) goOn(ctx actor.Context) {
	switch {
	case l.warm != nil && (l.cancelled != nil || l.yields || l.begun && !l.place.Keep()):
		l.discard(ctx)
	case l.cancelled != nil:
		l.finish(ctx)
	case !l.begun: // it waits for Begin, warm or cold
	case l.place == nil:
		l.queue(ctx)
	default:
		l.attempt(ctx)
	}
}

// discard ends a warm child that gets no task.
func (l *lane) discard(ctx actor.Context) {
	child := l.warm
	l.warm = nil
	l.spawn(ctx, func(context.Context, *work) any {
		endChild(child)
		return discarded{}
	})
}

// queue asks for a place for the next child, and waits for it if need be.
func (l *lane) queue(ctx actor.Context) {
	l.place = l.host.Queue()
	granted := l.place.Granted()
	select {
	case <-granted:
		l.attempt(ctx)
		return
	default:
	}
	l.tell(ctx, Queued, pijson.Progress{Phase: PhaseQueued}, "")
	since := time.Now()
	l.spawn(ctx, func(ctx context.Context, _ *work) any {
		select {
		case <-granted:
		case <-ctx.Done():
		}
		return queued{since}
	})
}

// attempt runs the next child of the lane, which has a place for it.
func (l *lane) attempt(ctx actor.Context) {
	h := l.history
	h.attempts++
	if h.started.IsZero() {
		h.started = time.Now()
	}
	self, root := ctx.Self(), ctx.ActorSystem().Root
	telemetry := telemetryOf(ctx.ActorSystem())
	traced, trace := beginAttempt(h.activity.Context(), telemetry.Tracer, l.spec, h.attempts)
	run := &attempt{
		host: l.host, spec: l.spec, limits: l.limits,
		deadline: h.started.Add(l.limits.Lane + h.queued), budget: budget{l.limits, h.turns, h.usage},
		number: h.attempts, traceparent: traceparent(traced), trace: trace, metrics: telemetry.Metrics,
	}
	warm := l.warm
	l.tell(ctx, Running, pijson.Progress{Phase: PhaseStarting}, "")
	l.spawn(ctx, func(ctx context.Context, w *work) any {
		run.report = func(p pijson.Progress, warning string) { root.Send(self, progressed{w, p, warning}) }
		return run.run(ctx, warm)
	})
	l.warm = nil
}

// spawn runs a task that takes time and returns its report. A task recovers from
// its own panics: one that got out would end the whole program (faults D58).
func (l *lane) spawn(ctx actor.Context, task func(context.Context, *work) any) {
	self, root := ctx.Self(), ctx.ActorSystem().Root
	workCtx, cancel := context.WithCancel(context.Background())
	w := &work{cancel: cancel, done: make(chan struct{})}
	l.work = w
	go func() {
		defer close(w.done)
		defer cancel()
		w.report = task(workCtx, w)
		root.Send(self, worked{w})
	}()
}

func (l *lane) tell(ctx actor.Context, status Status, p pijson.Progress, warning string) {
	ctx.Send(ctx.Parent(), Progress{
		LaneID: l.spec.ID, Status: status, Phase: p.Phase, Tool: p.Tool,
		Attempt: l.history.attempts, Turns: l.history.turns + p.Turns, Usage: l.history.usage.Plus(p.Usage), Model: p.Model,
		Elapsed: l.history.duration(), Warning: warning,
	})
}

// judge takes the outcome of an attempt: the lane is done, or waits for another. The
// child is gone, and its place is free for others meanwhile.
func (l *lane) judge(ctx actor.Context, o outcome) {
	l.leave()
	l.last = o
	l.history.add(o.verdict)
	if contended(o.verdict) {
		l.host.Contended()
	}
	if l.cancelled == nil {
		remaining := l.limits.Lane - l.history.duration()
		if delay, again := l.retries.next(o.verdict, l.history.attempts, remaining); again {
			telemetryOf(ctx.ActorSystem()).Metrics.retried(o.verdict.Class)
			l.tell(ctx, Running, pijson.Progress{Phase: fmt.Sprintf("waiting: %s, next attempt in %s", o.verdict.Class, delay.Round(100*time.Millisecond))}, "")
			l.spawn(ctx, func(ctx context.Context, _ *work) any {
				due := time.NewTimer(delay)
				defer due.Stop()
				select {
				case <-due.C:
				case <-ctx.Done():
				}
				return waited{}
			})
			return
		}
	}
	l.finish(ctx)
}

// cancel ends the lane from any state. A child is ended by its kill ladder
// first; its verdict may still be a complete answer that came just before.
func (l *lane) cancel(ctx actor.Context, m Cancel) {
	if l.cancelled != nil {
		return
	}
	l.cancelled = &m
	if l.work != nil {
		l.work.cancel() // it reports
		return
	}
	l.goOn(ctx)
}

func (l *lane) finish(ctx actor.Context) {
	l.leave()
	result := l.result()
	endLane(l.history.activity, result)
	ctx.Send(ctx.Parent(), Finished{result})
	ctx.Stop(ctx.Self())
}

// abandon ends the span of a lane that stops without a report of its own.
func (l *lane) abandon() {
	r := l.history.result(l.spec.ID)
	r.Status, r.Error = Failed, &Failure{Class: pijson.ClassInternal}
	endLane(l.history.activity, r)
}

// result is the record of the lane after its last attempt. A lane that was
// cancelled is complete or cancelled: a failure that came in between might have
// been tried again.
func (l *lane) result() Result {
	v, exit := l.last.verdict, l.last.exit
	r := l.history.result(l.spec.ID)
	r.Status, r.Model, r.Notes = Status(v.Status), v.Model, v.Notes
	if l.last.started {
		r.Stderr = exit.Stderr
		r.Exit.Signal = exit.Signal
		if exit.Signal == "" {
			r.Exit.Code = &exit.Code
		}
	}
	if r.Status == Complete {
		r.Output = v.Output
		return r
	}
	r.Output = v.Partial
	r.Error = &Failure{Class: v.Class, Message: v.Message}
	if l.cancelled != nil {
		r.Status = Cancelled
		r.Error = &Failure{Class: pijson.ClassCancelled, Message: cmp.Or(l.cancelled.Reason, pijson.ClassCancelled.Sentence())}
		if v.Detail != "" {
			r.Error.Message += "; before that: " + v.Detail
		}
	}
	return r
}

// result holds what the lane has cost so far.
func (h *history) result(laneID string) Result {
	return Result{
		LaneID: laneID, Attempts: h.attempts, Usage: h.usage, Turns: h.turns,
		Started: h.started, Duration: h.duration(),
	}
}

// release ends whatever child the lane has and waits until it is gone. It
// blocks the actor while it stops or restarts, which is what keeps a parent
// from ending before the child of its lane has ended. What the lane has not heard of
// yet is accounted for here, because it never will.
func (l *lane) release() {
	if w := l.work; w != nil {
		w.cancel()
		<-w.done
		l.work = nil
		switch m := w.report.(type) {
		case outcome:
			l.history.add(m.verdict)
		case queued:
			l.history.waitedForPlace(m)
		case warmed:
			l.warm = m.child
		}
	}
	if l.warm != nil {
		endChild(l.warm)
		l.warm = nil
	}
	l.leave()
}

// endChild ends a child that nobody reads. It does not panic: it runs where
// something has gone wrong already.
func endChild(child Child) {
	defer func() { _ = recover() }()
	child.Terminate()
	defer child.Wait()
	_, _ = io.Copy(io.Discard, child.Stdout())
}
