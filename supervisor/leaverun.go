package supervisor

import (
	"context"

	"pilothouse/store"
)

// leaveRun is how a session leaves its run by the user's word: "stopped" or "abandoned".
// What its execution, if it has one, came to is written before; when that fails, nothing
// is left. The session keeps a last snapshot of the execution, which ends with it. What the
// user is told beside that, tell says; it gets no execution where there is none.
func (s *System) leaveRun(
	ctx context.Context, session Session, m meantRun, word string, leave func() error, tell func(*running, store.Checkpoint) []Action,
) (Reply, error) {
	actions, err := s.stopAutoComplete(ctx, session, &m.dir, "run "+word)
	if err != nil {
		return Reply{}, err
	}
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if r != nil {
		defer release()
		written, reply := s.settle(ctx, session, r, cp, false)
		if written == nil {
			return reply, nil
		}
		cp = *written
	}
	if err := leave(); err != nil {
		return Reply{}, err
	}
	if r != nil {
		r.wait.Pause(word + " by the user")
		actions = append(actions, r.snapshot(cp), entry(executionClearedEntry, map[string]string{"reason": word}))
	}
	return Reply{Actions: append(actions, tell(r, cp)...)}, nil
}
