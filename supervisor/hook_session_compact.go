package supervisor

import (
	"context"
)

// SessionCompactEvent is a compaction that Pi has done. Then is the word of the action
// that asked for it, and alone in the report on that.
type SessionCompactEvent struct {
	Reason        string `json:"reason"` // manual, threshold or overflow
	WillRetry     bool   `json:"willRetry"`
	FromExtension bool   `json:"fromExtension"` // the summary was ours
	PiVersion     string `json:"piVersion"`     // "" when the session does not tell
	Then          string `json:"then"`
}

func (s *System) sessionCompact(ctx context.Context, session Session, e SessionCompactEvent) (Reply, error) {
	if reply, ours := s.prePlanEnded(ctx, session, e.Then, ""); ours {
		return reply, nil
	}
	return s.compactionOver(ctx, session, compactionOver{done: true, event: e})
}

// compactionOver passes a report on to the run that the session works on.
func (s *System) compactionOver(ctx context.Context, session Session, over compactionOver) (Reply, error) {
	s.executions.compacting(session.ID, false)
	at, err := s.compactionPhase(ctx, session)
	if err != nil || at == nil {
		return Reply{}, err
	}
	over.phase, over.config = at.phase.Kind, s.compactionConfig(ctx, at.run.Root)
	return s.askCompactor(ctx, session, at.run, over)
}
