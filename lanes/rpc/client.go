// Package rpc speaks to a `pi --mode rpc` child, one that is talked to for as long as
// it lives (Pi fact §10): commands go in as JSON lines, responses and events come out
// as one stream. It knows nothing of processes.
package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"pilothouse/lanes/pijson"
)

// ErrGone tells that the child ended, or closed its output, before it answered.
var ErrGone = errors.New("pi ended before it answered")

// RefusedError is a command that Pi did not accept.
type RefusedError struct {
	Command string
	Reason  string // in Pi's words
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("pi refused the command %s: %s", e.Command, e.Reason)
}

// Client sends commands and finds their responses in the stream. It is safe for
// concurrent use. Whoever reads the stream hands every event to Take and calls Close
// at its end.
type Client struct {
	say    func(line []byte) error
	answer func(pijson.Dialog) Answer

	mu      sync.Mutex
	last    int                              // number of the last command
	waiting map[string]chan *pijson.Response // by id
	closed  bool
}

// Answer is what becomes of a dialog. The zero value dismisses it.
type Answer struct {
	// Value is the option, or the text, "" for none.
	Value string
	// Confirmed answers a confirm.
	Confirmed bool
	// Open leaves the dialog without an answer: whoever reads the stream ends the child.
	Open bool
}

// New returns a client whose lines are written by say, which must not block, and whose
// dialogs are answered by answer; nil dismisses all.
func New(say func(line []byte) error, answer func(pijson.Dialog) Answer) *Client {
	if answer == nil {
		answer = func(pijson.Dialog) Answer { return Answer{} }
	}
	return &Client{say: say, answer: answer, waiting: map[string]chan *pijson.Response{}}
}

// Prompt gives the agent, which is at rest, a message, and returns when Pi has accepted
// it; what becomes of it is told by events. Errors: *RefusedError, ErrGone, those of
// say, and that of ctx.
func (c *Client) Prompt(ctx context.Context, message string) error {
	return c.command(ctx, "prompt", map[string]any{"message": message})
}

// Steer gives the agent a message while it works: it reads it before its next call of
// the model. Errors as of [Client.Prompt].
func (c *Client) Steer(ctx context.Context, message string) error {
	return c.command(ctx, "steer", map[string]any{"message": message})
}

// Abort ends what the agent does; it comes to rest, aborted. Errors as of
// [Client.Prompt].
func (c *Client) Abort(ctx context.Context) error { return c.command(ctx, "abort", nil) }

func (c *Client) command(ctx context.Context, name string, fields map[string]any) error {
	id, answer, err := c.expect()
	if err != nil {
		return err
	}
	defer c.forget(id)
	command := map[string]any{"id": id, "type": name}
	for key, value := range fields {
		command[key] = value
	}
	if err := c.send(command); err != nil {
		return err
	}
	select {
	case response := <-answer:
		switch {
		case response == nil:
			return ErrGone
		case !response.Success:
			return &RefusedError{Command: name, Reason: response.Error}
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for pi to accept the command %s: %w", name, context.Cause(ctx))
	}
}

// expect makes the id of a command and the place of its response.
func (c *Client) expect() (string, chan *pijson.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return "", nil, ErrGone
	}
	c.last++
	id := strconv.Itoa(c.last)
	answer := make(chan *pijson.Response, 1)
	c.waiting[id] = answer
	return id, answer, nil
}

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

func (c *Client) send(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode a command for pi: %w", err)
	}
	return c.say(append(line, '\n'))
}

// Take takes in an event of the stream. A response goes to whoever waits for it, a dialog
// is answered. It is true when the event was one of these, and so is no matter of the
// agent's work.
func (c *Client) Take(e pijson.Event) bool {
	switch e.Kind {
	case pijson.KindResponse:
		if e.Response != nil { // nil when its line was too long
			c.deliver(e.Response)
		}
	case pijson.KindDialog:
		if e.Dialog != nil && e.Dialog.NeedsAnswer() {
			c.respond(*e.Dialog)
		}
	default:
		return false
	}
	return true
}

func (c *Client) respond(dialog pijson.Dialog) {
	answer := c.answer(dialog)
	response := map[string]any{"type": "extension_ui_response", "id": dialog.ID}
	switch {
	case answer.Open:
		return
	case answer.Confirmed:
		response["confirmed"] = true
	case answer.Value != "":
		response["value"] = answer.Value
	default:
		response["cancelled"] = true
	}
	_ = c.send(response) // a child that takes no more input needs no answer either
}

// deliver finds the command of a response. One without an id answers a line that Pi
// could not read, which none of ours is, or, of the older generation, a command that it
// does not know; then the oldest command is the one.
func (c *Client) deliver(response *pijson.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := response.ID
	if id == "" && !response.Success {
		oldest := 0
		for waiting := range c.waiting {
			if n, err := strconv.Atoi(waiting); err == nil && (oldest == 0 || n < oldest) {
				oldest = n
			}
		}
		id = strconv.Itoa(oldest)
	}
	if answer := c.waiting[id]; answer != nil {
		delete(c.waiting, id)
		answer <- response
	}
}

// Close ends the commands that wait for a response, with ErrGone.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for id, answer := range c.waiting {
		delete(c.waiting, id)
		answer <- nil
	}
}
