package lanes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// foreignToolGrace is how long pi may take to refuse a call of a tool that it was
// not given; measured, it does so in the same breath.
const foreignToolGrace = time.Second

// attempt is one child from start to verdict. It runs on a goroutine of its own,
// owned by the lane actor, and holds all clocks of the child.
type attempt struct {
	host        Host
	spec        Spec
	limits      Limits    // with defaults
	deadline    time.Time // of the whole lane
	budget      budget
	number      int // 1 for the first attempt of the lane
	traceparent string
	trace       *attemptTrace
	metrics     *Metrics
	// report is called as often as reports lets it; warning is "" while the lane
	// is well within its budget.
	report func(progress pijson.Progress, warning string)

	mu      sync.Mutex
	fold    *pijson.Fold
	spool   *transcript
	warning string
	fed     time.Time
	heard   bool // an event has come
	stats   pijson.ReaderStats
	cause   pijson.Cause // why we ended the child; the first cause wins
	child   Child
	reports reports
	silence *time.Timer
	drain   *time.Timer
	foreign *time.Timer // runs while a tool outside the lane's list seems to run
}

// outcome is what an attempt came to.
type outcome struct {
	verdict pijson.Verdict
	exit    proc.Exit
	started bool // a child existed
}

// run starts the child (unless a warm one is given), feeds it and reads it to
// its end. It returns when the child and its descendants are gone, also after a
// panic. Cancelling ctx starts the kill ladder; run still returns only when the
// ladder is done.
func (a *attempt) run(ctx context.Context, warm Child) (result outcome) {
	a.fold = pijson.NewFold(pijson.FoldOptions{AllowedTools: a.spec.Tools})
	a.spool = openTranscript(a.spec.Transcript, a.number)
	defer func() { a.trace.end(result) }()
	defer a.closeTranscript(&result)
	defer func() {
		if reason := recover(); reason != nil {
			result = a.crashed(reason)
		}
	}()
	if a.child = living(warm); a.child == nil {
		if failed := a.start(ctx); failed != nil {
			return *failed
		}
	}
	exit, readErr := a.follow(ctx)

	a.mu.Lock()
	defer a.mu.Unlock()
	end := pijson.End{Code: exit.Code, Signal: exit.Signal, Cause: a.cause, Stderr: exit.Stderr, Err: readErr, Stats: a.stats}
	result = outcome{verdict: a.fold.Verdict(end), exit: exit, started: true}
	if exit.Leaked {
		result.note("a process of its tree could not be ended")
	}
	switch {
	case a.warning == "":
	case result.verdict.Class == pijson.ClassBudget:
		result.verdict.Message += ": " + a.warning
	default:
		result.note(a.warning)
	}
	return result
}

// living is the warm child, unless it has died while it waited. That costs the lane
// nothing but a start; what holds the descriptors of the dead one is its stdout,
// which has to be read to the end all the same.
func living(warm Child) Child {
	if warm == nil {
		return nil
	}
	select {
	case <-warm.Done():
		endChild(warm)
		return nil
	default:
		return warm
	}
}

// note adds a remark on a lane that went on all the same.
func (o *outcome) note(text string) { o.verdict.Notes = append(o.verdict.Notes, text) }

func (a *attempt) closeTranscript(result *outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.spool.close(); err != nil {
		result.note("the transcript is not complete: " + err.Error())
	}
}

// start starts a child, within the time of the lane. It returns the outcome of
// the attempt when there is no child.
func (a *attempt) start(ctx context.Context) *outcome {
	startCtx, cancel := context.WithDeadline(ctx, a.deadline)
	defer cancel()
	child, err := a.host.Start(startCtx, a.spec, a.traceparent)
	if err == nil {
		a.child = child
		return nil
	}
	end := pijson.End{Cause: pijson.CauseStartFailed, Err: err}
	switch {
	case ctx.Err() != nil:
		end.Cause = pijson.CauseCancelled
	case startCtx.Err() != nil:
		end.Cause = pijson.CauseTimedOut
	}
	verdict := a.fold.Verdict(end)
	var start *proc.StartError
	if errors.As(err, &start) && start.Temporary() { // the machine is short of something
		verdict.Retryable = true
	}
	return &outcome{verdict: verdict}
}

// follow feeds the child and reads it to its end.
func (a *attempt) follow(ctx context.Context) (exit proc.Exit, readErr error) {
	defer a.watch(ctx)()
	if ctx.Err() == nil { // a child that came too late costs nothing without a task
		a.child.Feed([]byte(a.spec.Task))
	}
	readErr = a.read(a.child.Stdout())
	a.startDrain() // the end of stdout without an exit is an end too (faults A8)
	return a.child.Wait(), readErr
}

