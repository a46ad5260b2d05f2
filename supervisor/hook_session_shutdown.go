package supervisor

import (
	"context"
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
	ended := make(chan error, 1)
	lasting := context.WithoutCancel(ctx)
	if !s.conversations.aside(func() { ended <- s.EndSession(lasting, session.ID) }) {
		return Reply{}, &ClosedError{}
	}
	if e.Reason == "quit" {
		if err := s.planModes.end(session.ID); err != nil {
			return Reply{}, err
		}
	}
	patience := time.NewTimer(releasePatience)
	defer patience.Stop()
	select {
	case err := <-ended:
		return Reply{}, err
	case <-patience.C:
	case <-ctx.Done():
	}
	return Reply{}, nil
}
