package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel/trace"

	"pilothouse/store"
)

// flow is the straight-line code of a command or a tool that may ask the user. Args is
// a JSON string for a command, what follows its name, and the object of the parameters
// for a tool. Its ctx ends with the conversation; what has to last must be durable
// before the flow asks.
type flow func(ctx context.Context, s *System, session Session, ui UI, args json.RawMessage) (Reply, error)

// commands are the flows behind the slash commands of a session.
var commands = map[string]flow{
	"config-pi-plans":         configPlans,
	"plan":                    planCommand,
	"plans":                   plansCommand,
	"plans-abandon":           abandonPlans,
	"plans-autocomplete-stop": stopAutoCompleteCommand,
	"plans-execute":           executePlanCommand,
	"plans-stop":              stopPlans,
	"resume-plans":            resumePlans,
	"update-plan":             updatePlan,
}

// conversationTools are the flows behind the tools that may ask.
var conversationTools = map[string]flow{
	"ask_choice":     askChoice,
	"execute_plan":   executePlan,
	"exit_plan_mode": exitPlanMode,
}

// The kinds of conversations.
const (
	KindCommand = "command"
	KindTool    = "tool"
)

// flowOf finds what a session asks for.
func flowOf(kind, name string) (flow, error) {
	var run flow
	switch kind {
	case KindCommand:
		run = commands[name]
	case KindTool:
		run = conversationTools[name]
	default:
		return nil, inputErrorf("there is no kind %.80q of conversation; there are %s and %s", kind, KindCommand, KindTool)
	}
	if run == nil {
		return nil, inputErrorf("there is no %s %.80q; the extension and the daemon may be of different versions: install both anew", kind, name)
	}
	return run, nil
}

// checkSession refuses a session that does not say which it is: state kept under a
// shared default would be that of another session.
func checkSession(session Session) error {
	if session.ID == "" {
		return inputErrorf("the session has no id; only a Pi session can do this")
	}
	if !store.ValidID(session.ID) {
		return inputErrorf("the session id %.80q is no id: up to 128 letters, digits, dots, dashes and underscores, the first a letter or digit", session.ID)
	}
	return nil
}

// Converse starts a command or a tool that may ask the user, and returns its first
// reply. One with a dialog leaves the conversation open for [System.Answer]; any other
// is its end. When ctx ends before the reply, so does the conversation. One with an
// open dialog stays until it is answered or ended, its session ends, the system is
// closed or a day has passed. It does not outlive the process.
func (s *System) Converse(ctx context.Context, session Session, screen Screen, kind, name string, args json.RawMessage) (Reply, error) {
	run, err := flowOf(kind, name)
	if err != nil {
		return Reply{}, err
	}
	if err := checkSession(session); err != nil {
		return Reply{}, err
	}
	s.processes.seen(session)
	talk := func(c *conversation) (reply Reply, err error) {
		defer func() {
			if reason := recover(); reason != nil {
				s.logger.Error("conversation panicked", "kind", kind, "name", name, "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
				err = fmt.Errorf("%s failed inside: %v", name, reason)
			}
		}()
		c.idle = screen.Idle
		traced := trace.ContextWithSpanContext(c.ctx, trace.SpanContextFromContext(ctx))
		return run(traced, s, session, panel{c, screen}, args)
	}
	c, err := s.conversations.begin(session.ID, talk)
	if err != nil {
		return Reply{}, err
	}
	return c.next(ctx)
}

// Answer answers the open dialog of a conversation and returns the next reply, as
// [System.Converse] does. A session, unless it is "", must be that of the conversation.
// Errors: *NoConversationError, *ConversationBusyError, *InputError for an answer that
// does not fit; the dialog is still open after that.
func (s *System) Answer(ctx context.Context, sessionID, conversation string, answer Answer) (Reply, error) {
	c, err := s.conversations.find(conversation)
	if err != nil {
		return Reply{}, err
	}
	if sessionID != "" && sessionID != c.session {
		return Reply{}, &NoConversationError{ID: conversation}
	}
	if err := c.answer(answer); err != nil {
		return Reply{}, err
	}
	return c.next(ctx)
}

// EndConversation ends a conversation that its user has aborted, and returns when it
// has ended.
func (s *System) EndConversation(ctx context.Context, conversation string) error {
	c, err := s.conversations.find(conversation)
	if err != nil {
		return err
	}
	c.cancel(&NoConversationError{c.id, "it was aborted"})
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of the conversation: %w", context.Cause(ctx))
	}
}

// Conversing tells whether any conversation is open.
func (s *System) Conversing() bool { return s.conversations.count() > 0 }

// NoConversationError tells that a conversation is over, or that there never was one.
type NoConversationError struct{ ID, Reason string }

func (e *NoConversationError) Error() string {
	if e.Reason != "" {
		return "the conversation is over: " + e.Reason
	}
	return fmt.Sprintf("there is no conversation %.80s any more; start the command again", e.ID)
}

// ConversationBusyError refuses an answer that no open dialog waits for.
type ConversationBusyError struct{ ID string }

func (e *ConversationBusyError) Error() string {
	return fmt.Sprintf("conversation %.80s does not wait for this answer; the dialog was answered before", e.ID)
}
