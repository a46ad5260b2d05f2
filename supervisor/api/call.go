package api

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"pilothouse/lanes"
	"pilothouse/supervisor"
)

// call is one call of a tool, from its acceptance until it is forgotten.
type call struct {
	id, digest string
	created    time.Time
	feed       *feed
	cancel     context.CancelCauseFunc // does nothing for a call of an earlier life of the daemon

	claim sync.Mutex // held while a claim is made durable; mu is locked under it

	mu      sync.Mutex // only that of the feed is locked under it, and nothing is written
	record  record
	lanes   []*liveLane // in the round's order
	readers int         // streams that follow the call
	offered bool        // a client has been sent the result and may be about to acknowledge it
}

// liveLane is a lane of a running call.
type liveLane struct {
	planned  PlannedLane
	progress Progress
	seen     time.Time // when progress came
	ended    bool
	failure  *lanes.Failure
}

func newCall(r record) *call {
	return &call{
		id: r.Call.ID, digest: r.Digest, created: r.Call.Created, feed: newFeed(0), record: r,
		cancel: func(error) {},
	}
}

// restored is a call of an earlier life of the daemon.
func restored(r record) *call {
	c := newCall(r)
	c.feed.add("", Event{Call: c.id, Type: EventAccepted})
	if r.Started != nil {
		c.feed.add("", Event{Call: c.id, Type: EventStarted, Started: r.Started})
	}
	c.feed.end(c.lastEvent())
	return c
}

// lastEvent is what an asker hears last: the result or problem while it waits, else
// that it was delivered.
func (c *call) lastEvent() Event {
	if c.record.Last != nil {
		return *c.record.Last
	}
	return Event{Call: c.id, Type: EventProblem, Problem: problemOf(&DeliveredError{c.id, c.record.Call.Delivered})}
}

func (c *call) describe() Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record.Call
}

func (c *call) detail() CallDetail {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := CallDetail{Call: c.record.Call}
	if last := c.record.Last; last != nil {
		d.Result, d.Problem = last.Result, last.Problem
	}
	return d
}

// offer notes that a client has the last event.
func (c *call) offer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offered = true
}

// read counts a stream that follows the call until the returned function is called.
func (c *call) read() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.readers--
	}
}

// expectsAck tells that a client that has the result, or is being sent it, may still
// acknowledge it.
func (c *call) expectsAck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.offered || c.readers > 0) && (c.record.Call.State == StateFinished || c.record.Call.State == StateLost)
}

// started takes over what a round announces. It returns the record to be kept.
func (c *call) started(m supervisor.RoundStarted, now time.Time) record {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Call.RunID, c.record.Call.RoundID = m.RunID, m.RoundID
	c.record.Started = startedOf(m)
	c.record.Transcripts = map[string]string{}
	for i, planned := range c.record.Started.Lanes {
		c.record.Transcripts[planned.LaneID] = m.Lanes[i].Spec.Transcript
		if slices.Contains(m.Reused, planned.LaneID) {
			continue
		}
		c.lanes = append(c.lanes, &liveLane{planned: planned, seen: now, progress: Progress{LaneID: planned.LaneID, Status: lanes.Queued}})
	}
	return c.record
}

func (c *call) progressed(p Progress, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lane := c.lane(p.LaneID); lane != nil {
		lane.progress, lane.seen = p, now
	}
}

// finished takes over the last event. It returns the record to be kept.
func (c *call) finished(last Event, now time.Time) record {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Call.State, c.record.Call.Ended, c.record.Last = StateFinished, now, &last
	return c.record
}

// acknowledge claims the result for one asker. The claim is granted when save has made
// it durable; until then others see the call as it was.
func (c *call) acknowledge(now time.Time, save func(record) error) (Call, error) {
	c.claim.Lock()
	defer c.claim.Unlock()
	delivered, err := c.delivered(now)
	if err != nil {
		return Call{}, err
	}
	if err := save(delivered); err != nil {
		return Call{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record = delivered
	c.feed.settle(c.lastEvent()) // the answers need no memory any more
	return delivered.Call, nil
}

// delivered is the record of the call once its result is claimed.
func (c *call) delivered(now time.Time) (record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.record.Call.State {
	case StateRunning:
		return record{}, refusal(http.StatusConflict, "call %s is still at work: there is nothing to acknowledge yet", c.id)
	case StateDelivered:
		return record{}, &DeliveredError{c.id, c.record.Call.Delivered}
	}
	delivered := c.record
	delivered.Call.State, delivered.Call.Delivered, delivered.Last = StateDelivered, now, nil
	return delivered, nil
}

func (c *call) laneEnded(result supervisor.LaneResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lane := c.lane(result.LaneID)
	if lane == nil {
		return
	}
	lane.ended, lane.failure = true, result.Error
	lane.progress = Progress{
		LaneID: result.LaneID, Status: result.Status, Attempt: result.Attempts, Turns: result.Turns,
		Usage: result.Usage, ElapsedMs: result.DurationMs,
	}
	if result.Model != nil {
		lane.progress.Model = *result.Model
	}
}

func (c *call) lane(id string) *liveLane {
	for _, lane := range c.lanes {
		if lane.planned.LaneID == id {
			return lane
		}
	}
	return nil
}

// unended counts the lanes that live lists.
func (c *call) unended() (queued, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record.Call.State != StateRunning {
		return 0, 0
	}
	for _, lane := range c.lanes {
		switch {
		case lane.progress.Status.Terminal():
		case lane.progress.Status == lanes.Queued:
			queued++
		default:
			running++
		}
	}
	return queued, running
}

// live lists the lanes that have not ended.
func (c *call) live(now time.Time) []Lane {
	return slices.DeleteFunc(c.all(now), func(lane Lane) bool { return lane.Status.Terminal() })
}

// all lists the lanes that ran in this life of the daemon. Once the call is over, one
// without an end of its own is none of them.
func (c *call) all(now time.Time) []Lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Lane
	for _, lane := range c.lanes {
		if !lane.ended && c.record.Call.State != StateRunning {
			continue
		}
		view := Lane{
			Call: c.id, RunID: c.record.Call.RunID, RoundID: c.record.Call.RoundID, Role: c.record.Started.Role,
			Name: lane.planned.Name, Lens: lane.planned.Lens, RefID: lane.planned.RefID, Batch: lane.planned.Batch, Progress: lane.progress,
			Error: lane.failure,
		}
		if lane.progress.Status == lanes.Running {
			view.ElapsedMs += now.Sub(lane.seen).Milliseconds()
		}
		all = append(all, view)
	}
	return all
}

// transcript is the file of a lane and whether more can be written to it.
func (c *call) transcript(laneID string) (path string, growing bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path = c.record.Transcripts[laneID]
	if path == "" {
		return "", false, refusal(http.StatusNotFound, "call %s has no lane %.80q with a transcript", c.id, laneID)
	}
	lane := c.lane(laneID)
	return path, c.record.Call.State == StateRunning && lane != nil && !lane.ended, nil
}
