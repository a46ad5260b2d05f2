package supervisor

import (
	"context"
	"encoding/json"
)

// SessionStartEvent is a session that starts, or one whose daemon has changed. Entries
// are those on the current branch that an extension has added, oldest first; nil when
// the session does not tell.
type SessionStartEvent struct {
	Reason  string         `json:"reason"`
	Entries []SessionEntry `json:"entries"`
}

// SessionEntry is an entry of a session that the model does not see.
type SessionEntry struct {
	CustomType string          `json:"customType"`
	Data       json.RawMessage `json:"data"`
}

func (s *System) sessionStart(ctx context.Context, session Session, e SessionStartEvent) (Reply, error) {
	s.interviews.take(session.ID)
	return contribute(ctx, session, e, s.restoreBinding, s.showPlanMode, s.executionRestored)
}

// showPlanMode reminds a session of its plan mode, which may be older than this process.
func (s *System) showPlanMode(_ context.Context, session Session, _ SessionStartEvent) (Reply, error) {
	mode, err := s.planModes.get(session.ID)
	if err != nil || !mode.Active {
		return Reply{}, err
	}
	return Reply{Actions: []Action{
		planStatus(mode), notice(LevelInfo, "Plan mode is still on in this session. /plan off leaves it."),
	}}, nil
}
