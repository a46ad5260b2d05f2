package supervisor

import (
	"context"
	"encoding/json"

	"pilothouse/store"
	"pilothouse/supervisor/compaction"
)

// sessionBeforeCompact answers for a compaction that Pi is about to do, while its session
// plans or carries out a plan; otherwise Pi does it its own way (spec: compaction 6.2).
// The event is as large as the session, so it is read where it is.
func sessionBeforeCompact(ctx context.Context, s *System, session Session, event json.RawMessage) (Reply, error) {
	at, err := s.compactionPhase(ctx, session)
	if err != nil || at == nil {
		return Reply{}, err
	}
	s.executions.compacting(session.ID, true)
	r, err := compaction.ParseRequest(event)
	if err != nil {
		return Reply{}, inputErrorf("the event is not what Pi sends: %v", err)
	}
	config := s.compactionConfig(ctx, at.run.Root)
	r.Phase, r.Settings = &at.phase, compilerSettings(config)
	asked := compactNow{request: r, phase: at.phase.Kind, config: config, snapshot: s.snapshot}
	if r.Instructions == compaction.PrePlanHint {
		asked.phase = prePlanPhase
	}
	return s.askCompactor(ctx, session, at.run, asked)
}

// prePlanPhase is how the compaction after the start of a run is counted.
const prePlanPhase = "pre-plan"

// compacting is what a session works on when it is compacted.
type compacting struct {
	run   store.RunDir
	phase compaction.Phase
}

// compactionPhase finds it; nil for a session whose compactions are Pi's own matter.
func (s *System) compactionPhase(ctx context.Context, session Session) (*compacting, error) {
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil {
		return nil, err
	}
	if r != nil {
		defer release()
		state := r.state(cp)
		phase := compaction.Phase{Kind: compaction.Execution, RunID: r.run.ID, PlanPath: r.planPath, CurrentI: state.Current()}
		for _, item := range r.plan.Items {
			phase.ImplIDs = append(phase.ImplIDs, item.ID)
		}
		for _, check := range state.Remaining() {
			phase.RemainingVCs = append(phase.RemainingVCs, check.ID)
		}
		return &compacting{r.run, phase}, nil
	}
	m, err := s.meant(ctx, session)
	if err != nil || m.run == nil || m.run.Status != store.StatusPlanning {
		return nil, err
	}
	phase := compaction.Phase{Kind: compaction.Planning, RunID: m.dir.ID, ArtifactDir: m.run.ArtifactDir}
	if latest, _, err := store.LatestPlan(absolute(session.Workdir, m.run.ArtifactDir)); err == nil { // there need not be one yet
		phase.PlanPath = latest
	}
	return &compacting{m.dir, phase}, nil
}

// compactionConfig are the settings of a workspace, whose file is made when there is
// none. Where that or its reading fails the defaults hold.
func (s *System) compactionConfig(ctx context.Context, root store.Root) store.CompactionConfig {
	if err := root.ScaffoldCompactionConfig(ctx); err != nil {
		s.logger.Debug("compaction settings not completed", "error", err)
	}
	config, err := root.LoadCompactionConfig()
	if err != nil {
		s.logger.Warn("compaction settings not read, the defaults hold", "error", err)
	}
	return config
}
