package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// RunInfo is a line of the list of runs.
type RunInfo struct {
	RunID       string          `json:"runId"`
	Status      store.RunStatus `json:"status,omitempty"`
	Phase       store.Phase     `json:"phase,omitempty"`
	Skill       string          `json:"skill,omitempty"`
	Topic       string          `json:"topic,omitempty"`
	Workdir     string          `json:"workdir,omitempty"`
	ArtifactDir string          `json:"artifactDir,omitempty"`
	UpdatedAt   string          `json:"updatedAt,omitempty"`
	Active      bool            `json:"active,omitempty"`
	// Owner names who works on the run now, "" for nobody.
	Owner string `json:"owner,omitempty"`
	// Problem says what cannot be read of the run; the rest of it is shown.
	Problem string `json:"problem,omitempty"`
}

// RunDetail is one run with its rounds.
type RunDetail struct {
	RunInfo
	RequestText string              `json:"requestText,omitempty"`
	Plan        *store.PlanIdentity `json:"plan"`
	NextAction  store.NextAction    `json:"nextAction,omitempty"`
	Rounds      []store.RoundRecord `json:"rounds"`
	// Reviews is the directory of the full answers.
	Reviews string `json:"reviews"`
}

// Runs lists the runs of a workspace, newest first. Runs that cannot be read are
// listed with their problem.
func (s *System) Runs(ctx context.Context, session Session) ([]RunInfo, error) {
	value, err := s.ask(ctx, nil, func(*actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			value, err := listRuns(work, session.Workdir)
			return destination{value: value}, err
		}
	})
	runs, _ := value.([]RunInfo)
	return runs, err
}

// Show describes one run; runID "" is the active one.
func (s *System) Show(ctx context.Context, session Session, runID string) (RunDetail, error) {
	value, err := s.ask(ctx, nil, func(*actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			value, err := showRun(work, session.Workdir, runID)
			return destination{value: value}, err
		}
	})
	detail, _ := value.(RunDetail)
	return detail, err
}

func listRuns(ctx context.Context, workdir string) ([]RunInfo, error) {
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return nil, err
	}
	summaries, err := root.Runs()
	if err != nil {
		return nil, err
	}
	active, _, _ := root.Active() // a pointer that cannot be read points nowhere
	infos := make([]RunInfo, 0, len(summaries))
	for _, summary := range slices.Backward(summaries) {
		info, _ := describe(summary)
		info.Active = summary.Dir.ID == active.ID
		infos = append(infos, info)
	}
	return infos, nil
}

func showRun(ctx context.Context, workdir, runID string) (RunDetail, error) {
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return RunDetail{}, err
	}
	active, found, err := root.Active()
	if err != nil && runID == "" {
		return RunDetail{}, err
	}
	if runID == "" {
		if !found {
			return RunDetail{}, inputErrorf("there is no active run; `pilothouse runs` lists what there is")
		}
		runID = active.ID
	}
	dir, err := root.Run(runID)
	if err != nil {
		return RunDetail{}, inputErrorf("run %s: %v; `pilothouse runs` lists what there is", runID, err)
	}
	summary := store.RunSummary{Dir: dir}
	summary.Run, summary.Err = dir.Load()
	info, cp := describe(summary)
	info.Active = dir.ID == active.ID
	detail := RunDetail{
		RunInfo: info, RequestText: summary.Run.RequestText,
		Plan: cp.Plan, NextAction: cp.NextAction, Reviews: dir.RoundDir().Reviews,
	}
	rounds, err := dir.RoundDir().Rounds()
	if err != nil {
		detail.Problem = join(detail.Problem, err.Error())
	}
	detail.Rounds = slices.Concat([]store.RoundRecord{}, rounds)
	return detail, nil
}

// describe reads what a listing shows of a run, and its checkpoint.
func describe(summary store.RunSummary) (RunInfo, store.Checkpoint) {
	run := summary.Run
	info := RunInfo{
		RunID: summary.Dir.ID, Status: run.Status, Skill: run.Skill, Topic: run.Topic,
		Workdir: run.Workdir, ArtifactDir: run.ArtifactDir, UpdatedAt: run.UpdatedAt,
	}
	if summary.Err != nil {
		info.Problem = summary.Err.Error()
	}
	cp, err := summary.Dir.LoadCheckpoint()
	switch {
	case err == nil:
		info.Phase, info.UpdatedAt = cp.Phase, max(info.UpdatedAt, cp.UpdatedAt)
	case !errors.Is(err, store.ErrNoCheckpoint):
		info.Problem = join(info.Problem, err.Error())
	}
	if owner, state, err := summary.Dir.Owner(); err != nil {
		info.Problem = join(info.Problem, err.Error())
	} else if state == store.OwnerAlive {
		info.Owner = fmt.Sprintf("process %d on %s", owner.PID, owner.Host)
	}
	return info, cp
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
