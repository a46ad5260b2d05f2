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
	"pilothouse/lanes/rpc"
)

// What a [Session] tells.
type (
	// Turn is an assistant message whose tools have run.
	Turn struct {
		Text       string
		StopReason string
		Error      string // the provider's, "" without one
		ToolCalls  int
		Usage      pijson.Usage
	}
	// Rested tells that the agent waits for its next message.
	Rested struct {
		StopReason string // of its last message
		Error      string
		Aborted    bool
	}
)

// SessionEnd is how a session ended, after its child was gone.
type SessionEnd struct {
	Error *Failure // nil when it was hung up
	Exit  Exit
	Model string
	Usage pijson.Usage
	Turns int
	Notes []string
}

// Session is one pi that is talked to: messages in, turns out. It has the clocks and
// the budget of a lane's attempt, but for the time between a rest and the next message,
// which counts only for the whole. It has a place while its child is started and while
// the agent works. At rest it has none: what it waits for may be lanes of its own run,
// which would wait for its place for ever. Whoever opens it ends it, with End or Cancel,
// and waits.
type Session struct {
	spec   Spec
	limits Limits // with defaults
	budget budget
	hear   func(any)
	host   Places
	child  SessionChild
	client *rpc.Client
	opened time.Time
	done   chan struct{}
	end    SessionEnd // valid when done is closed

	mu       sync.Mutex
	fold     *pijson.Fold
	spool    *transcript
	message  *pijson.Message // of the turn that has not ended
	last     Rested          // as the next rest will be
	working  bool            // since a message was given
	place    Place           // nil at rest
	over     bool            // it takes no place any more
	heard    bool            // an event has come since
	hungUp   bool
	cause    pijson.Cause
	reason   string
	stats    pijson.ReaderStats
	warning  string
	reports  reports
	silence  *time.Timer
	settle   *time.Timer
	drain    *time.Timer
	deadline *time.Timer
}

// OpenSession waits for a place and starts a child. Spec.Task is not used. Hear gets
// [Turn], [Rested] and, at most ten a second, [Progress] values; it must not block, and
// may be called by several goroutines. Answer answers the dialogs of extensions, nil
// dismisses them. The child works in the trace of ctx. Errors: *proc.StartError, and that
// of ctx.
func OpenSession(ctx context.Context, host SessionHost, spec Spec, hear func(any), answer func(pijson.Dialog) rpc.Answer) (*Session, error) {
	place := host.Queue()
	defer place.Release()
	select {
	case <-place.Granted():
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a place: %w", context.Cause(ctx))
	}
	child, err := host.StartSession(ctx, spec, traceparent(ctx))
	if err != nil {
		return nil, err
	}
	limits := spec.Limits.withDefaults()
	s := &Session{
		spec: spec, limits: limits, budget: budget{limits: limits}, hear: hear, host: host, child: child,
		client: rpc.New(child.Say, answer), opened: time.Now(), done: make(chan struct{}),
		fold: pijson.NewFold(pijson.FoldOptions{}), spool: openTranscript(spec.Transcript, 1),
	}
	s.silence = stopped(func() { s.endSilent() })
	s.settle = stopped(func() { s.rest() })
	s.drain = stopped(func() { s.stop(pijson.CauseDrained, "") })
	s.deadline = time.AfterFunc(limits.Lane, func() { s.stop(pijson.CauseTimedOut, "") })
	go s.run()
	return s, nil
}

// stopped is a timer that waits for its first Reset.
func stopped(f func()) *time.Timer {
	timer := time.AfterFunc(time.Hour, f)
	timer.Stop()
	return timer
}

