package actors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
)

// Messages of a role actor to the run. It takes [lanes.Begin], [lanes.Cancel] and
// [lanes.CancelLane].
type (
	// LaneProgress is a lane at work.
	LaneProgress struct {
		RoundID  string
		Progress lanes.Progress
	}
	// LaneJudged is the terminal record of a lane.
	LaneJudged struct {
		RoundID string
		Outcome Outcome
	}
	// RoundFinished follows the last LaneJudged of a round.
	RoundFinished struct{ RoundID string }
)

// round is the role actor. It runs the lanes of one round batch by batch and
// judges each answer. It guarantees one LaneJudged for every lane it was given,
// also for lanes whose batch died or never started.
type round struct {
	lanes.Supervision // batches are not restarted: their lanes' work would be paid twice
	id                string
	role              Role
	host              lanes.Host

	planned []Lane             // in batch order
	open    map[string]Lane    // lanes that have not been judged
	batches [][]Lane           // those that have no actor yet
	running map[int]*actor.PID // batches by number, the spare one included
	spare   int                // the batch whose children wait warm for their tasks, 0 for none
	up      map[string]bool    // lanes whose child has printed its first event, or that are over
	trace   map[string]string  // message headers of Begin, for the batches that begin later
	ended   bool
}

// batchGone comes back behind the messages that a batch sent before it ended.
type batchGone struct {
	index int
	pid   *actor.PID
}

// NewRound makes the role actor of a round of planned lanes, which are in the
// order of their batches. It starts working at [lanes.Begin].
func NewRound(id string, role Role, planned []Lane, host lanes.Host) actor.Producer {
	return func() actor.Actor {
		r := &round{id: id, role: role, host: host, planned: planned, open: map[string]Lane{}, running: map[int]*actor.PID{}, up: map[string]bool{}}
		batch := -1
		for _, lane := range planned {
			r.open[lane.Spec.ID] = lane
			if lane.Refused != "" {
				continue
			}
			if lane.Batch != batch {
				batch = lane.Batch
				r.batches = append(r.batches, nil)
			}
			last := len(r.batches) - 1
			r.batches[last] = append(r.batches[last], lane)
		}
		return r
	}
}

// Receive implements actor.Actor.
func (r *round) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case lanes.Begin:
		if header := ctx.MessageHeader(); header != nil {
			r.trace = header.ToMap()
		}
		r.refuse(ctx)
		r.next(ctx)
	case lanes.Cancel:
		r.cancel(ctx, m)
	case lanes.CancelLane:
		r.cancelLane(ctx, m)
	case lanes.Progress:
		ctx.Send(ctx.Parent(), LaneProgress{r.id, m})
		if m.Status == lanes.Running && m.Phase != lanes.PhaseStarting {
			r.laneUp(ctx, m.LaneID)
		}
	case lanes.Finished:
		r.judge(ctx, m.Result)
		r.laneUp(ctx, m.Result.LaneID)
	case *actor.Terminated:
		r.batchEnded(ctx, m.Who)
	case batchGone:
		r.closeBatch(ctx, m)
	}
}

// refuse reports the lanes that cannot run.
func (r *round) refuse(ctx actor.Context) {
	r.judgeOpen(ctx, func(lane Lane) bool { return lane.Refused != "" }, func(lane Lane) lanes.Result {
		return lanes.Result{
			LaneID: lane.Spec.ID, Status: lanes.Failed,
			Error: &lanes.Failure{Class: pijson.ClassStartFailure, Message: lane.Refused},
		}
	})
}

// next begins the next batch when none is at work, or ends the round.
func (r *round) next(ctx actor.Context) {
	if r.ended || r.atWork() {
		return
	}
	if r.spare == 0 && !r.spawnBatch(ctx) {
		r.ended = true
		ctx.Send(ctx.Parent(), RoundFinished{r.id})
		ctx.Stop(ctx.Self())
		return
	}
	pid := r.running[r.spare]
	r.spare = 0
	ctx.Send(pid, &actor.MessageEnvelope{Header: maps.Clone(r.trace), Message: lanes.Begin{}})
}

func (r *round) atWork() bool {
	for batch := range r.running {
		if batch != r.spare {
			return true
		}
	}
	return false
}

