package supervisor

import (
	"context"
	"encoding/json"
	"slices"
)

// SessionStartEvent is a session that starts, one that stands elsewhere in its history
// now, or one whose daemon has changed.
type SessionStartEvent struct {
	Reason string `json:"reason"` // Pi's, or tree
	// Entries are those on the current branch that an extension has added, oldest first;
	// nil when the session does not tell.
	Entries []SessionEntry `json:"entries"`
	// Said are the messages of the agent on the branch since the last snapshot of an
	// execution.
	Said  []string `json:"said"`
	HasUI bool     `json:"hasUI"` // somebody sits before the session
}

// SessionEntry is an entry of a session that the model does not see.
type SessionEntry struct {
	CustomType string          `json:"customType"`
	Data       json.RawMessage `json:"data"`
}

func (s *System) sessionStart(ctx context.Context, session Session, e SessionStartEvent) (Reply, error) {
	s.interviews.take(session.ID)
	return contribute(ctx, session, e, s.restoreBinding, s.restorePlanMode, s.executionRestored)
}

// last is the last entry of one of the types, nil for none.
func (e SessionStartEvent) last(customTypes ...string) *SessionEntry {
	for i := len(e.Entries) - 1; i >= 0; i-- {
		if slices.Contains(customTypes, e.Entries[i].CustomType) {
			return &e.Entries[i]
		}
	}
	return nil
}
