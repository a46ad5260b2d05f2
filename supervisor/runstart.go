package supervisor

import (
	"context"
	"encoding/json"
	"slices"
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
// is none or its run is gone. A session that did not tell its entries stays as it is.
func (s *System) restoreBinding(ctx context.Context, session Session, e SessionStartEvent) (Reply, error) {
	if e.Entries == nil {
		return Reply{}, nil
	}
	root, found, err := s.rootOf(ctx, session)
	if err != nil || !found {
		return Reply{}, err
	}
	for _, entry := range slices.Backward(e.Entries) {
		var start runStart
		if entry.CustomType != runStartEntry || json.Unmarshal(entry.Data, &start) != nil || start.RunID == "" {
			continue
		}
		if run, err := root.Run(start.RunID); err == nil {
			s.bindings.bind(session.ID, run)
			return Reply{}, nil
		}
		break
	}
	s.bindings.release(session.ID, root)
	return Reply{}, nil
}
