package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"pilothouse/store"
)

// planWrittenEntry records a write of the latest plan in the session; the name and the
// keys are pi-plans' (spec: execution 5.7).
const planWrittenEntry = "pi-plans-plan-written"

type planWritten struct {
	RunID    string `json:"runId"`
	PlanPath string `json:"planPath"`
}

// notePlanWritten records the identity of the latest plan of a run after it was written:
// what is reviewed and approved from now on is that revision.
func (s *System) notePlanWritten(ctx context.Context, session Session, e ToolResultEvent) (Reply, error) {
	if e.ToolName != "write" && e.ToolName != "edit" {
		return Reply{}, nil
	}
	m, err := s.meant(ctx, session)
	if err != nil || !m.planning() {
		return Reply{}, err
	}
	written, _ := e.Input["path"].(string)
	path, err := session.within(written)
	if err != nil {
		return Reply{}, nil // the tool has written somewhere else
	}
	latest, _, err := store.LatestPlan(absolute(session.Workdir, m.run.ArtifactDir))
	if errors.Is(err, store.ErrNoPlan) || err == nil && !sameFile(path, latest) {
		return Reply{}, nil
	}
	if err != nil {
		return Reply{}, err
	}
	_, err = s.Plans(ctx, session, PlansAction{
		Action: "record-checkpoint", RunID: m.dir.ID, Checkpoint: &CheckpointParams{Transition: "plan-written", PlanPath: latest},
	})
	s.choices.wrote(session.ID)
	var reply Reply
	if err != nil {
		reply.Actions = append(reply.Actions, notice(LevelWarning, fmt.Sprintf("The plan was written, but its revision is not on record: %v.", err)))
	}
	reply.Actions = append(reply.Actions, entry(planWrittenEntry, planWritten{m.dir.ID, latest}))
	return reply, nil
}

// sameFile tells whether two paths lead to one file.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
