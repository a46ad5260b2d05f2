package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/store"
)

// startRound asks a run to work on a round: registry → run.
type startRound struct{ assignment *assignment }

// runSupervisor owns one run. It alone decides what happens to it: it has
// ownership and checkpoint as its hands, and a role actor for each open round.
//
//	startRound ─▶ owned? ──no──▶ acquire … acquired ─┐
//	                └─yes──────────────────────────▶ commit beginRound
//	committed beginRound ─▶ role actor begins
//	LaneJudged ─▶ commit recordLane … committed ─▶ LaneEnded to the caller
//	RoundFinished and every lane recorded ─▶ commit endRound … ─▶ reply
//
// An ad hoc round (references without a run) has the same life without an
// owner and a checkpoint.
type runSupervisor struct {
	lanes.Supervision // role actors are not restarted: their lanes would be paid twice
	*services
	run    *store.RunDir // nil for an ad hoc round
	rounds store.RoundDir

	ownership   *actor.PID
	checkpoint  *actor.PID
	lease       *store.Lease
	used        bool // the owner has got something done
	acquiring   bool
	parked      []any // messages that wait for ownership
	open        map[string]*openRound
	executor    *openExecutor // nil while nothing carries the plan out
	compactions runCompactions
	stopping    bool // its children's ends are expected
	status      store.RunStatus
	phase       store.Phase
	activity    lanes.Activity
}

// openRound is a round between startRound and its reply.
type openRound struct {
	*assignment
	actor      *actor.PID
	judged     map[string]bool
	outcomes   map[string]actors.Outcome // those whose record was acknowledged
	unstored   int                       // lanes judged whose record is not acknowledged
	unrecorded []actors.Outcome          // those whose record could not be written
	finished   bool                      // the role actor has reported all lanes
	cancelled  *lanes.Cancel
	err        error // replaces the result: the run was lost
	began      time.Time
	activity   lanes.Activity
	tally      *lanes.Tally
}

func newRun(s *services, run *store.RunDir, rounds store.RoundDir) func() actor.Actor {
	return func() actor.Actor {
		return &runSupervisor{services: s, run: run, rounds: rounds, open: map[string]*openRound{}}
	}
}

// Receive implements actor.Actor.
func (r *runSupervisor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		r.start(ctx)
	case startRound:
		r.asked(ctx)
		m.assignment.asked = cmp.Or(m.assignment.asked, lanes.MessageTrace(ctx))
		r.whenOwned(ctx, m.assignment.session, m, func() { r.begin(ctx, m.assignment) })
	case planCommit:
		r.asked(ctx)
		r.whenOwned(ctx, m.change.session, m, func() { ctx.Send(r.checkpoint, r.activity.Envelope(commit{m.change})) })
	case startExecutor:
		r.asked(ctx)
		r.whenOwned(ctx, m.session, m, func() { r.beginExecutor(ctx, m) })
	case acquired:
		r.owned(ctx, m.lease)
	case refused:
		r.refuse(ctx, m.err)
	case lost:
		if m.lease == r.lease {
			r.ownerLost(ctx, m.err)
		}
	case committed:
		r.committed(ctx, m)
	case actors.LaneProgress:
		if round := r.open[m.RoundID]; round != nil {
			round.tally.Seen(m.Progress.LaneID, m.Progress.Status)
			ctx.Send(round.caller, m.Progress)
		}
	case actors.LaneJudged:
		r.judged(ctx, m)
	case actors.RoundFinished:
		r.roundFinished(ctx, m.RoundID)
	case roundGone:
		r.roundLost(ctx, m)
	case actors.ExecutorReady, actors.ExecutorTurn, actors.ExecutorRested, actors.ExecutorEnded, executorGone, lanes.Progress:
		r.executorSaid(ctx, m)
	case cancelCall:
		r.cancel(ctx, m)
	case cancelLane:
		r.cancelLane(ctx, m)
	case compactionCall:
		r.compactionAsked(ctx, m)
	case compactionAnswer:
		r.compactionAnswered(ctx, m)
	case compactorGone:
		r.compactorLost(ctx, m)
	case retire:
		r.retire(ctx)
	case released:
		ctx.Stop(ctx.Self())
	case *actor.Restarting: // on the way to its end, see lanes.Once
		r.abandon()
	case *actor.Stopping:
		r.stopping = true
		r.abandon()
	case *actor.Terminated:
		if !r.stopping {
			r.childEnded(ctx, m.Who)
		}
	}
}

