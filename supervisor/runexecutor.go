package supervisor

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
)

// startExecutor asks a run for the child of its execution: registry → run. The run knows
// nothing of what is said to it; the reply, a lanes.SessionEnd, comes when it is gone.
type startExecutor struct {
	caller  *actor.PID
	session string
	spec    lanes.Spec
	host    lanes.SessionHost
}

// executorStarted tells the caller whom to say things to.
type executorStarted struct{ pid *actor.PID }

// openExecutor is an executor between startExecutor and its reply.
type openExecutor struct{ caller, actor *actor.PID }

// executorGone comes back behind what an executor sent before it ended.
type executorGone struct{ pid *actor.PID }

// beginExecutor starts the executor of the run, which has one at most: two would write
// into one work tree.
func (r *runSupervisor) beginExecutor(ctx actor.Context, m startExecutor) {
	if r.executor != nil {
		r.reply(ctx, m.caller, reply{err: inputErrorf("run %s is being executed already", r.run.ID)})
		return
	}
	spawn := func(name string) (*actor.PID, error) { // a name that is taken has used up the producer
		return ctx.SpawnNamed(actor.PropsFromProducer(lanes.Once(actors.NewExecutor(m.spec, m.host))), name)
	}
	pid, err := spawn("execution")
	for n := 2; errors.Is(err, actor.ErrNameExists); n++ { // an earlier one is on its way out
		pid, err = spawn(fmt.Sprintf("execution~%d", n))
	}
	if err != nil {
		r.reply(ctx, m.caller, reply{err: fmt.Errorf("start the executor of run %s: %w", r.run.ID, err)})
		return
	}
	r.used = true
	r.executor = &openExecutor{caller: m.caller, actor: pid}
	ctx.Send(pid, r.activity.Envelope(lanes.Begin{}))
	ctx.Send(m.caller, executorStarted{pid})
}

// executorSaid passes what an executor tells on to its caller.
func (r *runSupervisor) executorSaid(ctx actor.Context, message any) {
	if r.executor == nil {
		return
	}
	switch m := message.(type) {
	case actors.ExecutorEnded:
		r.endExecutor(ctx, reply{value: m.SessionEnd})
	case executorGone:
		if m.pid.Equal(r.executor.actor) {
			r.endExecutor(ctx, reply{value: lanes.SessionEnd{Error: &lanes.Failure{
				Class: pijson.ClassInternal, Message: "pilothouse lost the executor: " + r.Reason(m.pid),
			}}})
		}
	default:
		ctx.Send(r.executor.caller, message)
	}
}

func (r *runSupervisor) endExecutor(ctx actor.Context, answer reply) {
	caller := r.executor.caller
	r.executor = nil
	r.reply(ctx, caller, answer)
}

// cancelExecutor ends the executor of a caller.
func (r *runSupervisor) cancelExecutor(ctx actor.Context, m cancelCall) {
	if r.executor != nil && r.executor.caller.Equal(m.caller) {
		ctx.Send(r.executor.actor, lanes.Cancel{Reason: m.reason})
	}
}

// stopExecutor ends the executor of a run that is lost, and tells its caller why.
func (r *runSupervisor) stopExecutor(ctx actor.Context, err error) {
	if r.executor != nil {
		ctx.Stop(r.executor.actor) // ends the child, and waits for it
		r.endExecutor(ctx, reply{err: err})
	}
}