// Prompt gives the agent, which is at rest, a message, as soon as it has a place to work
// on it. It returns when pi has accepted it. Errors: *rpc.RefusedError, rpc.ErrGone,
// proc.ErrHungUp, proc.ErrUnread, and that of ctx.
func (s *Session) Prompt(ctx context.Context, text string) error {
	if err := s.takePlace(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.working, s.heard, s.last = true, false, Rested{}
	s.silence.Reset(s.limits.FirstEvent)
	s.mu.Unlock()
	err := s.client.Prompt(ctx, text)
	if err != nil {
		s.mu.Lock()
		s.working = false
		s.silence.Stop()
		s.leavePlace()
		s.mu.Unlock()
	}
	return err
}

// takePlace waits for a place for the agent's work.
func (s *Session) takePlace(ctx context.Context) error {
	place := s.host.Queue()
	select {
	case <-place.Granted():
	default:
		s.mu.Lock()
		queued := s.progress(Queued, s.fold.Progress())
		s.mu.Unlock()
		queued.Phase, queued.Tool = PhaseQueued, ""
		s.hear(queued)
	}
	select {
	case <-place.Granted():
	case <-s.done:
		place.Release()
		return rpc.ErrGone
	case <-ctx.Done():
		place.Release()
		return fmt.Errorf("wait for a place: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		place.Release()
		return rpc.ErrGone
	}
	s.place = place
	return nil
}

// leavePlace gives the place back, if there is one. The caller holds the lock.
func (s *Session) leavePlace() {
	if s.place != nil {
		s.place.Release()
		s.place = nil
	}
}

// Working tells whether the agent is at work. One with an extension may also begin by
// itself, and then has no place: what asked for it is at work already.
func (s *Session) Working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working
}

// End asks the child to leave, and ends it when it does not. It returns at once.
func (s *Session) End() {
	s.mu.Lock()
	s.hungUp = true
	s.drain.Reset(s.limits.Drain)
	s.mu.Unlock()
	s.child.HangUp()
}

// Cancel starts the kill ladder. It returns at once.
func (s *Session) Cancel(reason string) { s.stop(pijson.CauseCancelled, reason) }

// Done is closed when the child and its descendants are gone; Wait returns then.
func (s *Session) Done() <-chan struct{} { return s.done }

// Wait waits for Done and tells how the session ended.
func (s *Session) Wait() SessionEnd {
	<-s.done
	return s.end
}

// run follows the child to its end.
func (s *Session) run() {
	readErr := s.read()
	s.client.Close()
	s.mu.Lock()
	s.drain.Reset(s.limits.Drain) // the end of stdout without an exit is an end too (faults A8)
	s.mu.Unlock()
	exit := s.child.Wait()

	s.mu.Lock()
	for _, timer := range []*time.Timer{s.silence, s.settle, s.drain, s.deadline} {
		if timer != nil {
			timer.Stop()
		}
	}
	s.reports.stop()
	s.over = true
	s.leavePlace()
	turn := s.takeTurn()
	s.end = s.judge(exit, readErr)
	if err := s.spool.close(); err != nil {
		s.end.Notes = append(s.end.Notes, "the transcript is not complete: "+err.Error())
	}
	s.mu.Unlock()
	if turn != nil { // it had no time to end
		s.hear(*turn)
	}
	close(s.done)
}

// read takes in the stream until its end. A child that cannot be followed is ended.
func (s *Session) read() (err error) {
	stdout := s.child.Stdout()
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("follow the child: %v", reason)
		}
		if err != nil {
			s.stop(pijson.CauseDrained, "")
			_, _ = io.Copy(io.Discard, stdout)
		}
	}()
	reader := pijson.NewReader(stdout, pijson.ReaderOptions{})
	defer func() {
		s.mu.Lock()
		s.stats = reader.Stats()
		s.mu.Unlock()
	}()
	for {
		event, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the event stream: %w", err)
		}
		if !s.client.Take(event) {
			s.take(event)
		}
	}
}

// take takes in one event of the agent's work.
func (s *Session) take(event pijson.Event) {
	s.mu.Lock()
	s.fold.Apply(event)
	s.spool.take(event)
	s.heard = true
	s.settle.Stop()
	if s.working {
		s.silence.Reset(s.limits.Silence)
	}
	spent, settled := false, false
	var turn *Turn
	switch event.Kind {
	case pijson.KindAgentStart:
		if !s.working { // an extension has sent a message
			s.working, s.last = true, Rested{}
			s.silence.Reset(s.limits.Silence)
		}
	case pijson.KindMessageEnd:
		if event.Role == pijson.RoleAssistant && event.Message != nil {
			s.message = event.Message
			s.last.StopReason, s.last.Error = event.Message.StopReason, event.Message.Error
		}
		s.warning, spent = s.budget.check(s.fold.Progress())
	case pijson.KindTurnStart, pijson.KindTurnEnd:
		turn = s.takeTurn()
	case pijson.KindCompactionEnd:
		s.awaitSettling(event)
	case pijson.KindAgentEnd:
		turn = s.takeTurn()
		s.awaitSettling(event)
	case pijson.KindSettled:
		turn = s.takeTurn()
		s.last.Aborted = event.Aborted
		settled = true
	default:
	}
	s.reports.note(s.fold.Progress(), s.warning, s.report)
	s.mu.Unlock()
	if turn != nil {
		s.hear(*turn)
	}
	if spent {
		s.stop(pijson.CauseBudget, "")
	}
	if settled {
		s.rest()
	}
}