func (r *runSupervisor) start(ctx actor.Context) {
	r.checkpoint = r.spawn(ctx, "checkpoint", &checkpoint{work: r.work, metrics: r.metrics, files: newFiles(r.run, r.rounds, r.now, r.logger)})
	if r.run == nil {
		ctx.Send(r.checkpoint, commit{&closeLost{}})
		return
	}
	r.ownership = r.spawn(ctx, "ownership", &ownership{work: r.work, dir: *r.run, check: r.check})
}

func (r *runSupervisor) spawn(ctx actor.Context, name string, a actor.Actor) *actor.PID {
	pid, err := ctx.SpawnNamed(actor.PropsFromProducer(lanes.Once(func() actor.Actor { return a })), name)
	if err != nil {
		panic(fmt.Errorf("spawn %s: %w", name, err)) // only a second actor of this name, which is a defect
	}
	return pid
}

// whenOwned does what a session asks for with m as soon as the run is the session's.
// All sessions here are one process to the others, so it is for the run to tell them
// apart: whoever comes while another has the run is refused.
func (r *runSupervisor) whenOwned(ctx actor.Context, session string, m any, do func()) {
	switch {
	case r.run == nil || r.lease != nil && r.lease.SessionID == session:
		do()
	case r.lease != nil:
		r.turnAway(ctx, m, r.lease.Refusal())
	default:
		r.parked = append(r.parked, m)
		if !r.acquiring {
			r.acquiring = true
			ctx.Send(r.ownership, r.activity.Envelope(acquire{session}))
		}
	}
}

func (r *runSupervisor) owned(ctx actor.Context, lease *store.Lease) {
	r.acquiring, r.lease, r.used = false, lease, false
	r.metrics.acquired(lease)
	ctx.Send(r.checkpoint, fence{lease})
	ctx.Send(r.checkpoint, commit{&settle{}})
	ctx.Send(r.checkpoint, commit{&closeLost{}})
	ctx.Send(r.checkpoint, commit{tidy{}})
	parked := r.parked
	r.parked = nil
	for _, m := range parked {
		ctx.Send(ctx.Self(), m)
	}
}

func (r *runSupervisor) refuse(ctx actor.Context, err error) {
	r.acquiring = false
	parked := r.parked
	r.parked = nil
	for _, m := range parked {
		r.turnAway(ctx, m, err)
	}
}

// turnAway ends the call behind a message that asked for a run which it does not get.
func (r *runSupervisor) turnAway(ctx actor.Context, m any, err error) {
	r.metrics.owner(ownerRefused)
	switch m := m.(type) {
	case startRound:
		r.reply(ctx, m.assignment.caller, reply{err: err})
	case planCommit:
		r.reply(ctx, m.caller, reply{err: err})
	case startExecutor:
		r.reply(ctx, m.caller, reply{err: err})
	}
}

func (r *runSupervisor) reply(ctx actor.Context, caller *actor.PID, answer reply) {
	ctx.Send(ctx.Parent(), callEnded{caller, answer, r.holder()})
}

// holder is the session that keeps the run when no call is on it: the one that has it
// now, until the run is over or the session ends. A command line keeps nothing, and
// neither does a session whose every wish was refused. Without such a session, one whose
// compaction is not over keeps it.
func (r *runSupervisor) holder() string {
	over := r.status == store.StatusAbandoned || r.phase == store.PhaseCompleted ||
		r.status == store.StatusDone && r.phase != store.PhaseImplementationReview
	if r.lease == nil || !r.used || over {
		return r.compactions.busy
	}
	return r.lease.SessionID
}

// begin records the round; it starts when the record is durable.
func (r *runSupervisor) begin(ctx actor.Context, a *assignment) {
	if r.open[a.roundID] != nil {
		r.reply(ctx, a.caller, reply{err: inputErrorf("round %s is being worked on already", a.roundID)})
		return
	}
	round := r.newRound(ctx, a)
	r.open[a.roundID] = round
	ctx.Send(r.checkpoint, round.activity.Envelope(commit{&beginRound{spec: a.spec, adopted: a.adopted, record: a.record}}))
}

