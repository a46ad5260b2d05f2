package supervisor

import (
	"context"
	"errors"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// executionContext is what an agent that carries a plan out is told before it begins.
func (s *System) executionContext(ctx context.Context, session Session, _ BeforeAgentStartEvent) (Reply, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil || r == nil {
		return Reply{}, err
	}
	defer release()
	return Reply{
		Actions:  r.drain(cp),
		Messages: []Message{{CustomType: "pi-plans-exec-context", Content: r.context(s, cp)}},
	}, nil
}

// executionRestored takes an execution up in a session that begins: the session has its
// snapshot at once, so that no older entry counts.
func (s *System) executionRestored(ctx context.Context, session Session, _ SessionStartEvent) (Reply, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if r == nil {
		return Reply{Actions: s.idleStatus(ctx, session)}, nil
	}
	defer release()
	return Reply{Actions: append(r.drain(cp), r.status(s.now(), cp))}, nil
}

func (r *running) context(s *System, cp store.Checkpoint) string {
	return r.state(cp).Context(execution.Brief{PlanPath: r.planPath, Graph: graphOf(r.run.Root), Reverify: r.stale})
}

// graphOf reads whether the workspace wants the code graph used, each time anew.
func graphOf(root store.Root) execution.Graph {
	config, err := root.LoadConfig()
	switch {
	case errors.Is(err, store.ErrNoState):
		return execution.GraphOff
	case err != nil:
		return execution.GraphUnreadable
	case config.GraphEnabled != nil && *config.GraphEnabled:
		return execution.GraphOn
	}
	return execution.GraphOff
}
