package supervisor

import "context"

// BeforeAgentStartEvent is a turn about to start.
type BeforeAgentStartEvent struct {
	Prompt string `json:"prompt"`
}

func (s *System) beforeAgentStart(ctx context.Context, session Session, e BeforeAgentStartEvent) (Reply, error) {
	return contribute(ctx, session, e, s.guidePlanning, s.interview, s.executionContext)
}
