package supervisor

import (
	"context"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
)

// NoLaneError tells that a lane is not at work: there is none of that name, or it has
// ended.
type NoLaneError struct{ RunID, RoundID, LaneID string }

func (e *NoLaneError) Error() string {
	if e.RoundID == "" {
		return fmt.Sprintf("there is no lane %.80q at work: the call has started no round", e.LaneID)
	}
	return fmt.Sprintf("round %s has no lane %.80q at work: it has ended or there never was one; `pilothouse show %s` lists the lanes", e.RoundID, e.LaneID, e.RunID)
}

// CancelLane ends one lane of a round at work, queued or not, while the others go on.
// Session names the workspace. It returns when that is on its way: the lane ends with
// its record, as cancelled unless its answer was faster. Errors: *NoLaneError.
func (s *System) CancelLane(ctx context.Context, session Session, runID, roundID, laneID, reason string) error {
	_, err := s.ask(ctx, nil, func(caller *actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			root, err := store.Find(work, session.Workdir)
			if err != nil {
				return destination{}, err
			}
			key := runKey{root.Dir, runID}
			if runID == adHocRun {
				key = adHocKey(root, roundID)
			}
			return destination{
				run: key, message: cancelLane{caller, runID, roundID, laneID, reason},
				absent: &NoLaneError{runID, roundID, laneID},
			}, nil
		}
	})
	return err
}

// cancelLane asks a run to end one lane: registry → run.
type cancelLane struct {
	caller                 *actor.PID
	runID, roundID, laneID string
	reason                 string
}

func (r *runSupervisor) cancelLane(ctx actor.Context, m cancelLane) {
	round := r.open[m.roundID]
	if !round.hasAtWork(m.laneID) {
		r.reply(ctx, m.caller, reply{err: &NoLaneError{m.runID, m.roundID, m.laneID}})
		return
	}
	ctx.Send(round.actor, lanes.CancelLane{LaneID: m.laneID, Reason: m.reason})
	r.reply(ctx, m.caller, reply{})
}

// hasAtWork tells whether a lane of the round has begun or is queued, and has not ended.
// A round that is not on record yet, or not there at all, has none.
func (r *openRound) hasAtWork(laneID string) bool {
	return r != nil && r.actor != nil && !r.judged[laneID] &&
		slices.ContainsFunc(r.lanes, func(lane actors.Lane) bool { return lane.Spec.ID == laneID })
}
