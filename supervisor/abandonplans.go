package supervisor

import (
	"context"
	"encoding/json"
	"fmt"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// abandonPlans is /plans-abandon: it gives the run of the session up, after a question,
// and its execution with it.
func abandonPlans(ctx context.Context, s *System, session Session, ui UI, _ json.RawMessage) (Reply, error) {
	m, err := s.meant(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case m.run == nil || m.run.Status.Terminal():
		return notify(LevelInfo, "There is no run to abandon."), nil
	case !ui.Has():
		return notify(LevelError, "/plans-abandon asks first, and nobody sits before this session; use `pilothouse abandon`."), nil
	}
	yes, err := ui.Confirm(ctx, "Abandon run "+m.run.RunID+"?",
		fmt.Sprintf("It is %s. Its files stay where they are, but it cannot be resumed. /plans-stop only pauses it.", m.run.Status))
	if err != nil {
		return Reply{}, fmt.Errorf("ask before abandoning: %w", err)
	}
	if !yes {
		return notify(LevelInfo, "Nothing was abandoned."), nil
	}
	return s.abandonAtWork(context.WithoutCancel(ctx), session, m)
}

// abandonAtWork gives up the run that a session works on.
func (s *System) abandonAtWork(ctx context.Context, session Session, m meantRun) (Reply, error) {
	return s.leaveRun(ctx, session, m, "abandoned",
		func() error { _, err := s.AbandonRun(ctx, session, m.run.RunID); return err },
		func(*running, store.Checkpoint) []Action {
			return []Action{
				{Kind: ActionStatus, Key: statusKey, Text: execution.IdleLine(m.run.RunID, string(store.StatusAbandoned), true)},
				notice(LevelInfo, "Run "+m.run.RunID+" is abandoned."),
			}
		})
}
