package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// plansCommand is /plans: it tells where the session stands, and changes nothing.
func plansCommand(ctx context.Context, s *System, session Session, _ UI, _ json.RawMessage) (Reply, error) {
	mode, err := s.planModes.get(session.ID)
	if err != nil {
		return Reply{}, err
	}
	lines := []string{"Plan mode: " + onOff(mode.Active)}
	m, err := s.meant(ctx, session)
	switch {
	case err != nil:
		lines = append(lines, fmt.Sprintf("Run: %v", err)) // the rest is still worth telling
	case m.root == nil:
		lines = append(lines, "Run: none; this directory is in no git repository yet")
	case m.run == nil:
		lines = append(lines, "Run: none; the first plan starts one", "State: "+m.root.Dir)
	default:
		lines = append(lines, s.runLines(session, m)...)
	}
	return notify(LevelInfo, strings.Join(lines, "\n")), nil
}

// runLines describe the run of a session. What cannot be read of it is told in its place.
func (s *System) runLines(session Session, m meantRun) []string {
	whose := "the active one of this workspace"
	if m.bound {
		whose = "of this session"
	}
	lines := []string{
		fmt.Sprintf("Run: %s (%s), %s, topic %s, skill %s", m.run.RunID, whose, m.run.Status, m.run.Topic, m.run.Skill),
		"State: " + m.dir.Dir,
	}
	cp, err := m.dir.LoadCheckpoint()
	switch {
	case err == nil:
		lines = append(lines, fmt.Sprintf("Phase: %s, next: %s", cp.Phase, cp.NextAction))
		if q := cp.PendingQuestion; q != nil {
			lines = append(lines, fmt.Sprintf("Open question: %s (%s)", oneLine(q.Question), q.QuestionID))
		}
	case !errors.Is(err, store.ErrNoCheckpoint):
		lines = append(lines, fmt.Sprintf("Phase: %v", err))
	}
	lines = append(lines, planLine(session, m, cp))
	return append(lines, "Auto-complete: "+onOff(s.autoCompletes(session, &m.dir)))
}

// planLine names the latest plan and how many of its items and checks are done. A plan
// that its user keeps elsewhere the checkpoint knows.
func planLine(session Session, m meantRun, cp store.Checkpoint) string {
	path, _, err := store.LatestPlan(absolute(session.Workdir, m.run.ArtifactDir))
	if errors.Is(err, store.ErrNoPlan) && cp.Plan != nil {
		path, err = cp.Plan.Path, nil
	}
	if errors.Is(err, store.ErrNoPlan) {
		return "Plan: not written yet, goes to " + m.run.ArtifactDir
	}
	if err != nil {
		return fmt.Sprintf("Plan: %v", err)
	}
	file, err := readPlan(RefineRequest{PlanPath: path})
	if err != nil {
		return fmt.Sprintf("Plan: %v", err)
	}
	plan := execution.Parse(file.text)
	passed := 0
	for _, check := range plan.Checks {
		if check.Done || cp.Execution != nil && slices.Contains(cp.Execution.DoneVCIDs, check.ID) {
			passed++
		}
	}
	return fmt.Sprintf("Plan: %s, %d items, %d of %d checks passed", path, len(plan.Items), passed, len(plan.Checks))
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
