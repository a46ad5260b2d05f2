package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"

	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor/compaction"
)

// Questions to the compaction actor of a run.
type (
	// compactNow asks what becomes of a compaction that Pi is about to do.
	compactNow struct {
		request  compaction.Request
		phase    string // of its count: that after the start of a run is one of its own
		config   store.CompactionConfig
		snapshot string // where the setting debug has it described
	}
	// compactionOver tells that Pi has done a compaction, or has not.
	compactionOver struct {
		done    bool
		failure string // why it is not done
		aborted bool
		event   SessionCompactEvent
		phase   string // of the session now
		config  store.CompactionConfig
	}
	// prePlan asks for the compaction after a run was started; prePlanOver tells that it
	// has ended, and why if it is not done.
	prePlan     struct{}
	prePlanOver struct{ failure string }
)

// compactionPatience is how long a compaction waits for the end of the one before it in
// its session, which may be a summary that Pi has a model write.
const compactionPatience = 30 * time.Second

// compactor is the compaction actor of a run. It compiles one summary at a time for each
// session, and none while Pi has not said what became of the one before: two at once
// would be made of the same messages, and the second would undo the first.
//
//	compactNow ─▶ compile … compiled ─▶ answer ─▶ Pi … compactionOver ─▶ the next
type compactor struct {
	work     *background
	metrics  *metrics
	patience time.Duration

	sessions map[string]*sessionCompactions
	prePlan  prePlanState
}

// sessionCompactions are those of one session.
type sessionCompactions struct {
	flight    *compactionFlight // nil for none
	queue     []*compactionFlight
	cancelled bool // by us, as the user was told; Pi is about to say the same
}

// compactionFlight is a compaction between its request and the report of Pi.
type compactionFlight struct {
	call     compactionCall
	asked    compactNow
	result   compaction.Result
	earlier  int  // compactions of the session before this one
	answered bool // Pi has the result
	reported bool // Pi has said, without waiting for it, what became of the compaction
	activity lanes.Activity
}

// compiled ends the work on a request.
type compiled struct {
	flight *compactionFlight
	result compaction.Result
	notice error // the description of it was not written
	err    error
}

// flightOverdue ends the patience of those that wait for a flight.
type flightOverdue struct{ flight *compactionFlight }

// Receive implements actor.Actor.
func (c *compactor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case compactionCall:
		c.asked(ctx, m)
	case compiled:
		c.compiled(ctx, m)
	case flightOverdue:
		for _, s := range c.sessions {
			if s.flight == m.flight {
				s.flight = nil
				c.next(ctx, s)
			}
		}
	case cancelCall:
		c.cancel(ctx, m)
	case *actor.Stopping, *actor.Restarting:
		for _, s := range c.sessions {
			if s.flight != nil && !s.flight.answered {
				s.flight.activity.End(compactionFailed)
			}
		}
	case workPanicked:
		panic(m.reason)
	}
}

func (c *compactor) asked(ctx actor.Context, m compactionCall) {
	s := c.sessions[m.session]
	if s == nil {
		s = &sessionCompactions{}
		c.sessions[m.session] = s
	}
	switch question := m.question.(type) {
	case compactNow:
		s.queue = append(s.queue, &compactionFlight{call: m, asked: question, earlier: question.request.Compactions()})
		switch {
		case s.flight == nil:
			c.next(ctx, s)
		case s.flight.answered && len(s.queue) == 1:
			c.bePatient(ctx, s.flight)
		}
	case compactionOver:
		c.answer(ctx, m, c.over(ctx, s, question), nil)
		c.next(ctx, s)
	case prePlan:
		c.answer(ctx, m, c.prePlan.ask(), nil)
	case prePlanOver:
		c.answer(ctx, m, c.prePlan.over(question), nil)
	}
}

