package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// What is kept of calls that have ended: the newest keptCalls of them, none for longer
// than keptFor. Those that were delivered go first. What goes with a result is its
// delivery, never an answer: those are in the directory of the run.
const (
	keptCalls = 256
	keptFor   = 7 * 24 * time.Hour
)

// overviewLimit bounds the feed of all calls. Superseded progress does not count, so
// a watcher falls behind only when hundreds of lanes end unseen.
const overviewLimit = 1024

// calls are the calls of the daemon: those at work and those whose results wait.
type calls struct {
	tree     *supervisor.System
	spool    spool
	overview *feed
	logger   *slog.Logger
	now      func() time.Time
	work     sync.WaitGroup

	mu      sync.Mutex
	byID    map[string]*call
	running int
	closing bool
	changed chan struct{} // closed and replaced when a call ends or is acknowledged
}

// newCalls takes over what an earlier life of the daemon left. A call that it worked
// on is lost: it is not begun again, for its round may have cost money.
func newCalls(tree *supervisor.System, kept spool, logger *slog.Logger, now func() time.Time) (*calls, error) {
	t := &calls{
		tree: tree, spool: kept, overview: newFeed(overviewLimit), logger: logger, now: now,
		byID: map[string]*call{}, changed: make(chan struct{}),
	}
	records, err := kept.load(func(err error) { logger.Warn("a call of an earlier daemon is not known any more", "error", err) })
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Call.State == StateRunning {
			lost := &LostCallError{r.Call.ID, r.Call.RunID, r.Call.RoundID}
			r.Call.State, r.Call.Ended = StateLost, now()
			r.Last = &Event{Call: r.Call.ID, Type: EventProblem, Problem: problemOf(lost)}
			if err := kept.save(r); err != nil {
				return nil, err
			}
			logger.Warn("the daemon before this one ended in the middle of a call", "call", r.Call.ID, "run", r.Call.RunID, "round", r.Call.RoundID)
		}
		t.byID[r.Call.ID] = restored(r)
	}
	t.prune()
	return t, nil
}

// tool runs one call.
type tool func(ctx context.Context, watch supervisor.Watch) (any, error)

// tool finds the tool of a request and reads its parameters.
func (t *calls) tool(req CallRequest) (tool, error) {
	session := req.Session.session()
	switch req.Tool {
	case ToolRefine:
		var params RefineParams
		if err := decodeStrict(req.Params, &params); err != nil {
			return nil, inputErrorf("params of refine: %v", err)
		}
		refine, err := params.request(session)
		return func(ctx context.Context, watch supervisor.Watch) (any, error) {
			return t.tree.Refine(ctx, refine, watch)
		}, err
	case ToolAnalyzeRefs:
		var params AnalyzeParams
		if err := decodeStrict(req.Params, &params); err != nil {
			return nil, inputErrorf("params of analyze_refs: %v", err)
		}
		analyze, err := params.request(session)
		return func(ctx context.Context, watch supervisor.Watch) (any, error) {
			return t.tree.AnalyzeRefs(ctx, analyze, watch)
		}, err
	case ToolPlans:
		var action supervisor.PlansAction
		if err := decodeStrict(req.Params, &action); err != nil {
			return nil, inputErrorf("params of plans: %v", err)
		}
		return func(ctx context.Context, _ supervisor.Watch) (any, error) { return t.tree.Plans(ctx, session, action) }, nil
	}
	return nil, inputErrorf("there is no tool %.80q; there are %s, %s and %s", req.Tool, ToolRefine, ToolAnalyzeRefs, ToolPlans)
}

// start begins a call, or joins the one that its id names already. An accepted call
// is on disk before anything of it runs: whoever lost the answer may post it again.
func (t *calls) start(ctx context.Context, req CallRequest) (*call, error) {
	if req.ID == "" {
		req.ID = "call-" + strings.ToLower(rand.Text())
	}
	if !store.ValidID(req.ID) {
		return nil, inputErrorf("the call id %.80q is no id: up to 128 letters, digits, dots, dashes and underscores, the first a letter or digit", req.ID)
	}
	if err := req.Session.check(); err != nil {
		return nil, err
	}
	run, err := t.tool(req)
	if err != nil {
		return nil, err
	}
	c := newCall(record{Digest: digest(req), Call: Call{
		ID: req.ID, Tool: req.Tool, Session: req.Session.ID, Workdir: req.Session.Workdir, State: StateRunning, Created: t.now(),
	}})
	ctx, c.cancel = context.WithCancelCause(ctx)
	if earlier, err := t.admit(c); earlier != nil || err != nil {
		c.cancel(nil)
		return earlier, err
	}
	if err := t.spool.create(c.record); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = inputErrorf("the call id %s is taken by a call that cannot be read any more; choose another", req.ID)
		}
		t.discard(c, err)
		return nil, err
	}
	t.publish(c, "", Event{Type: EventAccepted})
	t.logger.Info("call accepted", "call", req.ID, "tool", req.Tool, "session", req.Session.ID, "workdir", req.Session.Workdir)
	t.work.Go(func() {
		defer c.cancel(nil)
		value, err := t.guarded(ctx, c, run)
		t.finish(c, value, err)
	})
	return c, nil
}