// laneUp notes that a lane needs no more of what a start needs. When that is so
// for all lanes at work, the children of the next batch are started: they wait at
// their open stdin, and their tasks find them ready.
func (r *round) laneUp(ctx actor.Context, laneID string) {
	r.up[laneID] = true
	if r.spare != 0 || !r.atWork() {
		return
	}
	for _, lane := range r.planned {
		if r.running[lane.Batch] != nil && lane.Refused == "" && !r.up[lane.Spec.ID] {
			return
		}
	}
	if r.spawnBatch(ctx) {
		ctx.Send(r.running[r.spare], &actor.MessageEnvelope{Header: maps.Clone(r.trace), Message: lanes.Warm{}})
	}
}

// spawnBatch spawns the next batch as the spare one. It is false when there is none.
func (r *round) spawnBatch(ctx actor.Context) bool {
	for len(r.batches) > 0 {
		batch := r.batches[0]
		r.batches = r.batches[1:]
		specs := make([]lanes.Spec, len(batch))
		for i, lane := range batch {
			specs[i] = lane.Spec
		}
		index := batch[0].Batch
		pid, err := ctx.SpawnNamed(actor.PropsFromProducer(lanes.Once(lanes.NewBatch(specs, r.host))), fmt.Sprintf("batch-%d", index))
		if err == nil {
			r.running[index], r.spare = pid, index
			return true
		}
		for _, lane := range batch {
			r.judge(ctx, lost(lane.Spec.ID, err.Error()))
		}
	}
	return false
}

func (r *round) judge(ctx actor.Context, result lanes.Result) {
	lane, open := r.open[result.LaneID]
	if !open {
		return // judged before; a lane is judged once
	}
	delete(r.open, result.LaneID)
	outcome := Outcome{Lane: lane, Result: result}
	if result.Status == lanes.Complete {
		outcome.Report = r.role.Judge(result.Output)
	}
	ctx.Send(ctx.Parent(), LaneJudged{r.id, outcome})
}

// judgeOpen judges the lanes that are open and chosen, in their order.
func (r *round) judgeOpen(ctx actor.Context, chosen func(Lane) bool, result func(Lane) lanes.Result) {
	for _, lane := range r.planned {
		if _, open := r.open[lane.Spec.ID]; open && chosen(lane) {
			r.judge(ctx, result(lane))
		}
	}
}

// cancel ends the running batch through its own kill ladders, and the waiting
// lanes at once.
func (r *round) cancel(ctx actor.Context, m lanes.Cancel) {
	r.refuse(ctx)
	r.judgeOpen(ctx, func(lane Lane) bool { return r.running[lane.Batch] == nil }, func(lane Lane) lanes.Result {
		return cancelled(lane.Spec.ID, m.Reason)
	})
	r.batches = nil
	for _, pid := range r.running {
		ctx.Send(pid, m)
	}
	r.next(ctx)
}

// cancelLane ends one lane: through its batch, or at once when that has no actor yet.
func (r *round) cancelLane(ctx actor.Context, m lanes.CancelLane) {
	lane, open := r.open[m.LaneID]
	if !open {
		return
	}
	if pid := r.running[lane.Batch]; pid != nil {
		ctx.Send(pid, m)
		return
	}
	for i, batch := range r.batches {
		r.batches[i] = slices.DeleteFunc(batch, func(other Lane) bool { return other.Spec.ID == m.LaneID })
	}
	r.batches = slices.DeleteFunc(r.batches, func(batch []Lane) bool { return len(batch) == 0 })
	r.judge(ctx, cancelled(m.LaneID, m.Reason))
}

// cancelled is the result of a lane that was cancelled before it had an actor.
func cancelled(laneID, reason string) lanes.Result {
	return lanes.Result{
		LaneID: laneID, Status: lanes.Cancelled,
		Error: &lanes.Failure{Class: pijson.ClassCancelled, Message: cmp.Or(reason, pijson.ClassCancelled.Sentence())},
	}
}

func (r *round) batchEnded(ctx actor.Context, who *actor.PID) {
	for index, pid := range r.running {
		if pid.Equal(who) {
			ctx.Send(ctx.Self(), batchGone{index, pid})
		}
	}
}

// closeBatch accounts for what a dead batch left open, then goes on.
func (r *round) closeBatch(ctx actor.Context, m batchGone) {
	delete(r.running, m.index)
	if r.spare == m.index {
		r.spare = 0
	}
	r.judgeOpen(ctx, func(lane Lane) bool { return lane.Batch == m.index }, func(lane Lane) lanes.Result {
		return lost(lane.Spec.ID, r.Reason(m.pid))
	})
	r.next(ctx)
}

func lost(laneID, reason string) lanes.Result {
	return lanes.Result{
		LaneID: laneID, Status: lanes.Failed,
		Error: &lanes.Failure{Class: pijson.ClassInternal, Message: "pilothouse lost the lane: " + reason},
	}
}
