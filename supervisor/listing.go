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
	// Resumable tells that `pilothouse resume` can take the run up, once nobody owns it.
	Resumable bool `json:"resumable,omitempty"`
	// Owner names who works on the run now, "" for nobody.
	Owner string `json:"owner,omitempty"`
	// Lost are the rounds of an unfinished run whose lanes a pilothouse that is gone
	// left behind, and that can be run again.
	Lost []LostRound `json:"lost,omitempty"`
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
	// Findings are those of the reviewers of each round, the same fault once.
	Findings []RoundFindings `json:"findings,omitempty"`
	// Reviews is the directory of the full answers.
	Reviews string `json:"reviews"`
}

// Runs lists all runs of a workspace, newest first. Runs that cannot be read are
// listed with their problem.
func (s *System) Runs(ctx context.Context, session Session) ([]RunInfo, error) {
	runs, _, err := s.RecentRuns(ctx, session, 0)
	return runs, err
}

// RecentRuns is [System.Runs] for the newest runs only, no more than limit, and tells
// how many more there are. Only those listed are read. A limit of 0 is none.
func (s *System) RecentRuns(ctx context.Context, session Session, limit int) (_ []RunInfo, more int, _ error) {
	value, err := s.ask(ctx, nil, func(*actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			value, err := listRuns(work, session.Workdir, limit)
			return destination{value: value}, err
		}
	})
	list, _ := value.(runList)
	return list.runs, list.more, err
}

type runList struct {
	runs []RunInfo
	more int // that were left out
}

// Show describes one run; runID "" is the active one, "adhoc" stands for all rounds
// that belong to no run.
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

func listRuns(ctx context.Context, workdir string, limit int) (runList, error) {
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return runList{}, err
	}
	ids, err := root.RunIDs()
	if err != nil {
		return runList{}, err
	}
	var list runList
	if limit > 0 {
		list.more = max(0, len(ids)-limit)
	}
	active, _, _ := root.Active() // a pointer that cannot be read points nowhere
	list.runs = make([]RunInfo, 0, len(ids)-list.more)
	for _, id := range slices.Backward(ids[list.more:]) {
		summary, ok := root.Summary(id)
		if !ok { // removed meanwhile
			continue
		}
		info, cp, state := describe(summary)
		info.Active = id == active.ID
		if !info.Status.Terminal() && mayHaveLost(cp, state) {
			var err error
			if _, info.Lost, err = toldRounds(summary.Dir, &cp); err != nil {
				info.Problem = join(info.Problem, err.Error())
			}
		}
		list.runs = append(list.runs, info)
	}
	return list, nil
}

// mayHaveLost tells whether it is worth to look at the rounds of a run: its owner is
// dead, or a review has lanes that are not complete. Lost references of a run that
// has had another owner since are only seen by [System.Show].
func mayHaveLost(cp store.Checkpoint, state store.OwnerState) bool {
	return state == store.OwnerDead || slices.ContainsFunc(cp.ReviewRounds, func(round store.ReviewRound) bool {
		return !round.Consolidated && slices.ContainsFunc(round.Lanes, func(lane store.ReviewLane) bool { return lane.Status != store.LaneComplete })
	})
}

func showRun(ctx context.Context, workdir, runID string) (RunDetail, error) {
	root, err := store.Find(ctx, workdir)
	if err != nil {
		return RunDetail{}, err
	}
	if runID == adHocRun {
		return showAdHoc(root)
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
	info, cp, _ := describe(summary)
	info.Active = dir.ID == active.ID
	rounds, lost, err := toldRounds(dir, &cp)
	if err != nil {
		info.Problem = join(info.Problem, err.Error())
	}
	if !info.Status.Terminal() {
		info.Lost = lost
	}
	return RunDetail{
		RunInfo: info, RequestText: summary.Run.RequestText, Plan: cp.Plan, NextAction: cp.NextAction,
		Rounds: slices.Concat([]store.RoundRecord{}, rounds), Findings: roundFindings(dir, cp), Reviews: dir.RoundDir().Reviews,
	}, nil
}

// showAdHoc describes the rounds that belong to no run as if they were one.
func showAdHoc(root store.Root) (RunDetail, error) {
	rounds, err := toldAdHoc(root.AdHoc())
	detail := RunDetail{
		RunInfo: RunInfo{RunID: adHocRun}, Rounds: slices.Concat([]store.RoundRecord{}, rounds), Reviews: root.AdHoc().Reviews,
	}
	if err != nil {
		detail.Problem = err.Error()
	}
	return detail, nil
}

// describe reads what a listing shows of a run, with its checkpoint and the state of
// its owner, which is empty when that cannot be read.
func describe(summary store.RunSummary) (RunInfo, store.Checkpoint, store.OwnerState) {
	run := summary.Run
	info := RunInfo{
		RunID: summary.Dir.ID, Status: run.Status, Skill: run.Skill, Topic: run.Topic,
		Workdir: run.Workdir, ArtifactDir: run.ArtifactDir, UpdatedAt: run.UpdatedAt,
	}
	if summary.Err != nil {
		info.Problem = summary.Err.Error()
	}
	cp, err := summary.Dir.LoadCheckpoint()
	info.Resumable = summary.Err == nil && resumable(run, cp, err)
	switch {
	case err == nil:
		info.Phase, info.UpdatedAt = cp.Phase, max(info.UpdatedAt, cp.UpdatedAt)
	case !errors.Is(err, store.ErrNoCheckpoint):
		info.Problem = join(info.Problem, err.Error())
	}
	owner, state, err := summary.Dir.Owner()
	switch {
	case err != nil:
		info.Problem = join(info.Problem, err.Error())
	case state == store.OwnerAlive:
		info.Owner = fmt.Sprintf("process %d on %s", owner.PID, owner.Host)
	}
	return info, cp, state
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