// admit makes a call known. It returns the earlier call of that id, if there is one.
func (t *calls) admit(c *call) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if earlier := t.byID[c.id]; earlier != nil {
		if earlier.digest != c.digest {
			return nil, refusal(http.StatusConflict, "the call id %s belongs to another call; choose another id", c.id)
		}
		return earlier, nil
	}
	if t.closing {
		return nil, &supervisor.ClosedError{}
	}
	t.byID[c.id] = c
	t.running++
	return nil, nil
}

// discard takes a call back that could not be recorded; those who joined it are told.
func (t *calls) discard(c *call, err error) {
	t.mu.Lock()
	delete(t.byID, c.id)
	t.running--
	t.broadcast()
	t.mu.Unlock()
	c.cancel(nil)
	c.feed.end(Event{Call: c.id, Type: EventProblem, Problem: problemOf(err)})
}

// guarded runs a tool. A panic in it is the end of this call, not of the daemon.
func (t *calls) guarded(ctx context.Context, c *call, run tool) (value any, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			t.logger.Error("call panicked", "call", c.id, "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
			err = fmt.Errorf("pilothouse failed inside: %v", reason)
		}
	}()
	return run(ctx, func(event any) { t.watch(c, event) })
}

// watch takes what happens during a call. It runs on the call's own actor, which may
// be slow, so the round is on record before its announcement is passed on.
func (t *calls) watch(c *call, event any) {
	switch m := event.(type) {
	case supervisor.RoundStarted:
		kept := c.started(m, t.now())
		if err := t.spool.save(kept); err != nil {
			t.logger.Error("the round of a call is not on record", "call", kept.Call.ID, "error", err)
		}
		t.publish(c, "", Event{Type: EventStarted, Started: kept.Started})
	case lanes.Progress:
		p := progressOf(m)
		c.progressed(*p, t.now())
		t.publish(c, m.LaneID, Event{Type: EventProgress, Progress: p})
	case supervisor.LaneEnded:
		c.laneEnded(m.Lane)
		t.publish(c, m.Lane.LaneID, Event{Type: EventLane, Lane: &m.Lane})
	}
}

// publish adds an event to the feed of its call and to that of all calls.
func (t *calls) publish(c *call, key string, event Event) {
	event.Call = c.id
	event.Seq = c.feed.add(key, event)
	t.announce(key, event)
}

func (t *calls) announce(key string, event Event) {
	if key != "" {
		key = event.Call + "/" + key
	}
	t.overview.add(key, brief(event))
}

// brief is an event without the answers in it, which GET /v1/calls/{id} gives.
func brief(event Event) Event {
	event.Result = nil
	if event.Lane != nil {
		lane := *event.Lane
		lane.Output, lane.Stderr, lane.Summary = "", "", ""
		lane.Findings, lane.Questions, lane.Sections, lane.Problems = nil, nil, nil, nil
		event.Lane = &lane
	}
	return event
}

// finish records what came of a call and then tells it.
func (t *calls) finish(c *call, value any, err error) {
	event := Event{Call: c.id, Type: EventResult}
	if err == nil {
		event.Result, err = encode(value)
	}
	if err != nil {
		event = Event{Call: c.id, Type: EventProblem, Problem: problemOf(err)}
	}
	kept := c.finished(event, t.now())
	if err := t.spool.save(kept); err != nil {
		t.logger.Error("the result of a call would not survive the daemon", "call", kept.Call.ID, "error", err)
	}
	took := kept.Call.Ended.Sub(kept.Call.Created).Round(time.Millisecond).String()
	outcome := event.Type
	if event.Problem != nil { // not its words: they may quote the command for pi
		outcome = event.Problem.Type
	}
	t.logger.Info("call ended", "call", kept.Call.ID, "tool", kept.Call.Tool, "run", kept.Call.RunID, "round", kept.Call.RoundID,
		"outcome", outcome, "took", took)
	event.Seq = c.feed.end(event)
	t.announce("", event)
	t.mu.Lock()
	t.running--
	t.broadcast()
	t.mu.Unlock()
	t.prune()
}

