package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Health says who the daemon is. Errors: ErrNoDaemon, *PeerError, *SilentError.
func (c *Client) Health(ctx context.Context) (Health, error) { return c.health(ctx) }

// Calls lists the calls that run and those whose results nobody has taken yet, oldest
// first.
func (c *Client) Calls(ctx context.Context) ([]Call, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	var listed Calls
	err := c.get(ctx, "/v1/calls", &listed)
	return listed.Calls, err
}

// Lanes lists the lanes of the calls that [Client.Calls] lists, those that have ended
// included.
func (c *Client) Lanes(ctx context.Context) ([]Lane, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	var listed Lanes
	err := c.get(ctx, "/v1/lanes?ended=1", &listed)
	return listed.Lanes, err
}

// CancelCall ends a call early, in the orderly way: it still comes to its result. The
// reason is told in the results of its lanes. A call that has ended stays as it is.
func (c *Client) CancelCall(ctx context.Context, call, reason string) (Call, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	var cancelled Call
	err := c.do(ctx, http.MethodDelete, "/v1/calls/"+url.PathEscape(call)+"?reason="+url.QueryEscape(reason), nil, &cancelled)
	return cancelled, err
}

// Transcript is what the transcript of a lane has from an offset in bytes on, as lines
// of [lanes.TranscriptEntry]. The caller closes it.
func (c *Client) Transcript(ctx context.Context, call, lane string, from int64) (io.ReadCloser, error) {
	response, err := c.send(ctx, http.MethodGet,
		"/v1/lanes/"+url.PathEscape(call)+"/"+url.PathEscape(lane)+"/transcript?from="+strconv.FormatInt(from, 10), nil)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// Events are what happens in all calls from the moment of [Client.Events] on. What was
// superseded before it was read is left out, and so are answers.
type Events struct {
	body  io.ReadCloser
	lines *bufio.Reader
}

// Events follows all calls. What is listed after it has returned and what it reads
// leave no gap between them. The caller closes it; it ends with ctx.
func (c *Client) Events(ctx context.Context) (*Events, error) {
	response, err := c.send(ctx, http.MethodGet, "/v1/events", nil) //nolint:bodyclose // Events.Close closes it
	if err != nil {
		return nil, err
	}
	return &Events{response.Body, bufio.NewReader(response.Body)}, nil
}

// Close ends the stream.
func (e *Events) Close() error { return e.body.Close() }

// EventReset is the type of an [Event] that stands for some that are not to be had any
// more: what is listed has to be read again.
const EventReset = "reset"

// Next waits for the next event. Any error means that the daemon has gone.
func (e *Events) Next() (Event, error) {
	var event Event
	var kind string
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil {
			return event, brokenOffError{err}
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "event":
			kind = value
		case "data":
			if err := json.Unmarshal([]byte(value), &event); err != nil {
				return event, fmt.Errorf("read the events of the daemon: %w", err)
			}
		case "":
			event.Type = kind
			return event, nil
		}
	}
}
