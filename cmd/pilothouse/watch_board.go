package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/supervisor/api"
)

// endedShown is how many calls that have ended stay in sight, the newest.
const endedShown = 50

// laneLost is the status of a lane whose end nobody told of: its daemon died, or we
// were away when it ended.
const laneLost lanes.Status = "lost"

// board is what a watcher knows of the daemon. It folds what is listed and what
// happens, in whichever order they come: the end of a lane is never taken back.
type board struct {
	calls map[string]*boardCall
}

type boardCall struct {
	api.Call
	role    actors.Role
	model   string
	problem string
	lanes   []*boardLane
}

type boardLane struct {
	planned  api.PlannedLane
	progress api.Progress
	failure  *lanes.Failure
	seen     time.Time // when progress came
}

func newBoard() *board { return &board{calls: map[string]*boardCall{}} }

// list takes over what the daemon lists. Calls that are not listed any more have been
// delivered; of a call that is not at work any more nothing else is to come.
func (b *board) list(calls []api.Call, live []api.Lane, now time.Time) {
	listed := map[string]bool{}
	for _, call := range calls {
		listed[call.ID] = true
		if call.Tool == api.ToolPlans { // over in no time, and without lanes
			continue
		}
		b.call(call.ID).Call = call
	}
	for _, lane := range live {
		c := b.calls[lane.Call]
		if c == nil { // it began after the calls were listed: its events follow
			continue
		}
		c.role = lane.Role
		known := c.lane(api.PlannedLane{LaneID: lane.LaneID, Name: lane.Name, Lens: lane.Lens, RefID: lane.RefID, Batch: lane.Batch})
		known.take(lane.Progress, now)
		if lane.Error != nil {
			known.failure = lane.Error
		}
	}
	for id, c := range b.calls {
		if !listed[id] {
			c.State = api.StateDelivered
		}
		if c.State != api.StateRunning {
			c.settle()
		}
	}
	b.prune()
}

// take folds an event.
func (b *board) take(e api.Event, now time.Time) {
	if e.Type == api.EventAccepted { // what it is of stands in the next listing
		return
	}
	c := b.calls[e.Call]
	if c == nil {
		if e.Started == nil { // a call without lanes
			return
		}
		c = b.call(e.Call)
		c.State, c.Created = api.StateRunning, now
	}
	switch {
	case e.Started != nil:
		c.RunID, c.RoundID, c.role, c.model = e.Started.RunID, e.Started.RoundID, e.Started.Role, e.Started.Model
		for _, planned := range e.Started.Lanes {
			lane := c.lane(planned)
			if slices.Contains(e.Started.Reused, planned.LaneID) {
				lane.take(api.Progress{Status: lanes.Complete, Phase: "reused"}, now)
			}
		}
	case e.Progress != nil:
		c.lane(api.PlannedLane{LaneID: e.Progress.LaneID}).take(*e.Progress, now)
	case e.Lane != nil:
		lane := c.lane(api.PlannedLane{LaneID: e.Lane.LaneID})
		lane.failure = e.Lane.Error
		p := api.Progress{
			Status: e.Lane.Status, Attempt: e.Lane.Attempts, Turns: e.Lane.Turns, Usage: e.Lane.Usage, ElapsedMs: e.Lane.DurationMs,
		}
		if e.Lane.Reused {
			p.Phase = "reused"
		}
		if e.Lane.Model != nil {
			p.Model = *e.Lane.Model
		}
		lane.take(p, now)
	case e.Type == api.EventResult, e.Type == api.EventProblem:
		c.State, c.Ended = api.StateFinished, now
		if e.Problem != nil {
			c.problem = e.Problem.Detail
		}
		c.settle()
		b.prune()
	}
}

func (b *board) call(id string) *boardCall {
	if b.calls[id] == nil {
		b.calls[id] = &boardCall{Call: api.Call{ID: id}}
	}
	return b.calls[id]
}

// prune forgets the oldest of the calls that have ended.
func (b *board) prune() {
	var ended []*boardCall
	for _, c := range b.calls {
		if c.State != api.StateRunning {
			ended = append(ended, c)
		}
	}
	slices.SortFunc(ended, func(x, y *boardCall) int { return newestFirst(x.Call, y.Call) })
	for _, c := range ended[min(endedShown, len(ended)):] {
		delete(b.calls, c.ID)
	}
}

func newestFirst(x, y api.Call) int {
	return cmp.Or(y.Created.Compare(x.Created), strings.Compare(y.ID, x.ID))
}

func atWorkFirst(x, y api.State) int {
	switch {
	case x == y, x != api.StateRunning && y != api.StateRunning:
		return 0
	case x == api.StateRunning:
		return -1
	}
	return 1
}

// lane finds a lane, or adds it.
func (c *boardCall) lane(planned api.PlannedLane) *boardLane {
	for _, lane := range c.lanes {
		if lane.planned.LaneID == planned.LaneID {
			return lane
		}
	}
	lane := &boardLane{planned: planned, progress: api.Progress{Status: lanes.Queued}}
	c.lanes = append(c.lanes, lane)
	return lane
}

