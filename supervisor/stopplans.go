package supervisor

import (
	"context"
	"encoding/json"
	"fmt"

	"pilothouse/store"
)

// stopPlans is /plans-stop: it pauses the run of the session, after a question. The
// approval and what was reached stay.
func stopPlans(ctx context.Context, s *System, session Session, ui UI, _ json.RawMessage) (Reply, error) {
	m, err := s.meant(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case m.run == nil || m.run.Status.Terminal():
		return notify(LevelInfo, "There is no run to stop."), nil
	case m.run.Status == store.StatusStopped:
		return notify(LevelInfo, fmt.Sprintf("Run %s is stopped already; /resume-plans takes it up.", m.run.RunID)), nil
	case !ui.Has():
		return notify(LevelError, "/plans-stop asks first, and nobody sits before this session; use `pilothouse stop`."), nil
	}
	yes, err := ui.Confirm(ctx, "Stop run "+m.run.RunID+"?", "Its plan, its approval and what was verified stay. /plans-execute or /resume-plans takes it up again.")
	if err != nil {
		return Reply{}, err
	}
	if !yes {
		return notify(LevelInfo, "Nothing was stopped."), nil
	}
	return s.stopAtWork(context.WithoutCancel(ctx), session, m)
}

// stopAtWork stops the run that a session works on.
func (s *System) stopAtWork(ctx context.Context, session Session, m meantRun) (Reply, error) {
	return s.leaveRun(ctx, session, m, "stopped",
		func() error { _, err := s.StopRun(ctx, session, m.run.RunID, "stopped by the user"); return err },
		func(r *running, cp store.Checkpoint) []Action {
			if r == nil {
				return []Action{notice(LevelInfo, "Run "+m.run.RunID+" is stopped.")}
			}
			return []Action{
				sendMessage(Message{CustomType: "pi-plans-exec-stop", Display: true, Content: fmt.Sprintf(
					"**pi-plans: stopped** `%s`; %d of %d checks have passed. Write access outside planning artifacts is over. /plans-execute takes the execution up again.",
					r.planPath, len(r.state(cp).Done()), len(r.plan.Checks))}),
				r.idleStatus(store.StatusStopped),
			}
		})
}