// awaitSettling gives an older pi, which does not say when it rests, as long for it as to
// leave. The caller holds the lock.
func (s *Session) awaitSettling(event pijson.Event) {
	if s.working && !event.WillRetry {
		s.settle.Reset(s.limits.Drain)
	}
}

// takeTurn is the turn that has ended, nil when it was told of. The caller holds the
// lock.
func (s *Session) takeTurn() *Turn {
	m := s.message
	s.message = nil
	if m == nil {
		return nil
	}
	turn := &Turn{Text: m.Text, StopReason: m.StopReason, Error: m.Error, ToolCalls: m.ToolCalls}
	if m.Usage != nil {
		turn.Usage = *m.Usage
	}
	return turn
}

// rest tells that the agent has come to rest, once for each message it was given.
func (s *Session) rest() {
	s.mu.Lock()
	rested, was := s.last, s.working
	s.working = false
	s.silence.Stop()
	s.leavePlace()
	s.mu.Unlock()
	if was {
		s.hear(rested)
	}
}

func (s *Session) report() {
	s.mu.Lock()
	now := s.fold.Progress()
	progress := s.progress(Running, now)
	s.spool.flush()
	s.reports.reported(now, s.warning)
	s.mu.Unlock()
	s.hear(progress)
}

// progress is a snapshot. The caller holds the lock.
func (s *Session) progress(status Status, p pijson.Progress) Progress {
	return Progress{
		LaneID: s.spec.ID, Status: status, Phase: p.Phase, Tool: p.Tool, Attempt: 1, Turns: p.Turns, Usage: p.Usage, Model: p.Model,
		Elapsed: time.Since(s.opened), Warning: s.warning,
	}
}

func (s *Session) endSilent() {
	s.mu.Lock()
	cause := pijson.CauseSilent
	if !s.heard {
		cause = pijson.CauseNoFirstEvent
	}
	s.mu.Unlock()
	s.stop(cause, "")
}

// stop starts the kill ladder for a reason of ours. Only the first is kept.
func (s *Session) stop(cause pijson.Cause, reason string) {
	s.mu.Lock()
	if s.cause == pijson.CauseNone {
		s.cause, s.reason = cause, reason
	}
	s.mu.Unlock()
	s.child.Terminate()
}

// endings are why a session is ended that is at rest.
var endings = map[pijson.Cause]pijson.Class{pijson.CauseTimedOut: pijson.ClassTimedOut, pijson.CauseBudget: pijson.ClassBudget}

// judge says how the session ended. The caller holds the lock.
func (s *Session) judge(exit proc.Exit, readErr error) SessionEnd {
	verdict := s.fold.Verdict(pijson.End{Code: exit.Code, Signal: exit.Signal, Cause: s.cause, Stderr: exit.Stderr, Err: readErr, Stats: s.stats})
	end := SessionEnd{Exit: Exit{Signal: exit.Signal}, Model: verdict.Model, Usage: verdict.Usage, Turns: verdict.Turns}
	if exit.Signal == "" {
		end.Exit.Code = &exit.Code
	}
	if exit.Leaked {
		end.Notes = append(end.Notes, "a process of its tree could not be ended")
	}
	switch {
	case s.cause == pijson.CauseCancelled:
		end.Error = &Failure{Class: pijson.ClassCancelled, Message: "it was cancelled: " + s.reason}
	case s.hungUp && (s.cause == pijson.CauseNone || s.cause == pijson.CauseDrained):
		if s.cause != pijson.CauseNone {
			end.Notes = append(end.Notes, "it did not leave by itself")
		}
	case verdict.Status != pijson.StatusComplete:
		end.Error = &Failure{Class: verdict.Class, Message: verdict.Message}
		if s.warning != "" && verdict.Class == pijson.ClassBudget {
			end.Error.Message += ": " + s.warning
		}
	default: // it had answered, and went although it was to be talked to
		end.Error = &Failure{Class: pijson.ClassUnknown, Message: fmt.Sprintf("pi ended while it was needed, with exit status %d", exit.Code)}
		if class, ours := endings[s.cause]; ours {
			end.Error = &Failure{Class: class, Message: class.Sentence()}
		}
	}
	return end
}
