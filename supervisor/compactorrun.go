package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// compactionCall is a question to the compaction actor of a run: registry → run →
// compaction. Compactions neither need nor take the run's ownership: they change nothing
// of it.
type compactionCall struct {
	caller   *actor.PID
	session  string
	question any
}

// compactionAnswer answers it: compaction → run.
type compactionAnswer struct {
	caller *actor.PID
	reply  Reply
	err    error
	busy   string // the session, while Pi has a compaction of it at work
}

// compactorGone comes back behind what a compaction actor sent before it ended.
type compactorGone struct{ pid *actor.PID }

// runCompactions are a run's ties to its compaction actor, which exists from the first
// question on.
type runCompactions struct {
	actor   *actor.PID
	started int
	open    map[string]*actor.PID // callers without an answer
	busy    string                // a session whose compaction is not over
}

// askCompactor asks the compaction actor of a run.
func (s *System) askCompactor(ctx context.Context, session Session, run store.RunDir, question any) (Reply, error) {
	value, err := s.ask(ctx, nil, func(caller *actor.PID) prepare {
		return func(context.Context) (destination, error) {
			return destination{
				run: runKey{run.Root.Dir, run.ID}, session: session.ID, message: compactionCall{caller, session.ID, question},
				spawn: newRun(s.services, &run, run.RoundDir()),
			}, nil
		}
	})
	if err != nil {
		return Reply{}, err
	}
	answer, ok := value.(Reply)
	if !ok { // a defect: the compaction actor answers with nothing else
		return Reply{}, fmt.Errorf("run %s answered with %T", run.ID, value)
	}
	return answer, nil
}

func (r *runSupervisor) compactionAsked(ctx actor.Context, m compactionCall) {
	c := &r.compactions
	if c.actor == nil {
		name := "compaction"
		if c.started > 0 { // the name of one that has ended may be taken still
			name = fmt.Sprintf("compaction~%d", c.started)
		}
		c.started++
		c.open = map[string]*actor.PID{}
		c.actor = r.spawn(ctx, name, &compactor{
			work: r.work, metrics: r.metrics, patience: compactionPatience, sessions: map[string]*sessionCompactions{},
		})
	}
	c.open[m.caller.Id] = m.caller
	ctx.Send(c.actor, m)
}

func (r *runSupervisor) compactionAnswered(ctx actor.Context, m compactionAnswer) {
	c := &r.compactions
	if c.open[m.caller.Id] == nil {
		return
	}
	delete(c.open, m.caller.Id)
	c.busy = m.busy
	r.reply(ctx, m.caller, reply{m.reply, m.err})
}

// compactionCancelled passes on that a caller does not wait any more.
func (r *runSupervisor) compactionCancelled(ctx actor.Context, m cancelCall) {
	if r.compactions.open[m.caller.Id] != nil {
		ctx.Send(r.compactions.actor, m)
	}
}

// compactorLost answers those whom a crashed compaction actor owes an answer. Their
// sessions do without it, and the next question finds a new one.
func (r *runSupervisor) compactorLost(ctx actor.Context, m compactorGone) {
	c := &r.compactions
	if !m.pid.Equal(c.actor) {
		return
	}
	open := c.open
	c.actor, c.open, c.busy = nil, nil, ""
	for _, caller := range open {
		r.reply(ctx, caller, reply{err: errors.New("the compaction failed inside: " + r.Reason(m.pid))})
	}
}
