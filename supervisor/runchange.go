package supervisor

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// prepareChange reads and checks what a change of a run needs, before the run is
// touched.
type prepareChange func(context.Context, store.RunDir) (*planChange, error)

// changeRun makes one change of a run's checkpoint for a session and returns the
// checkpoint once it is durable. What names the change in messages.
func (s *System) changeRun(ctx context.Context, session Session, what, runID string, prepareChange prepareChange) (store.Checkpoint, error) {
	value, err := s.commitTo(ctx, session, what, runID, prepareChange)
	if err != nil {
		return store.Checkpoint{}, err
	}
	cp, ok := value.(store.Checkpoint)
	if !ok { // a defect: every change of this path has a step
		return store.Checkpoint{}, fmt.Errorf("%s: run %s answered with %T", what, runID, value)
	}
	return cp, nil
}

// changeFiles is [System.changeRun] for what a run has beside its checkpoint.
func (s *System) changeFiles(ctx context.Context, session Session, what, runID string, change func(*files) error) error {
	_, err := s.commitTo(ctx, session, what, runID, func(context.Context, store.RunDir) (*planChange, error) {
		return &planChange{files: func(f *files) (any, error) { return nil, change(f) }}, nil
	})
	return err
}

func (s *System) commitTo(ctx context.Context, session Session, what, runID string, prepareChange prepareChange) (any, error) {
	return s.ask(ctx, nil, func(caller *actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			root, err := store.Find(work, session.Workdir)
			if err != nil {
				return destination{}, err
			}
			run, err := s.runOf(session.ID, root, PlansAction{Action: what, RunID: runID})
			if err != nil {
				return destination{}, err
			}
			change, err := prepareChange(work, run)
			if err != nil {
				return destination{}, err
			}
			change.caller, change.session = caller, session.ID
			return destination{
				run: runKey{root.Dir, run.ID}, session: session.ID, message: planCommit{caller, change},
				spawn: newRun(s.services, &run, run.RoundDir()),
			}, nil
		}
	})
}