func (r *runSupervisor) committed(ctx actor.Context, m committed) {
	if m.checkpoint != nil {
		r.phase = m.checkpoint.Phase
	}
	if c, ok := m.change.(*planChange); ok {
		r.used = r.used || m.err == nil
		if run, ok := c.result.(store.Run); ok && m.err == nil {
			r.status = run.Status
		}
		r.reply(ctx, c.caller, reply{c.reply(m.checkpoint), m.err})
	}
	if r.ownerLost(ctx, m.err) {
		return
	}
	switch c := m.change.(type) {
	case *beginRound:
		r.begun(ctx, r.open[c.record.RoundID], m.err)
	case *recordLane:
		r.laneRecorded(ctx, c, m.err)
	case *endRound:
		r.ended(ctx, r.open[c.roundID], m.err)
	case *settle:
		r.status, r.phase = c.status, c.phase
		if m.err != nil {
			r.logger.Warn("question of a crashed session not settled", "run", r.run.ID, "error", m.err)
		}
	case *closeLost:
		if m.err != nil {
			r.logger.Warn("rounds of an earlier process not closed", "directory", r.rounds.Dir, "error", m.err)
		}
	}
}

// begun starts the role actor, or ends a round that could not be recorded.
func (r *runSupervisor) begun(ctx actor.Context, round *openRound, err error) {
	if round == nil { // the run was lost meanwhile
		return
	}
	if err != nil {
		delete(r.open, round.roundID)
		r.over(round, roundFailed)
		r.reply(ctx, round.caller, reply{err: err})
		return
	}
	r.used = true
	ctx.Send(round.caller, round.announcement())
	for _, outcome := range round.reused {
		round.outcomes[outcome.Lane.Spec.ID] = outcome
		ctx.Send(round.caller, LaneEnded{newLaneResult(outcome, round.stored[outcome.Lane.Spec.ID])})
	}
	props := actor.PropsFromProducer(lanes.Once(actors.NewRound(round.roundID, round.role, round.lanes, round.host)))
	pid, err := ctx.SpawnNamed(props, "round-"+round.roundID)
	if err != nil {
		round.err = fmt.Errorf("start round %s: %w", round.roundID, err)
		r.roundFinished(ctx, round.roundID)
		return
	}
	round.actor = pid
	if round.cancelled != nil {
		ctx.Send(pid, *round.cancelled)
		return
	}
	ctx.Send(pid, round.activity.Envelope(lanes.Begin{}))
}

func (r *runSupervisor) judged(ctx actor.Context, m actors.LaneJudged) {
	round := r.open[m.RoundID]
	id := m.Outcome.Result.LaneID
	if round == nil || round.judged[id] {
		return
	}
	round.judged[id] = true
	round.unstored++
	ctx.Send(r.checkpoint, round.activity.Envelope(commit{&recordLane{roundID: m.RoundID, durable: round.spec != nil, outcome: m.Outcome}}))
}

// laneRecorded tells the caller of a lane whose record is durable. An answer that
// could not be stored is not reported as complete: it would be gone after a crash.
func (r *runSupervisor) laneRecorded(ctx actor.Context, c *recordLane, err error) {
	round := r.open[c.roundID]
	if round == nil {
		return
	}
	outcome := c.outcome
	if err != nil {
		r.logger.Error("lane not recorded", "round", c.roundID, "lane", outcome.Result.LaneID, "error", err)
		outcome.Result.Status = lanes.Failed
		outcome.Result.Error = &lanes.Failure{
			Class: pijson.ClassInternal, Message: fmt.Sprintf("the lane ended %s, but that could not be stored: %v", c.outcome.Result.Status, err),
		}
		round.unrecorded = append(round.unrecorded, outcome)
	}
	id := outcome.Result.LaneID
	round.outcomes[id] = outcome
	if c.resultFile != "" {
		round.stored[id] = filepath.Join(r.rounds.Reviews, filepath.FromSlash(c.resultFile))
	}
	round.unstored--
	round.tally.Ended(outcome.Result, round.activity.SpanContext())
	ctx.Send(round.caller, LaneEnded{newLaneResult(outcome, round.stored[id])})
	r.closeIfDone(ctx, round)
}

func (r *runSupervisor) roundFinished(ctx actor.Context, roundID string) {
	if round := r.open[roundID]; round != nil {
		round.finished = true
		r.closeIfDone(ctx, round)
	}
}

