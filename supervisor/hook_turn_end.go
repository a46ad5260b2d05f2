package supervisor

import "context"

// TurnEndEvent is a message of the agent, with the tools that it has called, at its end.
type TurnEndEvent struct {
	// Text are the text blocks of the message, one after another.
	Text       string     `json:"text"`
	StopReason string     `json:"stopReason"`
	Usage      *TurnUsage `json:"usage"` // nil when the message has none
	HasUI      bool       `json:"hasUI"` // somebody sits before the session
}

// TurnUsage counts the tokens of a turn.
type TurnUsage struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// turnEnd takes what the agent reports into account.
func (s *System) turnEnd(ctx context.Context, session Session, e TurnEndEvent) (Reply, error) {
	reply, err := s.executionTurn(ctx, session, e)
	reply.Actions = append(reply.Actions, s.autoCompleteFollowUp(session, e.StopReason != "toolUse")...)
	return reply, err
}
