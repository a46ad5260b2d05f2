package supervisor

import "context"

// AgentSettledEvent is the agent at rest.
type AgentSettledEvent struct {
	Aborted         bool `json:"aborted"`
	Idle            bool `json:"idle"`
	PendingMessages bool `json:"pendingMessages"`
	HasUI           bool `json:"hasUI"` // somebody sits before the session
	// WakeFailed says why the message that was to wake the agent up could not be sent,
	// when this is told of a rest for the second time.
	WakeFailed string `json:"wakeFailed"`
}

// agentSettled brings the session up to date and wakes the agent up while its plan has
// checks that have not passed.
func (s *System) agentSettled(ctx context.Context, session Session, e AgentSettledEvent) (Reply, error) {
	s.choices.rested(session.ID)
	return s.executionRested(ctx, session, e)
}
