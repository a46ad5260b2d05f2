package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
)

// hook answers what happens in a Pi session.
type hook func(ctx context.Context, s *System, session Session, event json.RawMessage) (Reply, error)

// hooks are the answers by the name that Pi gives the event. Each is in a file of its
// own, with the keys of the event that it needs.
var hooks = map[string]hook{
	"session_start":      hookOf((*System).sessionStart),
	"session_shutdown":   hookOf((*System).sessionShutdown),
	"input":              hookOf((*System).input),
	"before_agent_start": hookOf((*System).beforeAgentStart),
	"tool_call":          hookOf((*System).toolCall),
	"tool_result":        hookOf((*System).toolResult),
	"user_bash":          hookOf((*System).userBash),
	"turn_end":           hookOf((*System).turnEnd),
	"agent_start":        hookOf((*System).agentStart),
	"agent_settled":      hookOf((*System).agentSettled),

	"session_before_compact": sessionBeforeCompact,
	"session_compact":        hookOf((*System).sessionCompact),
	"session_compact_failed": hookOf((*System).sessionCompactFailed),
}

// hookOf is a hook whose event has the keys of E. Others are passed over: Pi's events
// gain keys from version to version.
func hookOf[E any](handle func(*System, context.Context, Session, E) (Reply, error)) hook {
	return func(ctx context.Context, s *System, session Session, event json.RawMessage) (Reply, error) {
		var e E
		if len(event) > 0 {
			if err := json.Unmarshal(event, &e); err != nil {
				return Reply{}, inputErrorf("the event is not what Pi sends: %v", err)
			}
		}
		return handle(s, ctx, session, e)
	}
}

// contribute asks those who have to say something to a hook, in this order, and merges
// what they reply (see Reply.merge). The first error is that of the hook.
func contribute[E any](ctx context.Context, session Session, e E, contributors ...func(context.Context, Session, E) (Reply, error)) (Reply, error) {
	var merged Reply
	for _, contributor := range contributors {
		reply, err := contributor(ctx, session, e)
		if err != nil {
			return Reply{}, err
		}
		merged.merge(reply)
	}
	return merged, nil
}

// HookNames are the names of the hooks, sorted.
func HookNames() []string { return slices.Sorted(maps.Keys(hooks)) }

// Hook answers a hook of a Pi session. An unknown name, an event of another shape and
// a session without an id are an *InputError. Whoever asks before something happens
// must not let it happen on an error while its session may be in plan mode.
func (s *System) Hook(ctx context.Context, session Session, name string, event json.RawMessage) (reply Reply, err error) {
	handle := hooks[name]
	if handle == nil {
		return Reply{}, inputErrorf("there is no hook %.80q; there are %s", name, strings.Join(HookNames(), ", "))
	}
	if err := checkSession(session); err != nil {
		return Reply{}, err
	}
	s.processes.seen(session)
	began := time.Now()
	ctx, span := s.tracer.Start(ctx, "hook "+name)
	defer func() {
		if reason := recover(); reason != nil {
			s.logger.Error("hook panicked", "hook", name, "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
			reply, err = Reply{}, fmt.Errorf("the hook %s failed inside: %v", name, reason)
		}
		outcome := hookOutcome(reply, err)
		span.SetAttributes(attribute.String("pilothouse.hook.outcome", outcome))
		if outcome == hookFailed {
			span.SetStatus(codes.Error, outcome)
		}
		s.metrics.hooked(name, outcome, time.Since(began), span.SpanContext())
		span.End()
	}()
	return handle(ctx, s, session, event)
}

// The values of the label outcome.
const (
	hookOK      = "ok"
	hookBlocked = "blocked"
	hookRefused = "refused" // for its input
	hookFailed  = "failed"
)

func hookOutcome(reply Reply, err error) string {
	var input *InputError
	switch {
	case errors.As(err, &input):
		return hookRefused
	case err != nil:
		return hookFailed
	case reply.Block != nil:
		return hookBlocked
	}
	return hookOK
}
