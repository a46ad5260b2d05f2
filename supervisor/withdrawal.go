package supervisor

import (
	"context"

	"pilothouse/store"
)

// withdraw closes the gate before the tools of a session that would go on with its
// execution and must not: what was approved is not what there is now. The user's next
// approval opens it.
func (s *System) withdraw(ctx context.Context, session Session, run store.RunDir) error {
	s.bindings.bind(session.ID, run) // its commands are judged as those of a planner
	err := s.changeFiles(ctx, session, "withdraw-approval", run.ID, func(f *files) error {
		_, err := f.run.SetStatus(store.StatusAccepted, f.now())
		return err
	})
	if notOurs(err) { // whoever has the run goes on with it
		return nil
	}
	return err
}
