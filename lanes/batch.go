package lanes

import (
	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes/pijson"
)

// BatchSize is how many lanes work side by side (seed: Subagent Spawning).
const BatchSize = 3

// batch runs at most BatchSize lanes side by side and stops when all have
// reported and are gone: its end tells the role actor to go on. It supervises
// its lanes: a lane whose actor cannot be kept alive is reported as failed by
// the batch, so no lane is ever lost.
type batch struct {
	Supervision
	specs []Spec
	host  Host

	begun     bool
	activity  Activity
	warm      bool
	cancelled *Cancel
	leaving   map[string]Cancel // lanes that were cancelled alone
	stopping  bool
	lanes     map[string]*actor.PID // by lane id, those still alive
	histories map[string]*history   // by lane id
	finished  map[string]bool
}

// recheck comes back to the batch behind the messages that a lane sent before
// it ended: Terminated overtakes them.
type recheck struct {
	laneID string
	pid    *actor.PID
}

// NewBatch makes the actor of one batch.
func NewBatch(specs []Spec, host Host) actor.Producer {
	return func() actor.Actor {
		return &batch{
			Supervision: Supervision{Restarts: LaneRestarts},
			specs:       specs, host: host,
			leaving: map[string]Cancel{}, lanes: map[string]*actor.PID{}, histories: map[string]*history{}, finished: map[string]bool{},
		}
	}
}

// Receive implements actor.Actor.
func (b *batch) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		b.start(ctx)
	case Warm:
		b.warm = true
		b.broadcast(ctx, m)
	case Begin:
		b.begin(ctx, m)
	case Cancel:
		b.cancelled = &m
		b.broadcast(ctx, m)
	case CancelLane:
		b.cancelLane(ctx, m)
	case ready:
		b.catchUp(ctx, m.laneID)
	case Progress:
		ctx.Send(ctx.Parent(), m)
	case Finished:
		b.finish(ctx, m)
	case *actor.Terminated:
		b.laneGone(ctx, m.Who)
	case recheck:
		b.giveUp(ctx, m)
	case *actor.Stopping:
		b.stopping = true
	case *actor.Stopped, *actor.Restarting:
		b.endActivity()
	}
}

func (b *batch) start(ctx actor.Context) {
	for _, spec := range b.specs {
		past := &history{}
		pid, err := ctx.SpawnNamed(actor.PropsFromProducer(newLane(spec, b.host, past)), "lane-"+spec.ID)
		if err != nil {
			b.finish(ctx, lost(spec.ID, past, err.Error()))
			continue
		}
		b.lanes[spec.ID], b.histories[spec.ID] = pid, past
	}
}

func (b *batch) begin(ctx actor.Context, m Begin) {
	if b.begun {
		return
	}
	b.begun = true
	telemetryOf(ctx.ActorSystem()).Metrics.batchBegun()
	b.activity = BeginActivity(ctx, "batch", sizeKey.Int(len(b.specs)))
	b.broadcast(ctx, b.activity.Envelope(m))
}

func (b *batch) endActivity() {
	failure := ""
	if len(b.finished) < len(b.specs) {
		failure = "given_up"
	}
	b.activity.End(failure)
}

func (b *batch) broadcast(ctx actor.Context, message any) {
	for _, pid := range b.lanes {
		ctx.Send(pid, message)
	}
}

func (b *batch) cancelLane(ctx actor.Context, m CancelLane) {
	if pid := b.lanes[m.LaneID]; pid != nil && !b.finished[m.LaneID] {
		b.leaving[m.LaneID] = Cancel{m.Reason}
		ctx.Send(pid, b.leaving[m.LaneID])
	}
}

// catchUp brings a lane that was restarted after a panic to where it was. One
// that panicked while it stopped is about to be stopped again (see Supervision).
func (b *batch) catchUp(ctx actor.Context, laneID string) {
	pid := b.lanes[laneID]
	alone, leaving := b.leaving[laneID]
	switch {
	case pid == nil || b.stopping || b.finished[laneID]:
	case leaving:
		ctx.Send(pid, alone)
	case b.cancelled != nil:
		ctx.Send(pid, *b.cancelled)
	case b.begun:
		ctx.Send(pid, Begin{})
	case b.warm:
		ctx.Send(pid, Warm{})
	}
}

func (b *batch) finish(ctx actor.Context, m Finished) {
	if b.finished[m.Result.LaneID] {
		return
	}
	b.finished[m.Result.LaneID] = true
	ctx.Send(ctx.Parent(), m)
	b.endIfDone(ctx)
}

func (b *batch) laneGone(ctx actor.Context, who *actor.PID) {
	for laneID, pid := range b.lanes {
		if pid.Equal(who) {
			delete(b.lanes, laneID)
			ctx.Send(ctx.Self(), recheck{laneID, pid})
		}
	}
	b.endIfDone(ctx)
}

func (b *batch) giveUp(ctx actor.Context, m recheck) {
	if !b.finished[m.laneID] {
		b.finish(ctx, lost(m.laneID, b.histories[m.laneID], b.Reason(m.pid)))
	}
}

// endIfDone stops the batch when every lane has reported and is gone, so that
// the next batch starts only after the last child of this one has ended.
func (b *batch) endIfDone(ctx actor.Context) {
	if len(b.finished) == len(b.specs) && len(b.lanes) == 0 {
		ctx.Stop(ctx.Self())
	}
}

// lost is the report of a lane whose actor is gone.
func lost(laneID string, past *history, reason string) Finished {
	r := past.result(laneID)
	r.Status = Failed
	r.Error = &Failure{Class: pijson.ClassInternal, Message: "pilothouse lost the lane: " + reason}
	return Finished{r}
}
