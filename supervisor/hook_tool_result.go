package supervisor

import (
	"context"
	"encoding/json"
)

// ToolResultEvent is a tool that has ended.
type ToolResultEvent struct {
	ToolName   string          `json:"toolName"`
	ToolCallID string          `json:"toolCallId"`
	Input      map[string]any  `json:"input"`
	Details    json.RawMessage `json:"details"`
	IsError    bool            `json:"isError"`
}

func (s *System) toolResult(ctx context.Context, session Session, e ToolResultEvent) (Reply, error) {
	if e.IsError {
		return Reply{}, nil
	}
	return contribute(ctx, session, e, s.noteRunStart, s.notePlanWritten, s.prePlanCompaction)
}
