package supervisor

import (
	"context"
	"strings"
	"sync"

	"pilothouse/store"
)

// interviews are the sessions whose next turn begins with the reminder to clarify first
// (spec: execution 5.9).
type interviews struct {
	mu     sync.Mutex
	queued map[string]bool // by session
}

func (i *interviews) queue(session string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.queued == nil {
		i.queued = map[string]bool{}
	}
	i.queued[session] = true
}

// take tells whether a reminder is queued, and takes it away.
func (i *interviews) take(session string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	queued := i.queued[session]
	delete(i.queued, session)
	return queued
}

const interviewMessage = "Before you act on this request, look whether it is clear what is wanted. " +
	"If two readings of it would lead to different work, ask the user first, one short question with the readings to choose from. " +
	"If it is clear, go on without a question, and do not mention this note."

// queueInterview queues the reminder for what a person asks while the agent is at rest.
func (s *System) queueInterview(_ context.Context, session Session, e InputEvent) (Reply, error) {
	text := strings.TrimSpace(e.Text)
	if e.external() && e.StreamingBehavior == "" && text != "" && !strings.HasPrefix(text, "/") {
		s.interviews.queue(session.ID)
	}
	return Reply{}, nil
}

// interview gives the reminder, once, unless the session is in the middle of a run: the
// workflow asks its own questions. A run that cannot be read asks none.
func (s *System) interview(ctx context.Context, session Session, _ BeforeAgentStartEvent) (Reply, error) {
	if !s.interviews.take(session.ID) {
		return Reply{}, nil
	}
	if m, err := s.meant(ctx, session); err == nil && m.run != nil {
		switch m.run.Status {
		case store.StatusPlanning, store.StatusAccepted, store.StatusExecuting:
			return Reply{}, nil
		}
	}
	return Reply{Messages: []Message{{CustomType: "pi-plans-query-interview", Content: interviewMessage}}}, nil
}
