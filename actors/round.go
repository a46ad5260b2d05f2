package actors

import (
	"cmp"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
)

// Messages of a role actor to the run. It takes [lanes.Begin] and [lanes.Cancel].
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

	planned []Lane          // in batch order
	open    map[string]Lane // lanes that have not been judged
	batches [][]Lane        // those not yet started
	running map[int]*actor.PID
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
		r := &round{id: id, role: role, host: host, planned: planned, open: map[string]Lane{}, running: map[int]*actor.PID{}}
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
		r.refuse(ctx)
		r.next(ctx)
	case lanes.Cancel:
		r.cancel(ctx, m)
	case lanes.Progress:
		ctx.Send(ctx.Parent(), LaneProgress{r.id, m})
	case lanes.Finished:
		r.judge(ctx, m.Result)
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

// next starts the next batch, or ends the round when there is none.
func (r *round) next(ctx actor.Context) {
	if len(r.running) > 0 || r.ended {
		return
	}
	if len(r.batches) == 0 {
		r.ended = true
		ctx.Send(ctx.Parent(), RoundFinished{r.id})
		ctx.Stop(ctx.Self())
		return
	}
	batch := r.batches[0]
	r.batches = r.batches[1:]
	specs := make([]lanes.Spec, len(batch))
	for i, lane := range batch {
		specs[i] = lane.Spec
	}
	index := batch[0].Batch
	pid, err := ctx.SpawnNamed(actor.PropsFromProducer(lanes.NewBatch(specs, r.host)), fmt.Sprintf("batch-%d", index))
	if err != nil {
		for _, lane := range batch {
			r.judge(ctx, lost(lane.Spec.ID, err.Error()))
		}
		r.next(ctx)
		return
	}
	r.running[index] = pid
	ctx.Send(pid, lanes.Begin{})
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
		return lanes.Result{
			LaneID: lane.Spec.ID, Status: lanes.Cancelled,
			Error: &lanes.Failure{Class: pijson.ClassCancelled, Message: cmp.Or(m.Reason, pijson.ClassCancelled.Sentence())},
		}
	})
	r.batches = nil
	for _, pid := range r.running {
		ctx.Send(pid, m)
	}
	r.next(ctx)
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
