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
		round   bool // the call begins one
	}
	// cancelCall ends a call early; it still gets its reply.
	cancelCall struct {
		caller *actor.PID
		reason string
	}
	// sessionEnded gives back the runs that a session holds. Its caller gets an empty
	// reply when all are free.
	sessionEnded struct {
		caller  *actor.PID
		session string
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
	session string // that asks, "" for a command line
	message any    // for the run, nil when done
	value   any    // the reply when done
	spawn   func() actor.Actor
	absent  error // the reply when no such run is at work; nil has its supervisor spawned
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
	// callEnded gives the registry a run's answer to a caller. Holder is the session
	// that keeps the run after the call, "" for none.
	callEnded struct {
		caller *actor.PID
		answer reply
		holder string
	}
	// unheld tells the registry that a run was lost by the session that holds it.
	unheld struct{ pid *actor.PID }
	// runGone comes back to the registry behind what a run has sent before it
	// ended: Terminated overtakes that.
	runGone struct{ pid *actor.PID }
	// retire asks a run to give up its ownership and stop.
	retire struct{}
)

// registry finds or starts the supervisor of a run and keeps it alive while
// calls need it or a session holds it.
type registry struct {
	lanes.Supervision // a run that panics is not restarted: its callers are told
	work              *background

	calls   map[string]*inFlight // by call pid
	runs    map[runKey]*runEntry
	closing *shutdown
}

type inFlight struct {
	caller  *actor.PID
	run     *runEntry // nil while prepared
	session string    // that asks, known with the run
	cancel  string    // reason, when cancelled before it reached a run
}

type runEntry struct {
	key      runKey
	pid      *actor.PID
	calls    int
	holder   string // the session that keeps it between calls, "" for none
	retiring bool
	parked   []prepared    // calls that came while the run was retiring
	answers  []callEnded   // those that wait for the run to be given up
	endings  []*sessionEnd // those that wait for it likewise
}

// sessionEnd counts the runs that an ended session still has.
type sessionEnd struct {
	caller *actor.PID
	left   int
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
	case unheld:
		g.unheld(ctx, m.pid)
	case sessionEnded:
		g.sessionEnded(ctx, m)
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
	do := g.work.do
	if m.round {
		do = g.work.begin
	}
	do(ctx, func(work context.Context) any {
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
	if m.to.absent != nil && (entry == nil || entry.retiring) {
		g.answer(ctx, m.caller, reply{err: m.to.absent})
		return
	}
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
	call.run, call.session = entry, m.to.session
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

// end ends a call of a run. The last one lets a run retire that no session holds, and
// hears its answer when that is done: whoever has it can rely on the run being free.
func (g *registry) end(ctx actor.Context, m callEnded) {
	call := g.calls[m.caller.Id]
	if call == nil {
		return
	}
	delete(g.calls, m.caller.Id)
	entry := call.run
	entry.calls--
	entry.holder = m.holder
	if entry.calls > 0 || entry.holder != "" && len(entry.endings) == 0 && g.closing == nil {
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

func (g *registry) unheld(ctx actor.Context, who *actor.PID) {
	for _, entry := range g.runs {
		if entry.pid.Equal(who) {
			entry.holder = ""
			if entry.calls == 0 {
				g.retire(ctx, entry)
			}
		}
	}
}

// sessionEnded lets the runs of a session retire, those at work for it after that.
func (g *registry) sessionEnded(ctx actor.Context, m sessionEnded) {
	busy := map[*runEntry]bool{}
	for _, call := range g.calls {
		if call.run != nil && call.session == m.session {
			busy[call.run] = true
		}
	}
	end := &sessionEnd{caller: m.caller}
	for _, entry := range g.runs {
		if !busy[entry] && entry.holder != m.session {
			continue
		}
		end.left++
		entry.endings = append(entry.endings, end)
		if entry.calls == 0 {
			g.retire(ctx, entry)
		}
	}
	if end.left == 0 {
		ctx.Send(m.caller, reply{})
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
		for _, end := range entry.endings {
			if end.left--; end.left == 0 {
				ctx.Send(end.caller, reply{})
			}
		}
		for _, call := range g.calls {
			if call.run == entry {
				g.answer(ctx, call.caller, reply{err: &LostRunError{key.runID, g.Reason(who)}})
			}
		}
		for _, waiting := range entry.parked {
			g.place(ctx, waiting)
		}
		break // a run that has just been placed has the pid of the one that ended
	}
	g.stopIfDone(ctx)
}

func (g *registry) shutdown(ctx actor.Context, m shutdown) {
	g.closing = &m
	for _, call := range g.calls {
		g.cancel(ctx, cancelCall{call.caller, m.reason})
	}
	for _, entry := range g.runs {
		if entry.calls == 0 {
			g.retire(ctx, entry)
		}
	}
	g.stopIfDone(ctx)
}

func (g *registry) stopIfDone(ctx actor.Context) {
	if g.closing != nil && len(g.calls) == 0 && len(g.runs) == 0 {
		ctx.Stop(ctx.Self())
	}
}