func (r *runSupervisor) closeIfDone(ctx actor.Context, round *openRound) {
	if round.finished && round.unstored == 0 {
		ctx.Send(r.checkpoint, round.activity.Envelope(commit{&endRound{roundID: round.roundID, durable: round.spec != nil, unrecorded: round.unrecorded}}))
	}
}

// ended replies with the result of a round. Its end not being on record is no
// harm: every lane is, and the record is closed by the next resume.
func (r *runSupervisor) ended(ctx actor.Context, round *openRound, err error) {
	if round == nil { // the run was lost meanwhile
		return
	}
	if err != nil {
		r.logger.Warn("round not closed on disk", "round", round.roundID, "error", err)
	}
	delete(r.open, round.roundID)
	r.over(round, round.verdict())
	if round.err != nil {
		r.reply(ctx, round.caller, reply{err: round.err})
		return
	}
	r.reply(ctx, round.caller, reply{value: round.result()})
}

// roundGone comes back behind what a role actor sent before it ended.
type roundGone struct {
	roundID string
	pid     *actor.PID
}

func (r *runSupervisor) childEnded(ctx actor.Context, who *actor.PID) {
	if who.Equal(r.checkpoint) || who.Equal(r.ownership) {
		// Without its hands the run can promise nothing; the registry tells the
		// callers, and the children of its lanes end with it.
		panic(fmt.Sprintf("%s: %s", who.Id, r.Reason(who)))
	}
	if r.executor != nil && who.Equal(r.executor.actor) {
		ctx.Send(ctx.Self(), executorGone{who})
	}
	if r.compactions.actor != nil && who.Equal(r.compactions.actor) {
		ctx.Send(ctx.Self(), compactorGone{who})
	}
	for id, round := range r.open {
		if round.actor != nil && round.actor.Equal(who) { // nil while the round is being recorded
			ctx.Send(ctx.Self(), roundGone{id, who})
		}
	}
}

// roundLost accounts for the lanes that a crashed role actor left open.
func (r *runSupervisor) roundLost(ctx actor.Context, m roundGone) {
	round := r.open[m.roundID]
	if round == nil || round.finished {
		return
	}
	for _, lane := range round.lanes {
		r.judged(ctx, actors.LaneJudged{RoundID: m.roundID, Outcome: actors.Outcome{Lane: lane, Result: lanes.Result{
			LaneID: lane.Spec.ID, Status: lanes.Failed,
			Error: &lanes.Failure{Class: pijson.ClassInternal, Message: "pilothouse lost the lane: " + r.Reason(m.pid)},
		}}})
	}
	r.roundFinished(ctx, m.roundID)
}

// cancel ends the round of a caller; its lanes are recorded as usual.
func (r *runSupervisor) cancel(ctx actor.Context, m cancelCall) {
	for i, waiting := range r.parked {
		if start, ok := waiting.(startRound); ok && start.assignment.caller.Equal(m.caller) {
			r.parked = slices.Delete(r.parked, i, i+1)
			r.reply(ctx, m.caller, reply{err: &CancelledError{m.reason}})
			return
		}
	}
	r.cancelExecutor(ctx, m)
	r.compactionCancelled(ctx, m)
	for _, round := range r.open {
		if round.caller.Equal(m.caller) {
			round.cancelled = &lanes.Cancel{Reason: m.reason}
			if round.actor != nil {
				ctx.Send(round.actor, *round.cancelled)
			}
		}
	}
}

// ownerLost stops everything when another process has taken the run: from here
// on nothing we write would count, and writing on could destroy its work.
func (r *runSupervisor) ownerLost(ctx actor.Context, err error) bool {
	var lost *store.LostOwnerError
	if !errors.As(err, &lost) {
		return false
	}
	if r.lease != nil { // every write that was under way fails like this one
		r.metrics.owner(ownerLost)
	}
	r.lease = nil
	for id, round := range r.open {
		delete(r.open, id)
		r.over(round, roundLost)
		if round.actor != nil {
			ctx.Stop(round.actor) // ends the children, and waits for them
		}
		r.reply(ctx, round.caller, reply{err: err})
	}
	r.stopExecutor(ctx, err)
	ctx.Send(ctx.Parent(), unheld{ctx.Self()})
	return true
}

func (r *runSupervisor) retire(ctx actor.Context) {
	if r.ownership == nil {
		ctx.Stop(ctx.Self())
		return
	}
	ctx.Send(r.ownership, release{})
}