// settle gives up the lanes whose end was not told.
func (c *boardCall) settle() {
	for _, lane := range c.lanes {
		if !lane.progress.Status.Terminal() {
			lane.progress.Status = laneLost
		}
	}
}

func (l *boardLane) take(p api.Progress, now time.Time) {
	if l.progress.Status.Terminal() {
		return
	}
	l.progress, l.seen = p, now
}

// watchView is what there is to see at one moment, for people and for scripts.
type watchView struct {
	Daemon daemonView `json:"daemon"`
	Totals totals     `json:"totals"`
	Runs   []runView  `json:"runs"` // those at work first, then the newest
}

// daemonView tells who is watched.
type daemonView struct {
	Connected bool   `json:"connected"`
	Version   string `json:"version"`
	PID       int    `json:"pid"`
	// Note says what is wrong while it is not connected.
	Note string `json:"note,omitempty"`
}

// totals are over all lanes in sight.
type totals struct {
	Running int          `json:"running"`
	Queued  int          `json:"queued"`
	Done    int          `json:"done"`
	Failed  int          `json:"failed"` // cancelled and lost ones included
	Usage   pijson.Usage `json:"usage"`
}

// runView is a run with what is at work in it. RunID is "" for what belongs to none.
type runView struct {
	RunID   string      `json:"runId"`
	Workdir string      `json:"workdir"`
	Rounds  []roundView `json:"rounds"` // in the same order
}

// roundView is a call and the round that it runs.
type roundView struct {
	Call    string      `json:"call"`
	Tool    string      `json:"tool"`
	Session string      `json:"session,omitempty"`
	RoundID string      `json:"roundId,omitempty"`
	Role    actors.Role `json:"role,omitempty"`
	Model   string      `json:"model,omitempty"` // requested
	State   api.State   `json:"state"`
	Problem string      `json:"problem,omitempty"`
	Created time.Time   `json:"created"`
	Lanes   []laneView  `json:"lanes"`
}

// laneView is a lane as it is now.
type laneView struct {
	LaneID    string         `json:"laneId"`
	Lens      string         `json:"lens,omitempty"`
	RefID     string         `json:"refId,omitempty"`
	Batch     int            `json:"batch,omitempty"`
	Status    lanes.Status   `json:"status"`
	Phase     string         `json:"phase,omitempty"`
	Attempt   int            `json:"attempt,omitempty"`
	Turns     int            `json:"turns,omitempty"`
	Usage     pijson.Usage   `json:"usage"`
	Model     string         `json:"model,omitempty"`
	ElapsedMs int64          `json:"elapsedMs"`
	Warning   string         `json:"warning,omitempty"`
	Error     *lanes.Failure `json:"error,omitempty"`
}

// view is what the board shows at a time.
func (b *board) view(now time.Time) watchView {
	calls := make([]*boardCall, 0, len(b.calls))
	for _, c := range b.calls {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(x, y *boardCall) int {
		return cmp.Or(atWorkFirst(x.State, y.State), newestFirst(x.Call, y.Call))
	})
	v := watchView{Runs: []runView{}}
	place := map[[2]string]int{} // of a run in the view
	for _, c := range calls {
		round := c.view(now)
		for _, lane := range round.Lanes {
			v.Totals.add(lane)
		}
		key := [2]string{c.RunID, c.Workdir}
		at, known := place[key]
		if !known {
			at = len(v.Runs)
			place[key] = at
			v.Runs = append(v.Runs, runView{RunID: c.RunID, Workdir: c.Workdir})
		}
		v.Runs[at].Rounds = append(v.Runs[at].Rounds, round)
	}
	return v
}

func (c *boardCall) view(now time.Time) roundView {
	v := roundView{
		Call: c.ID, Tool: c.Tool, Session: c.Session, RoundID: c.RoundID, Role: c.role, Model: c.model,
		State: c.State, Problem: c.problem, Created: c.Created, Lanes: []laneView{},
	}
	for _, lane := range c.lanes {
		p := lane.progress
		if p.Status == lanes.Running {
			p.ElapsedMs += now.Sub(lane.seen).Milliseconds()
		}
		v.Lanes = append(v.Lanes, laneView{
			LaneID: lane.planned.LaneID, Lens: lane.planned.Lens, RefID: lane.planned.RefID, Batch: lane.planned.Batch,
			Status: p.Status, Phase: p.Phase, Attempt: p.Attempt, Turns: p.Turns, Usage: p.Usage, Model: p.Model,
			ElapsedMs: p.ElapsedMs, Warning: p.Warning, Error: lane.failure,
		})
	}
	return v
}

func (t *totals) add(lane laneView) {
	switch lane.Status {
	case lanes.Running:
		t.Running++
	case lanes.Queued:
		t.Queued++
	case lanes.Complete:
		t.Done++
	default:
		t.Failed++
	}
	t.Usage = t.Usage.Plus(lane.Usage)
}
