package supervisor

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// StopRun stops a run: an execution keeps its approval and progress and is paused, and
// [System.Resume] takes it up again. It returns the run as it is then. Errors:
// *InputError, *store.StateError when the run is over, *store.OwnedError while
// somebody else works on it.
func (s *System) StopRun(ctx context.Context, session Session, runID, reason string) (store.Run, error) {
	return s.endRun(ctx, session, "stop run "+runID, runID, store.StatusStopped, reason)
}

// AbandonRun gives a run up. Its files stay; it is not resumed any more. Errors as of
// [System.StopRun].
func (s *System) AbandonRun(ctx context.Context, session Session, runID string) (store.Run, error) {
	return s.endRun(ctx, session, "abandon run "+runID, runID, store.StatusAbandoned, "abandoned")
}

func (s *System) endRun(ctx context.Context, session Session, step, runID string, status store.RunStatus, reason string) (run store.Run, err error) {
	var pause store.Change // nil when nothing is being executed
	_, err = s.ask(ctx, nil, func(caller *actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			root, err := store.Find(work, session.Workdir)
			if err != nil {
				return destination{}, err
			}
			dir, err := root.Run(runID)
			if err != nil {
				return destination{}, noRunError("run", runID, err)
			}
			change := &planChange{caller: caller, session: session.ID, step: func(time.Time) store.Change { return pause }}
			change.files = func(f *files) (any, error) {
				if run, err = dir.Load(); err != nil {
					return nil, err
				}
				if run.Status.Terminal() {
					return nil, &store.StateError{Step: step, Reason: "it is " + string(run.Status) + " already"}
				}
				cp, err := dir.LoadCheckpoint()
				if err == nil && cp.Phase == store.PhaseExecuting && cp.Execution != nil { // a checkpoint that cannot be read is left as it is
					pause = store.ExecutionStopped(reason)
				}
				run, err = dir.SetStatus(status, f.now())
				return run, err
			}
			return destination{
				run: runKey{root.Dir, dir.ID}, session: session.ID, message: planCommit{caller, change},
				spawn: newRun(s.services, &dir, dir.RoundDir()),
			}, nil
		}
	})
	return run, err
}
