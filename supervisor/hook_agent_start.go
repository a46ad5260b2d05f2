package supervisor

import "context"

// AgentStartEvent is the agent beginning to work.
type AgentStartEvent struct{}

// agentStart makes the agent's next rest count.
func (s *System) agentStart(ctx context.Context, session Session, _ AgentStartEvent) (Reply, error) {
	r, _, release, err := s.executionOf(ctx, session)
	if err != nil || r == nil {
		return Reply{}, err
	}
	defer release()
	r.wait.Began()
	r.compacting = false // whatever became of it, the agent has gone on
	return Reply{}, nil
}
