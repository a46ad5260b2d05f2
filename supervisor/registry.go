package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
)

// Messages to the registry. Each carries the call actor of its caller.
type (
	// startCall begins a call. prepare does the reading, checking and choosing
	// that blocks; what it returns says where the call goes on.
	startCall struct {
		caller  *actor.PID
		prepare prepare
	}
	// cancelCall ends a call early; it still gets its reply.
	cancelCall struct {
		caller *actor.PID
		reason string
	}
	// shutdown stops all runs; the registry stops after the last.
	shutdown struct{ reason string }
)

// prepare is the part of a call that blocks. It runs on a goroutine.
type prepare func(context.Context) (destination, error)

// destination is where a prepared call goes on: at a run, or nowhere when the
// preparation was all there was to do.
type destination struct {
	run     runKey
	message any // for the run, nil when done
	value   any // the reply when done
	spawn   func() actor.Actor
}

// runKey names a run across workspaces: two of them may have runs of one name.
type runKey struct{ stateRoot, runID string }

// Messages inside the supervisor's part of the tree.
type (
	prepared struct {
		caller *actor.PID
		to     destination
		err    error
	}
	// callEnded gives the registry a run's answer to a caller.
	callEnded struct {
		caller *actor.PID
		answer reply
	}
	// runGone comes back to the registry behind what a run has sent before it
	// ended: Terminated overtakes that.
	runGone struct{ pid *actor.PID }
	// retire asks a run to give up its ownership and stop.
	retire struct{}
)

// registry finds or starts the supervisor of a run and keeps it alive while
// calls need it.
type registry struct {
	lanes.Supervision // a run that panics is not restarted: its callers are told
	work              *background

	calls   map[string]*inFlight // by call pid
	runs    map[runKey]*runEntry
	closing *shutdown
}

type inFlight struct {
	caller *actor.PID
	run    *runEntry // nil while prepared
	cancel string    // reason, when cancelled before it reached a run
}

type runEntry struct {
	key      runKey
	pid      *actor.PID
	calls    int
	retiring bool
	parked   []prepared  // calls that came while the run was retiring
	answers  []callEnded // those that wait for the run to be given up
}

func newRegistry(work *background) actor.Producer {
	return func() actor.Actor {
		return &registry{work: work, calls: map[string]*inFlight{}, runs: map[runKey]*runEntry{}}
	}
}

// Receive implements actor.Actor.
func (g *registry) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case startCall:
		g.start(ctx, m)
	case prepared:
		g.place(ctx, m)
	case cancelCall:
		g.cancel(ctx, m)
	case callEnded:
		g.end(ctx, m)
	case shutdown:
		g.shutdown(ctx, m)
	case *actor.Terminated:
		ctx.Send(ctx.Self(), runGone{m.Who})
	case runGone:
		g.runEnded(ctx, m.pid)
	case workPanicked:
		panic(m.reason)
	}
}

func (g *registry) start(ctx actor.Context, m startCall) {
	if g.closing != nil {
		ctx.Send(m.caller, reply{err: &ClosedError{}})
		return
	}
	g.calls[m.caller.Id] = &inFlight{caller: m.caller}
	g.work.do(ctx, func(work context.Context) any {
		to, err := m.prepare(work)
		return prepared{m.caller, to, err}
	})
}

// place sends a prepared call to its run, starting the run's supervisor first
// when there is none.
func (g *registry) place(ctx actor.Context, m prepared) {
	call := g.calls[m.caller.Id]
	if call == nil {
		return
	}
	switch {
	case m.err != nil || m.to.message == nil:
		g.answer(ctx, m.caller, reply{m.to.value, m.err})
		return
	case call.cancel != "":
		g.answer(ctx, m.caller, reply{err: &CancelledError{call.cancel}})
		return
	}
	entry := g.runs[m.to.run]
	if entry != nil && entry.retiring {
		entry.parked = append(entry.parked, m)
		return
	}
	if entry == nil {
		pid, err := g.spawn(ctx, m.to)
		if err != nil {
			g.answer(ctx, m.caller, reply{err: fmt.Errorf("start the supervisor of run %s: %w", m.to.run.runID, err)})
			return
		}
		entry = &runEntry{key: m.to.run, pid: pid}
		g.runs[m.to.run] = entry
	}
	entry.calls++
	call.run = entry
	ctx.Send(entry.pid, m.to.message)
}

// spawn starts a run's supervisor under the run's id. Runs of two workspaces
// may share an id; the second gets a numbered name.
func (g *registry) spawn(ctx actor.Context, to destination) (*actor.PID, error) {
	spawn := func(name string) (*actor.PID, error) { // a name that is taken has used up the producer
		return ctx.SpawnNamed(actor.PropsFromProducer(lanes.Once(to.spawn)), name)
	}
	name := "run-" + to.run.runID
	pid, err := spawn(name)
	for n := 2; errors.Is(err, actor.ErrNameExists); n++ {
		pid, err = spawn(fmt.Sprintf("%s~%d", name, n))
	}
	return pid, err
}

func (g *registry) cancel(ctx actor.Context, m cancelCall) {
	call := g.calls[m.caller.Id]
	switch {
	case call == nil:
	case call.run == nil:
		call.cancel = m.reason
	default:
		ctx.Send(call.run.pid, m)
	}
}

// answer ends a call that no run works on.
func (g *registry) answer(ctx actor.Context, caller *actor.PID, r reply) {
	ctx.Send(caller, r)
	delete(g.calls, caller.Id)
	g.stopIfDone(ctx)
}

// end ends a call of a run. The last one lets the run retire, and hears its answer
// when that is done: whoever has it can rely on the run being free.
func (g *registry) end(ctx actor.Context, m callEnded) {
	call := g.calls[m.caller.Id]
	if call == nil {
		return
	}
	delete(g.calls, m.caller.Id)
	entry := call.run
	entry.calls--
	if entry.calls > 0 {
		ctx.Send(m.caller, m.answer)
		return
	}
	entry.answers = append(entry.answers, m)
	g.retire(ctx, entry)
}

func (g *registry) retire(ctx actor.Context, entry *runEntry) {
	if !entry.retiring {
		entry.retiring = true
		ctx.Send(entry.pid, retire{})
	}
}

// runEnded handles the end of a run's supervisor: the expected one after retire,
// or a crash, which its callers must hear of.
func (g *registry) runEnded(ctx actor.Context, who *actor.PID) {
	for key, entry := range g.runs {
		if !entry.pid.Equal(who) {
			continue
		}
		delete(g.runs, key)
		for _, m := range entry.answers {
			ctx.Send(m.caller, m.answer)
		}
		for _, call := range g.calls {
			if call.run == entry {
				g.answer(ctx, call.caller, reply{err: &LostRunError{key.runID, g.Reason(who)}})
			}
		}
		for _, waiting := range entry.parked {
			g.place(ctx, waiting)
		}
	}
	g.stopIfDone(ctx)
}

func (g *registry) shutdown(ctx actor.Context, m shutdown) {
	g.closing = &m
	for _, call := range g.calls {
		g.cancel(ctx, cancelCall{call.caller, m.reason})
	}
	g.stopIfDone(ctx)
}

func (g *registry) stopIfDone(ctx actor.Context) {
	if g.closing != nil && len(g.calls) == 0 && len(g.runs) == 0 {
		ctx.Stop(ctx.Self())
	}
}
