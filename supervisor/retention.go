package supervisor

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// PruneRequest asks for the removal of finished runs.
type PruneRequest struct {
	Session
	// Age is for how long a run must not have changed.
	Age time.Duration
	// Confirmed does it; otherwise only what would go is told.
	Confirmed bool
}

// PruneResult is what was removed, or would be.
type PruneResult struct {
	Removed bool        `json:"removed"`
	Runs    []PrunedRun `json:"runs"`
	// Kept are runs that may be old enough but must stay.
	Kept []KeptRun `json:"kept"`
}

// PrunedRun is a run that was removed, or would be.
type PrunedRun struct {
	RunID     string          `json:"runId"`
	Status    store.RunStatus `json:"status"`
	UpdatedAt string          `json:"updatedAt"`
	// Problem says what is left of it, which the next removal tries again.
	Problem string `json:"problem,omitempty"`
}

// KeptRun is a run that was not removed.
type KeptRun struct {
	RunID  string `json:"runId"`
	Reason string `json:"reason"`
}

// Prune removes finished runs that have not changed for an age, oldest first (see
// [store.RunDir.Prune]).
func (s *System) Prune(ctx context.Context, req PruneRequest) (PruneResult, error) {
	value, err := s.ask(ctx, nil, func(*actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			value, err := s.prune(work, req)
			return destination{value: value}, err
		}
	})
	result, _ := value.(PruneResult)
	return result, err
}

func (s *services) prune(ctx context.Context, req PruneRequest) (PruneResult, error) {
	root, err := store.Find(ctx, req.Workdir)
	if err != nil {
		return PruneResult{}, err
	}
	if req.Confirmed { // what an earlier removal left when it was killed
		if err := root.EmptyTrash(); err != nil {
			return PruneResult{}, err
		}
	}
	ids, err := root.RunIDs()
	if err != nil {
		return PruneResult{}, err
	}
	result := PruneResult{Removed: req.Confirmed, Runs: []PrunedRun{}, Kept: []KeptRun{}}
	since := s.now().Add(-req.Age)
	for _, id := range ids {
		if ctx.Err() != nil {
			return result, nil // each run is whole or gone
		}
		summary, ok := root.Summary(id)
		if !ok {
			continue
		}
		act := summary.Dir.Prunable
		if req.Confirmed {
			act = func(since time.Time) (bool, error) { return summary.Dir.Prune(ctx, since) }
		}
		switch due, err := act(since); {
		case due:
			pruned := PrunedRun{RunID: id, Status: summary.Run.Status, UpdatedAt: summary.Run.UpdatedAt}
			if err != nil {
				pruned.Problem = err.Error()
			}
			result.Runs = append(result.Runs, pruned)
		case err != nil:
			result.Kept = append(result.Kept, KeptRun{id, err.Error()})
		}
	}
	return result, nil
}
