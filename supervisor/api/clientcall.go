package api

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"pilothouse/supervisor"
)

// returnPatience is how long a client whose daemon has gone waits for the next one: a
// service manager starts it again at once, a person does not.
const returnPatience = 3 * time.Second

// Refine runs one refine round as [supervisor.System.Refine] does. When ctx ends the
// call is cancelled and its result awaited. A daemon that dies is waited for, for a
// short time; a call that ended with it is a *LostCallError.
func (c *Client) Refine(ctx context.Context, req supervisor.RefineRequest, watch supervisor.Watch) (supervisor.RoundResult, error) {
	var result supervisor.RoundResult
	err := c.call(ctx, ToolRefine, req.Session, refineParams(req), watch, &result)
	return result, err
}

// AnalyzeRefs runs one analyze_refs round as [supervisor.System.AnalyzeRefs] does; see
// [Client.Refine].
func (c *Client) AnalyzeRefs(ctx context.Context, req supervisor.AnalyzeRequest, watch supervisor.Watch) (supervisor.RoundResult, error) {
	params := AnalyzeParams{Refs: req.Refs, Context: req.Context, Model: modelOf(req.Model), ResumeRoundID: req.ResumeRoundID, Limits: req.Limits}
	var result supervisor.RoundResult
	err := c.call(ctx, ToolAnalyzeRefs, req.Session, params, watch, &result)
	return result, err
}

// Plans does one action as [supervisor.System.Plans] does. The result object is JSON.
func (c *Client) Plans(ctx context.Context, session supervisor.Session, action supervisor.PlansAction) (any, error) {
	var result json.RawMessage
	err := c.call(ctx, ToolPlans, session, action, nil, &result)
	return result, err
}

// CancelLane ends one lane of a call as [supervisor.System.CancelLane] does; the call
// goes on with the others.
func (c *Client) CancelLane(ctx context.Context, callID, laneID, reason string) error {
	path := "/v1/calls/" + url.PathEscape(callID) + "/lanes/" + url.PathEscape(laneID) + "?reason=" + url.QueryEscape(reason)
	return c.do(ctx, http.MethodDelete, path, nil, new(Call))
}

// calling is a call on its way through the daemon.
type calling struct {
	*Client
	request CallRequest
	watch   supervisor.Watch
	next    int64 // number of the next event
	round   *Started
}

func (c *Client) call(ctx context.Context, tool string, session supervisor.Session, params any, watch supervisor.Watch, result any) error {
	data, err := encode(params)
	if err != nil {
		return fmt.Errorf("encode the parameters: %w", err)
	}
	k := &calling{Client: c, watch: watch, request: CallRequest{
		ID: "cli-" + strings.ToLower(rand.Text()), Tool: tool, Session: sessionOf(session), Params: data,
	}}
	// Only cancelling ends a call, so its requests outlive ctx.
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	last, err := k.last(ctx, lasting)
	if err != nil {
		return err
	}
	if err := k.acknowledge(lasting); err != nil {
		return err
	}
	if last.Problem != nil {
		return last.Problem
	}
	if err := json.Unmarshal(last.Result, result); err != nil {
		return fmt.Errorf("read the result of the call: %w", err)
	}
	return nil
}

// last follows the call to its last event, over the death of the daemon if need be.
// Posting the call again is safe: its id starts it once.
func (k *calling) last(ctx, lasting context.Context) (Event, error) {
	accepted := false
	for {
		stream, err := k.post(lasting)
		if err == nil {
			accepted = true
			last, broken := k.follow(ctx, lasting, stream)
			if last != nil {
				return *last, nil
			}
			err = broken
		}
		var problem *Problem
		if errors.As(err, &problem) {
			return Event{}, problem
		}
		if !accepted && !absent(err) && !brokenOff(err) {
			return Event{}, err
		}
		if !k.returned(lasting) {
			return Event{}, k.lost()
		}
	}
}

func (k *calling) lost() error {
	lost := &LostCallError{Call: k.request.ID}
	if k.round != nil {
		lost.RunID, lost.RoundID = k.round.RunID, k.round.RoundID
	}
	return lost
}

// returned waits until a daemon answers again.
func (k *calling) returned(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, returnPatience)
	defer cancel()
	for {
		if health, err := k.health(ctx); err == nil {
			return health.Protocol == Protocol
		}
		select {
		case <-time.After(returnPatience / 30):
		case <-ctx.Done():
			return false
		}
	}
}

func (k *calling) post(ctx context.Context) (io.ReadCloser, error) {
	response, err := k.send(ctx, http.MethodPost, "/v1/calls?from="+strconv.FormatInt(k.next, 10), k.request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// follow passes on events until the last. It returns nil when the stream breaks off.
func (k *calling) follow(ctx, lasting context.Context, stream io.ReadCloser) (*Event, error) {
	events, broken := make(chan Event), make(chan error, 1)
	done := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { broken <- readEvents(stream, events, done) })
	defer func() {
		_ = stream.Close() // it was only read
		close(done)
		reading.Wait()
	}()
	cancelled := ctx.Done()
	for {
		select {
		case e := <-events:
			k.next = e.Seq + 1
			if e.last() {
				return &e, nil
			}
			k.tell(e)
		case err := <-broken:
			return nil, err
		case <-cancelled:
			cancelled = nil
			reason := url.QueryEscape(fmt.Sprint(context.Cause(ctx)))
			// The call is known: it has been answered. What the daemon makes of the
			// request shows in the call's events.
			_ = k.do(lasting, http.MethodDelete, "/v1/calls/"+k.request.ID+"?reason="+reason, nil, new(Call))
		}
	}
}

// readEvents reads a stream until its end, which is never nil.
func readEvents(stream io.Reader, events chan<- Event, done <-chan struct{}) error {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return brokenOffError{err}
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read the events of the call: %w", err)
		}
		select {
		case events <- e:
		case <-done:
			return nil
		}
	}
}

func (k *calling) tell(e Event) {
	if e.Started != nil {
		k.round = e.Started
	}
	if k.watch == nil {
		return
	}
	switch {
	case e.Started != nil:
		k.watch(e.Started.watched())
	case e.Progress != nil:
		k.watch(e.Progress.watched())
	case e.Lane != nil:
		k.watch(supervisor.LaneEnded{Lane: *e.Lane})
	}
}

// acknowledge claims the result, so that nobody else is given it. A daemon that cannot
// be reached any more is no reason to withhold what it sent.
func (k *calling) acknowledge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	err := k.do(ctx, http.MethodPost, "/v1/calls/"+k.request.ID+"/ack", nil, new(Call))
	if delivered, ok := errors.AsType[*DeliveredError](err); ok {
		return delivered
	}
	return nil
}

// brokenOffError tells that a stream ended before its last event.
type brokenOffError struct{ error }

func (e brokenOffError) Unwrap() error { return e.error }

// brokenOff tells that a connection ended in the middle.
func brokenOff(err error) bool {
	_, ok := errors.AsType[brokenOffError](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// inject puts the trace of ctx into a request.
func inject(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}