// next begins with the next request of a session, unless one is at work.
func (c *compactor) next(ctx actor.Context, s *sessionCompactions) {
	if s.flight != nil || len(s.queue) == 0 {
		return
	}
	flight := s.queue[0]
	s.queue = s.queue[1:]
	flight.activity = lanes.BeginActivity(ctx, "compact",
		attribute.String("pilothouse.compaction.phase", flight.asked.phase), attribute.String("pilothouse.compaction.reason", flight.asked.request.Reason))
	s.flight = flight
	c.work.do(ctx, func(context.Context) any { return flight.compile() })
}

// compile does the work. A panic in it is the end of this request only.
func (f *compactionFlight) compile() (m compiled) {
	m.flight = f
	defer func() {
		if reason := recover(); reason != nil {
			m.err = fmt.Errorf("compile the summary: %v", reason)
		}
	}()
	m.result = compaction.Compact(f.asked.request)
	if f.asked.config.Debug {
		m.notice = writeSnapshot(f.asked.snapshot, f.asked.request, m.result)
	}
	return m
}

// compiled answers with the result. Pi has to report of all but a cancelled one.
func (c *compactor) compiled(ctx actor.Context, m compiled) {
	f := m.flight
	s := c.sessions[f.call.session]
	f.result, f.answered = m.result, true
	f.asked.request = compaction.Request{} // the session it refers to is large
	action := string(m.result.Action)
	if m.err != nil {
		action = compactionFailed
	}
	c.metrics.compacted(action, f.asked.phase)
	f.activity.Note(attribute.String("pilothouse.compaction.action", action))
	if m.err != nil {
		f.activity.End(action)
		s.flight = nil
		c.answer(ctx, f.call, Reply{}, m.err)
		c.next(ctx, s)
		return
	}
	f.activity.End("")
	s.cancelled = m.result.Action == compaction.Cancel
	if s.cancelled || f.reported {
		s.flight = nil
	} else if len(s.queue) > 0 {
		c.bePatient(ctx, f)
	}
	reply, err := compactionReply(m.result)
	if m.notice != nil {
		reply.Actions = append(reply.Actions, notice(LevelWarning, m.notice.Error()))
	}
	c.answer(ctx, f.call, reply, err)
	c.next(ctx, s)
}

// compactionReply tells Pi. Why it is to do a compaction its own way is no news to its
// user.
func compactionReply(result compaction.Result) (Reply, error) {
	reply := &CompactionReply{Action: string(result.Action)}
	switch result.Action {
	case compaction.Cancel:
		reply.Reason = result.Reason
	case compaction.Compacted:
		encoded, err := json.Marshal(result.Compaction)
		if err != nil {
			return Reply{}, fmt.Errorf("encode the compaction: %w", err)
		}
		reply.Compaction = encoded
	}
	return Reply{Compaction: reply}, nil
}

// bePatient has a flight given up that Pi does not report of, as somebody waits for it.
func (c *compactor) bePatient(ctx actor.Context, f *compactionFlight) {
	c.work.await(ctx, func(work context.Context) any {
		timer := time.NewTimer(c.patience)
		defer timer.Stop()
		select {
		case <-timer.C:
			return flightOverdue{f}
		case <-work.Done():
			return nil
		}
	})
}

// cancel ends a request that waits. One that is at work is answered soon anyway.
func (c *compactor) cancel(ctx actor.Context, m cancelCall) {
	for _, s := range c.sessions {
		for i, waiting := range s.queue {
			if waiting.call.caller.Equal(m.caller) {
				s.queue = slices.Delete(s.queue, i, i+1)
				c.answer(ctx, waiting.call, Reply{}, &CancelledError{m.reason})
				return
			}
		}
	}
}

// answer gives the run an answer, and tells a session that still has a compaction at Pi.
func (c *compactor) answer(ctx actor.Context, call compactionCall, r Reply, err error) {
	busy := ""
	for id, s := range c.sessions {
		if s.flight != nil || len(s.queue) > 0 {
			busy = id
		}
	}
	ctx.Send(ctx.Parent(), compactionAnswer{call.caller, r, err, busy})
}
