package supervisor

import (
	"context"

	"pilothouse/supervisor/guard"
)

// ToolCallEvent is a tool about to run, also one that another tool calls. SideEffects is
// what the tool declares: none, workspace, external, or nothing.
type ToolCallEvent struct {
	ToolName    string         `json:"toolName"`
	ToolCallID  string         `json:"toolCallId"`
	Input       map[string]any `json:"input"`
	SideEffects string         `json:"sideEffects"`
}

// toolCall lets a tool run, or names what stands in its way.
func (s *System) toolCall(ctx context.Context, session Session, e ToolCallEvent) (Reply, error) {
	g, err := s.gate(ctx, session)
	if err != nil || g.open() {
		return Reply{}, err
	}
	verdict := g.tool(guard.ToolCall{Name: e.ToolName, SideEffect: guard.SideEffect(e.SideEffects), Args: e.Input})
	return s.verdict(session, verdict, denial{Subject: subjectTool, Tool: e.ToolName, Call: e.ToolCallID}), nil
}
