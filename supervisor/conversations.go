package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// conversationIdle is how long a dialog may stay open without an answer.
const conversationIdle = 24 * time.Hour

// conversations are those that are open. They own the goroutines of the flows.
type conversations struct {
	work sync.WaitGroup

	mu     sync.Mutex
	open   map[string]*conversation
	closed bool
}

func newConversations() *conversations {
	return &conversations{open: map[string]*conversation{}}
}

// begin starts a conversation of a session.
func (t *conversations) begin(session string, talk func(*conversation) (Reply, error)) (*conversation, error) {
	c := &conversation{
		id: "talk-" + strings.ToLower(rand.Text()), session: session,
		out: make(chan Reply), in: make(chan Answer, 1), done: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		c.cancel(nil)
		return nil, &ClosedError{}
	}
	t.open[c.id] = c
	t.work.Go(func() {
		defer c.cancel(nil)
		reply, err := talk(c)
		if cause := context.Cause(c.ctx); err != nil && cause != nil {
			err = cause
		}
		c.reply, c.err = reply, err
		t.mu.Lock()
		delete(t.open, c.id)
		t.mu.Unlock()
		close(c.done)
	})
	return c, nil
}

// aside runs work that a session does not wait for, unless the system is closed.
func (t *conversations) aside(work func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.work.Go(work)
	return true
}

func (t *conversations) find(id string) (*conversation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.open[id]; c != nil {
		return c, nil
	}
	return nil, &NoConversationError{ID: id}
}

func (t *conversations) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// endSession ends the conversations of a session and returns when they have ended, or
// with ctx.
func (t *conversations) endSession(ctx context.Context, session string) {
	t.end(ctx, func(c *conversation) bool { return c.session == session }, "its session has ended")
}

func (t *conversations) end(ctx context.Context, which func(*conversation) bool, reason string) {
	t.mu.Lock()
	var ending []*conversation
	for _, c := range t.open {
		if which(c) {
			ending = append(ending, c)
		}
	}
	t.mu.Unlock()
	for _, c := range ending {
		c.cancel(&NoConversationError{c.id, reason})
	}
	for _, c := range ending {
		select {
		case <-c.done:
		case <-ctx.Done():
		}
	}
}

// close ends all conversations and refuses new ones. It returns with ctx at the latest;
// wait has to follow.
func (t *conversations) close(ctx context.Context) {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end(ctx, func(*conversation) bool { return true }, "pilothouse is shutting down")
}

// wait returns when all conversations have ended. Close comes before.
func (t *conversations) wait() { t.work.Wait() }

// conversation is a flow at work or the dialog that it waits for.
type conversation struct {
	id, session string
	ctx         context.Context
	cancel      context.CancelCauseFunc
	step        int         // of the flow alone, as is idle
	idle        bool        // whether the agent is at rest, as far as was told
	out         chan Reply  // dialogs, to whoever waits for the next reply
	in          chan Answer // with the step of its dialog

	mu   sync.Mutex
	open *Dialog // that waits for an answer, nil while the flow works

	done  chan struct{} // closed at the end, when reply and err are set
	reply Reply
	err   error
}

// next waits for what the flow says next. An asker that leaves ends the conversation:
// nobody else would learn what it has missed.
func (c *conversation) next(ctx context.Context) (Reply, error) {
	select {
	case reply := <-c.out:
		c.mu.Lock()
		c.open = reply.Dialog
		c.mu.Unlock()
		return reply, nil
	case <-c.done:
		return c.reply, c.err
	case <-ctx.Done():
		c.cancel(&NoConversationError{c.id, "the session did not wait for it"})
		return Reply{}, fmt.Errorf("wait for the conversation: %w", context.Cause(ctx))
	}
}

// answer closes the open dialog with an answer. Of several at once one succeeds.
func (c *conversation) answer(a Answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		return &ConversationBusyError{c.id}
	}
	if err := a.check(*c.open); err != nil {
		return err
	}
	a.Step, c.open = c.open.Step, nil
	select {
	case c.in <- a:
	case <-c.done: // the flow gave the dialog up, and the next reply tells how it ended
	}
	return nil
}

// ask shows a dialog and waits for its answer. The flow calls it.
func (c *conversation) ask(ctx context.Context, reply Reply) (Answer, error) {
	c.step++
	reply.Dialog.Conversation, reply.Dialog.Step = c.id, c.step
	select {
	case c.out <- reply:
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
	}
	unanswered := errors.New("nobody answered the dialog")
	ctx, stop := context.WithTimeoutCause(ctx, conversationIdle, unanswered)
	defer stop()
	for {
		select {
		case a := <-c.in:
			if a.Step != c.step { // to a dialog that the flow has given up
				continue
			}
			if a.Idle != nil {
				c.idle = *a.Idle
			}
			return a, nil
		case <-ctx.Done():
		}
		if errors.Is(context.Cause(ctx), unanswered) {
			c.cancel(&NoConversationError{c.id, unanswered.Error()})
		}
		return Answer{}, context.Cause(ctx)
	}
}
