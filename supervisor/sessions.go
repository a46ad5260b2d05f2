package supervisor

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
)

// EndSession gives back what a Pi session holds, and returns when all of it is free.
// A session keeps each run that it works on, also between its calls, so that no other
// takes over a plan that is being worked on: until the run is over, until Close, or
// until EndSession. Work under way goes on to its end; the run is free after that.
func (s *System) EndSession(ctx context.Context, sessionID string) error {
	if sessionID == "" {
		return inputErrorf("a session is ended by its id")
	}
	s.conversations.endSession(ctx, sessionID)
	s.settleSeat(ctx, sessionID)
	s.bindings.unbind(sessionID)
	s.executions.end(sessionID)
	s.choices.end(sessionID)
	s.processes.end(sessionID)
	_, err := s.send(ctx, nil, func(caller *actor.PID) any { return sessionEnded{caller, sessionID} })
	return err
}
