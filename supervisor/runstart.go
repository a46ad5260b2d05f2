package supervisor

import (
	"context"
	"encoding/json"
	"slices"

	"pilothouse/store"
)

// runStartEntry ties a session to its run on the branch of the session that it stands
// on; the name and the key are pi-plans' (spec: execution 5.8).
const runStartEntry = "pi-plans-run-start"

type runStart struct {
	RunID string `json:"runId"`
}

// noteRunStart has the session keep which run it has started.
func (s *System) noteRunStart(ctx context.Context, session Session, e ToolResultEvent) (Reply, error) {
	if e.ToolName != "plans" || e.Input["action"] != "start-run" {
		return Reply{}, nil
	}
	m, err := s.meant(ctx, session)
	if err != nil || !m.bound {
		return Reply{}, err
	}
	return Reply{Actions: []Action{entry(runStartEntry, runStart{m.dir.ID})}}, nil
}

// restoreBinding ties a session to the run of the last such entry, or to none when there
// is none or its run is gone. It carries a plan out only where its history does: a session
// that went back to before the execution, or that has ended it, steps aside (spec:
// execution 5.3). A session that did not tell its entries stays as it is.
func (s *System) restoreBinding(ctx context.Context, session Session, e SessionStartEvent) (Reply, error) {
	if e.Entries == nil {
		return Reply{}, nil
	}
	root, found, err := s.rootOf(ctx, session)
	if err != nil || !found {
		return Reply{}, err
	}
	run := boundBy(e.Entries, root)
	if run == nil {
		s.bindings.release(session.ID, root)
	} else {
		s.turnTo(session.ID, *run)
	}
	if at := e.last(executionEntry, executionClearedEntry); at == nil || at.CustomType != executionEntry {
		s.settleSeat(ctx, session.ID)
		s.executions.stepAside(session.ID)
	}
	return Reply{}, nil
}

// boundBy is the run that entries tie a session to, nil for none.
func boundBy(entries []SessionEntry, root store.Root) *store.RunDir {
	for _, entry := range slices.Backward(entries) {
		var start runStart
		if entry.CustomType != runStartEntry || json.Unmarshal(entry.Data, &start) != nil || start.RunID == "" {
			continue
		}
		if run, err := root.Run(start.RunID); err == nil {
			return &run
		}
		return nil
	}
	return nil
}
