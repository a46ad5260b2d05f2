package supervisor

import (
	"context"

	"pilothouse/supervisor/guard"
)

// UserBashEvent is a command that the user typed for the shell.
type UserBashEvent struct {
	Command string `json:"command"`
}

// userBash holds the user's own commands to plan mode, too, so that none changes the
// workspace unawares. The write guard of a run is for the agent alone.
func (s *System) userBash(ctx context.Context, session Session, e UserBashEvent) (Reply, error) {
	g, err := s.gate(ctx, session)
	if err != nil || !g.planMode {
		return Reply{}, err
	}
	g.policy.WaysOut = "Plan mode is on in this session; leave it with /plan off and run the command again."
	verdict := g.policy.Tool(guard.ToolCall{Name: "bash", Args: map[string]any{"command": e.Command}})
	return s.verdict(session, verdict, denial{Subject: subjectUser}), nil
}
