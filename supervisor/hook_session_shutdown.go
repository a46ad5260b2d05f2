package supervisor

import (
	"context"
	"errors"
	"time"
)

// SessionShutdownEvent is a session that ends, or that Pi puts aside for another.
type SessionShutdownEvent struct {
	Reason string `json:"reason"` // quit, reload, new, resume or fork
}

// releasePatience is how long the end of a session waits for what it gives back.
const releasePatience = time.Second

// sessionShutdown gives back what a session holds. Only the end of Pi ends plan mode: a
// session that was put aside can be gone back to, and a reload is none at all. What is
// at work may take long; the session need not wait for that.
func (s *System) sessionShutdown(ctx context.Context, session Session, e SessionShutdownEvent) (Reply, error) {
	if e.Reason == "reload" {
		return Reply{}, nil
	}
	s.interviews.take(session.ID)
	var forgotten error
	if e.Reason == "quit" {
		forgotten = s.planModes.end(session.ID)
	}
	return Reply{}, errors.Join(forgotten, s.endSoon(ctx, session.ID))
}
