package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"pilothouse/store"
)

// sessionProcesses are the processes that Pi sessions live in, as far as they were seen. A
// session that ends in order says so; one that was killed is known by its process.
type sessionProcesses struct {
	mu sync.Mutex
	of map[string]store.Process // by session id
}

// seen notes the process that asks in the name of a session.
func (p *sessionProcesses) seen(session Session) {
	if session.PID == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]store.Process{}
	}
	if p.of[session.ID].PID != session.PID {
		p.of[session.ID] = store.ProcessOf(session.PID)
	}
}

// gone tells whether the process of a session has ended for certain.
func (p *sessionProcesses) gone(session string) bool {
	p.mu.Lock()
	process, known := p.of[session]
	p.mu.Unlock()
	return known && process.Gone()
}

func (p *sessionProcesses) end(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, session)
}

// freed tells whether a run was refused in favour of a session whose Pi is gone without a
// word. That session has been ended then, so that another attempt may get the run; what
// is still at work for it goes on, and keeps it.
func (s *System) freed(ctx context.Context, refusal error) bool {
	var owned *store.OwnedError
	if !errors.As(refusal, &owned) || owned.Reason != store.OwnedBySession || !s.processes.gone(owned.SessionID) {
		return false
	}
	s.logger.Info("the process of a session is gone; its runs are given back", "session", owned.SessionID)
	return s.endSoon(ctx, owned.SessionID) == nil
}

// endSoon ends a session, and does not wait long for what is at work for it. Errors:
// *ClosedError, those of [System.EndSession].
func (s *System) endSoon(ctx context.Context, sessionID string) error {
	ended := make(chan error, 1)
	lasting := context.WithoutCancel(ctx)
	if !s.conversations.aside(func() { ended <- s.EndSession(lasting, sessionID) }) {
		return &ClosedError{}
	}
	patience := time.NewTimer(releasePatience)
	defer patience.Stop()
	select {
	case err := <-ended:
		return err
	case <-patience.C:
	case <-ctx.Done():
	}
	return nil
}