func (t *calls) find(id string) (*call, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.byID[id]; c != nil {
		return c, nil
	}
	return nil, refusal(http.StatusNotFound, "there is no call %.80q; `pilothouse runs` lists what was stored", id)
}

// list returns all calls, oldest first.
func (t *calls) list() []*call {
	t.mu.Lock()
	all := make([]*call, 0, len(t.byID))
	for _, c := range t.byID {
		all = append(all, c)
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b *call) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.id, b.id))
	})
	return all
}

// acknowledge claims the result of a call. Of several askers one succeeds; the others
// are told that it was delivered. The claim is durable before it is granted.
func (t *calls) acknowledge(id string) (Call, error) {
	c, err := t.find(id)
	if err != nil {
		return Call{}, err
	}
	granted, err := c.acknowledge(t.now(), t.spool.save)
	if err != nil {
		return Call{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broadcast()
	return granted, nil
}

// cancel ends a call early, in the orderly way. One that has ended stays as it is.
func (t *calls) cancel(id, reason string) (Call, error) {
	c, err := t.find(id)
	if err != nil {
		return Call{}, err
	}
	t.logger.Info("call cancelled", "call", id, "reason", reason)
	c.cancel(errors.New(reason))
	return c.describe(), nil
}

// cancelLane ends one lane of a call at work, in the orderly way.
func (t *calls) cancelLane(ctx context.Context, id, laneID, reason string) (Call, error) {
	c, err := t.find(id)
	if err != nil {
		return Call{}, err
	}
	call := c.describe()
	if call.RoundID == "" {
		return Call{}, &supervisor.NoLaneError{LaneID: laneID}
	}
	t.logger.Info("lane cancelled", "call", id, "lane", laneID, "reason", reason)
	return call, t.tree.CancelLane(ctx, supervisor.Session{Workdir: call.Workdir}, call.RunID, call.RoundID, laneID, reason)
}

// prune forgets what is beyond the bounds.
func (t *calls) prune() {
	var ended []Call
	for _, c := range t.list() {
		if call := c.describe(); call.State != StateRunning {
			ended = append(ended, call)
		}
	}
	slices.SortFunc(ended, func(a, b Call) int { // what goes first comes first
		if delivered := a.State == StateDelivered; delivered != (b.State == StateDelivered) {
			if delivered {
				return -1
			}
			return 1
		}
		return a.Ended.Compare(b.Ended)
	})
	excess := len(ended) - keptCalls
	for i, call := range ended {
		if i >= excess && t.now().Sub(call.Ended) <= keptFor {
			continue
		}
		if err := t.spool.remove(call.ID); err != nil {
			t.logger.Warn("the record of a call stays", "error", err)
			continue
		}
		t.mu.Lock()
		delete(t.byID, call.ID)
		t.mu.Unlock()
	}
}

// close refuses new calls from now on.
func (t *calls) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

func (t *calls) isClosing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closing
}

// acknowledged tells that no client that has its result may still acknowledge it.
func (t *calls) acknowledged() bool {
	return !slices.ContainsFunc(t.list(), (*call).expectsAck)
}

// cancelAll ends all calls that run.
func (t *calls) cancelAll(cause error) {
	for _, c := range t.list() {
		c.cancel(cause)
	}
}

// await waits until done holds, no longer than ctx. Done is asked again whenever a
// call ends or is acknowledged.
func (t *calls) await(ctx context.Context, done func() bool) error {
	for {
		t.mu.Lock()
		changed := t.changed
		t.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// atWork is the number of calls that have not ended.
func (t *calls) atWork() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

func (t *calls) broadcast() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// digest identifies what a request asks for. The environment is left out: it may
// differ when the same session asks again.
func digest(req CallRequest) string {
	var params bytes.Buffer
	_ = json.Compact(&params, req.Params) // it was read as JSON before
	sum := sha256.Sum256([]byte(strings.Join([]string{req.Tool, req.Session.ID, req.Session.Workdir, params.String()}, "\x00")))
	return hex.EncodeToString(sum[:])
}
