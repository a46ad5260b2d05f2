package supervisor

import "context"

// SessionCompactFailedEvent is a compaction that Pi has not done. Then is the word of the
// action that asked for it, and with the message alone in the report on that.
type SessionCompactFailedEvent struct {
	ErrorMessage string `json:"errorMessage"`
	Aborted      bool   `json:"aborted"`
	Then         string `json:"then"`
}

func (s *System) sessionCompactFailed(ctx context.Context, session Session, e SessionCompactFailedEvent) (Reply, error) {
	if reply, ours := s.prePlanEnded(ctx, session, e.Then, reasonOf(e.ErrorMessage)); ours {
		return reply, nil
	}
	return s.compactionOver(ctx, session, compactionOver{failure: e.ErrorMessage, aborted: e.Aborted})
}