// read folds the stream until its end.
func (a *attempt) read(stdout io.Reader) error {
	reader := pijson.NewReader(stdout, pijson.ReaderOptions{})
	defer func() { a.stats = reader.Stats() }()
	for {
		event, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			// A child that cannot be followed is ended at once. What it printed
			// so far may be an answer, so this counts as the end of its stdout.
			a.end(pijson.CauseDrained)
			_, _ = io.Copy(io.Discard, stdout)
			return fmt.Errorf("read the event stream: %w", err)
		}
		a.apply(event)
	}
}

func (a *attempt) apply(event pijson.Event) {
	if a.take(event) {
		a.end(pijson.CauseBudget)
	}
}

// take takes in one event, moves the clocks and reports whether the lane's
// budget is spent.
func (a *attempt) take(event pijson.Event) (spent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wasOver := a.over()
	a.fold.Apply(event)
	a.spool.take(event)
	a.trace.take(event)
	a.guardTools()
	if !a.heard {
		a.heard = true
		a.metrics.heard(a.spec.Role, time.Since(a.fed), a.trace.spanContext())
	}
	a.silence.Reset(a.limits.Silence)
	switch over := a.over(); {
	case over && (!wasOver || event.Kind == pijson.KindSettled):
		a.drain.Reset(a.limits.Drain)
	case !over && wasOver:
		a.drain.Stop() // the child went on working: a retry or a further turn
	}
	if event.Kind == pijson.KindMessageEnd {
		a.warning, spent = a.budget.check(a.fold.Progress())
	}
	a.reports.note(a.fold.Progress(), a.warning, a.flushProgress)
	return spent
}

// guardTools ends a child in which a tool runs that the lane does not have. Pi
// refuses such a call at once, which clears the suspicion, so it gets a moment.
// The caller holds the lock.
func (a *attempt) guardTools() {
	switch suspected := a.fold.Trespass() != ""; {
	case suspected && a.foreign == nil:
		a.foreign = time.AfterFunc(foreignToolGrace, a.endTrespass)
	case !suspected && a.foreign != nil:
		a.foreign.Stop() // a later call gets a moment of its own
		a.foreign = nil
	}
}

func (a *attempt) endTrespass() {
	a.mu.Lock()
	runs := a.fold.Trespass() != ""
	a.foreign = nil
	a.mu.Unlock()
	if runs {
		a.child.Terminate() // the verdict names the tool
	}
}

// over tells that nothing but the child's exit is to come: it has answered, or
// said its last word after a failure.
func (a *attempt) over() bool { return a.fold.Answered() || a.fold.Settled() }

func (a *attempt) flushProgress() {
	a.mu.Lock()
	progress, warning := a.fold.Progress(), a.warning
	a.spool.flush()
	a.reports.reported(progress, warning)
	a.mu.Unlock()
	a.report(progress, warning)
}

// watch arms the clocks. The returned function disarms them; after it no clock
// of this attempt ends anything any more.
func (a *attempt) watch(ctx context.Context) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fed = time.Now() // the clocks start with the task
	stopCancel := context.AfterFunc(ctx, func() { a.end(pijson.CauseCancelled) })
	whole := time.AfterFunc(time.Until(a.deadline), func() { a.end(pijson.CauseTimedOut) })
	// The first event has its own, shorter limit; every event rearms the timer
	// with the limit for silence.
	a.silence = time.AfterFunc(a.limits.FirstEvent, a.endSilent)
	a.drain = time.AfterFunc(a.limits.Drain, func() { a.end(pijson.CauseDrained) })
	a.drain.Stop()
	return func() {
		stopCancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, timer := range []*time.Timer{whole, a.silence, a.drain, a.foreign} {
			if timer != nil {
				timer.Stop()
			}
		}
		a.reports.stop()
	}
}

func (a *attempt) startDrain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drain.Reset(a.limits.Drain)
}

func (a *attempt) endSilent() {
	a.mu.Lock()
	heard := a.heard
	a.mu.Unlock()
	if heard {
		a.end(pijson.CauseSilent)
		return
	}
	a.end(pijson.CauseNoFirstEvent)
}

// end starts the kill ladder for a reason of ours. Only the first reason is
// kept: it is what the user is told.
func (a *attempt) end(cause pijson.Cause) {
	a.mu.Lock()
	if a.cause == pijson.CauseNone {
		a.cause = cause
	}
	a.mu.Unlock()
	a.child.Terminate()
}

// crashed is the outcome of an attempt that panicked. The child is ended before
// anything is reported, and what it has cost is kept.
func (a *attempt) crashed(reason any) outcome {
	if a.child != nil {
		endChild(a.child)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	spent := a.fold.Progress()
	return outcome{verdict: pijson.Verdict{
		Status: pijson.StatusFailed, Class: pijson.ClassInternal, Message: fmt.Sprintf("pilothouse failed while it ran the lane: %v", reason),
		Model: spent.Model, Usage: spent.Usage, Turns: spent.Turns,
	}}
}
