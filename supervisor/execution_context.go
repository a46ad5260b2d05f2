package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// executionContext is what an agent that carries a plan out is told before it begins.
func (s *System) executionContext(ctx context.Context, session Session, _ BeforeAgentStartEvent) (Reply, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil || r == nil {
		return Reply{}, err
	}
	defer release()
	return Reply{
		Actions:  r.drain(cp),
		Messages: []Message{{CustomType: "pi-plans-exec-context", Content: r.context(s, cp)}},
	}, nil
}

// executionRestored takes an execution up in a session that begins: the session has its
// snapshot at once, so that no older entry counts. What the agent reported since the last
// snapshot while no daemon was there to hear it counts now.
func (s *System) executionRestored(ctx context.Context, session Session, e SessionStartEvent) (Reply, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if r == nil {
		return Reply{Actions: append(s.idleStatus(ctx, session), s.whereItGoesOn(ctx, session)...)}, nil
	}
	defer release()
	r.replay(e.Said)
	written, reply := s.settle(ctx, session, r, cp, e.HasUI)
	if written == nil || written.Phase != store.PhaseExecuting {
		if e.Reason == "reload" { // a turn begins or is under way, which a message must not forestall
			for i := range reply.Actions {
				reply.Actions[i].TriggerTurn, reply.Actions[i].DeliverAs = false, ""
			}
		}
		return reply, nil
	}
	if written.Revision != cp.Revision {
		r.wait.Restored(r.state(*written).Snapshot())
	}
	return Reply{Actions: append(r.drain(*written), r.status(s.now(), *written))}, nil
}

// replay hears messages of the agent that may have been heard before. Those before another
// session's work say nothing of how far it is now, and a check that passed at an unknown
// commit does not count where that matters.
func (r *running) replay(said []string) {
	if r.foreign || len(said) == 0 {
		return
	}
	heard := r.unsaved.markers
	r.scanner, r.unsaved.markers = execution.Scanner{}, nil
	for _, text := range said {
		r.hear(text)
	}
	if r.moved {
		r.unsaved.markers = slices.DeleteFunc(r.unsaved.markers, func(m execution.Marker) bool { return m.Kind == execution.MarkerDone })
	}
	r.unsaved.markers = append(heard, r.unsaved.markers...)
}

// whereItGoesOn tells a session with a run that goes on elsewhere, in another session or at
// another point of its own history, and how to go on with it here.
func (s *System) whereItGoesOn(ctx context.Context, session Session) []Action {
	m, err := s.meant(ctx, session)
	if err != nil || !m.bound || m.run.Status.Terminal() {
		return nil
	}
	owner, state, err := m.dir.Owner()
	switch {
	case err == nil && state == store.OwnerAlive && owner.Session() != session.ID && !s.processes.gone(owner.Session()):
		return []Action{notice(LevelInfo, fmt.Sprintf("Session %s works on run %s; this one can go on with it by /resume-plans when that session is closed.",
			cmp.Or(owner.Session(), "of another program"), m.run.RunID))}
	case m.run.Status == store.StatusExecuting && s.executions.isAside(session.ID):
		return []Action{notice(LevelInfo, fmt.Sprintf("The plan of run %s is being carried out, but not at this point of the session; /plans-execute goes on with it here.", m.run.RunID))}
	}
	return nil
}

func (r *running) context(s *System, cp store.Checkpoint) string {
	return r.state(cp).Context(execution.Brief{PlanPath: r.planPath, Graph: graphOf(r.run.Root), Reverify: r.stale})
}

// graphOf reads whether the workspace wants the code graph used, each time anew.
func graphOf(root store.Root) execution.Graph {
	config, err := root.LoadConfig()
	switch {
	case errors.Is(err, store.ErrNoState):
		return execution.GraphOff
	case err != nil:
		return execution.GraphUnreadable
	case config.GraphEnabled != nil && *config.GraphEnabled:
		return execution.GraphOn
	}
	return execution.GraphOff
}
