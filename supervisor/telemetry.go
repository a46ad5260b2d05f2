package supervisor

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"pilothouse/actors"
	"pilothouse/lanes"
)

// Attributes of spans. Ids name what is on disk; paths, prompts and answers stay out.
const (
	runIDKey   = attribute.Key("pilothouse.run.id")
	roundIDKey = attribute.Key("pilothouse.round.id")
	roleKey    = attribute.Key("pilothouse.role")
	targetKey  = attribute.Key("pilothouse.target")
	lanesKey   = attribute.Key("pilothouse.round.lanes")
	resultKey  = attribute.Key("pilothouse.round.result")
	changesKey = attribute.Key("pilothouse.checkpoint.changes")
)

// asked begins the activity of a run with the first message that wants something
// of it. It ends with the run's actor.
func (r *runSupervisor) asked(ctx actor.Context) {
	if r.activity.Begun() {
		return
	}
	r.activity = lanes.BeginActivity(ctx, "run", r.named())
}

// named is what a span of the run is found by.
func (r *runSupervisor) named() attribute.KeyValue {
	if r.run == nil {
		return runIDKey.String(adHocRun)
	}
	return runIDKey.String(r.run.ID)
}

// newRound begins a round: from here on its lanes are counted, and its activity goes on
// in the messages of the round. A caller that came to a run which another had begun
// keeps its own trace, with a link to the run's.
func (r *runSupervisor) newRound(ctx actor.Context, a *assignment) *openRound {
	round := &openRound{assignment: a, judged: map[string]bool{}, outcomes: map[string]actors.Outcome{}, began: time.Now()}
	run, parent := r.activity.SpanContext(), r.activity.Context()
	if asked := trace.SpanContextFromContext(a.asked); asked.IsValid() && asked.TraceID() != run.TraceID() {
		parent = a.asked
	}
	round.activity = lanes.BeginActivityIn(parent, ctx, "round",
		r.named(), roundIDKey.String(a.roundID), roleKey.String(string(a.role)), targetKey.String(a.target), lanesKey.Int(len(a.lanes)))
	round.activity.Link(run)
	ids := make([]string, len(a.lanes))
	for i := range a.lanes {
		ids[i] = a.lanes[i].Spec.ID
		a.lanes[i].Spec.Role = string(a.role)
	}
	round.tally = r.metrics.ofLanes().Accept(string(a.role), ids)
	return round
}

// over ends the count and the activity of a round.
func (r *runSupervisor) over(round *openRound, result string) {
	round.tally.Close()
	r.metrics.roundEnded(round.role, result, time.Since(round.began), round.activity.SpanContext())
	round.activity.Note(resultKey.String(result))
	failure := result
	if result == roundComplete || result == roundPartial {
		failure = ""
	}
	round.activity.End(failure)
}

// abandon ends what is open when the run's actor ends: nothing, unless it failed.
func (r *runSupervisor) abandon() {
	for id, round := range r.open {
		delete(r.open, id)
		r.over(round, roundLost)
	}
	r.activity.End("")
}

// verdict sums up what became of a round's lanes.
func (r *openRound) verdict() string {
	complete := 0
	for _, outcome := range r.outcomes {
		if outcome.Result.Status == lanes.Complete {
			complete++
		}
	}
	switch {
	case r.err != nil:
		return roundLost
	case complete == len(r.order):
		return roundComplete
	case r.cancelled != nil:
		return roundCancelled
	case complete > 0:
		return roundPartial
	}
	return roundFailed
}

// beginWrite begins the write of a group of changes as part of what the first of
// them belongs to, with links to the traces of the others.
func beginWrite(ctx actor.Context, asked []context.Context) lanes.Activity {
	activity := lanes.BeginActivityIn(asked[0], ctx, "checkpoint", changesKey.Int(len(asked)))
	for _, other := range asked[1:] {
		activity.Link(trace.SpanContextFromContext(other))
	}
	return activity
}

func endWrite(activity lanes.Activity, results []committed) {
	if writeResult(results) == writeFailed {
		activity.End(writeFailed)
		return
	}
	activity.End("")
}
