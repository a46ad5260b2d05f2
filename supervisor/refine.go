package supervisor

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/store"
)

// Refine runs one refine round and returns what became of each lane. A plan that
// belongs to no run starts one. Errors: *InputError, *actors.GateError,
// *store.StateError (the run's phase refuses the round), *store.OwnedError,
// *lanes.CommandError and others of the store; a lane that fails is no error.
func (s *System) Refine(ctx context.Context, req RefineRequest, watch Watch) (RoundResult, error) {
	value, err := s.ask(ctx, watch, func(caller *actor.PID) prepare {
		return func(work context.Context) (destination, error) { return s.prepareRefine(work, caller, req) }
	})
	result, _ := value.(RoundResult)
	return result, err
}

// prepareRefine reads and checks in the order in which a user would want to hear
// of mistakes: the words, the plan, pi, the workspace, the gates, the round.
func (s *services) prepareRefine(ctx context.Context, caller *actor.PID, req RefineRequest) (destination, error) {
	if err := checkRefine(req); err != nil {
		return destination{}, err
	}
	plan, err := readPlan(req)
	if err != nil {
		return destination{}, err
	}
	if _, err := piCommand(req.Session); err != nil {
		return destination{}, err
	}
	root, notices, err := workspace(ctx, req)
	if err != nil {
		return destination{}, err
	}
	config, err := root.LoadConfig()
	if err != nil {
		return destination{}, err
	}
	run, err := s.runToRefine(root, req, plan.path)
	if err != nil {
		return destination{}, err
	}
	wanted, earlier, err := wantedRound(run, req)
	if err != nil {
		return destination{}, err
	}
	set := setting(config, wanted.role)
	if err := set.CheckReview(req.Model.Answered); err != nil {
		return destination{}, err
	}
	if set.Mode == actors.ModeCurrentSession {
		return s.briefOnly(req, wanted, plan)
	}
	host, err := s.host(req.Session, root)
	if err != nil {
		return destination{}, err
	}
	if run == nil {
		started, more, err := s.startRun(root, plan)
		if err != nil {
			return destination{}, err
		}
		run, notices = &started, append(notices, more...)
		s.bindings.bind(req.ID, started)
	}
	key := runKey{root.Dir, run.ID}
	host.Places = s.places.of(key)
	a := &assignment{
		caller: caller, session: req.ID, runID: run.ID, roundID: wanted.roundID, role: wanted.role, target: wanted.target,
		model: req.Model.model(set, req.Session), host: host, notices: append(notices, lostNotices(*run, wanted.roundID)...), stored: map[string]string{},
		full: filepath.Join(run.Dir, "reviews"),
	}
	if err := s.planRound(a, *run, config, req, wanted, plan, earlier); err != nil {
		return destination{}, err
	}
	return destination{
		run: key, session: req.ID, message: startRound{a}, spawn: newRun(s, run, run.RoundDir()),
	}, nil
}

func checkRefine(req RefineRequest) error {
	switch {
	case req.Role != "" && req.Role != actors.Reviewer && req.Role != actors.Criticizer:
		return inputErrorf("--role %q is neither reviewer nor criticizer", req.Role)
	case req.Target != "" && req.Target != actors.TargetPlan && req.Target != actors.TargetImplementation:
		return inputErrorf("--target %q is neither plan nor implementation", req.Target)
	case req.Reviewers < 0 || req.Reviewers > 3:
		return inputErrorf("--reviewers %d is out of range: 1 to 3 reviewers can look at a plan", req.Reviewers)
	case req.ResumeRoundID != "" && !store.ValidID(req.ResumeRoundID):
		return inputErrorf("--resume-round %q is not a round id", req.ResumeRoundID)
	}
	return nil
}

// planFile is the plan as it was read once: the brief and the recorded digest
// are of the same bytes, even if the file changes meanwhile.
type planFile struct {
	path     string
	text     string
	identity store.PlanIdentity
}

func readPlan(req RefineRequest) (planFile, error) {
	path, err := req.within(req.PlanPath)
	if err != nil {
		return planFile{}, inputErrorf("plan %s: %v", req.PlanPath, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return planFile{}, inputErrorf("there is no plan at %s", path)
	case err != nil:
		return planFile{}, inputErrorf("the plan cannot be read: %v", err)
	case info.IsDir():
		return planFile{}, inputErrorf("%s is a directory; name the plan file in it", path)
	case !info.Mode().IsRegular():
		return planFile{}, inputErrorf("%s is not a regular file", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return planFile{}, inputErrorf("the plan cannot be read: %v", err)
	}
	if strings.TrimSpace(strings.TrimPrefix(string(data), "\uFEFF")) == "" {
		return planFile{}, inputErrorf("the plan %s is empty; write it first", path)
	}
	identity, err := store.IdentifyPlan(path)
	if err != nil {
		return planFile{}, err
	}
	digest := sha256.Sum256(data)
	identity.SHA256 = hex.EncodeToString(digest[:]) // of what the lanes will read
	return planFile{path: path, text: string(data), identity: identity}, nil
}

// workspace finds the state root. Naming a run or round means that there is one,
// so nothing is made then.
func workspace(ctx context.Context, req RefineRequest) (store.Root, []string, error) {
	if req.RunID != "" || req.ResumeRoundID != "" {
		root, err := store.Find(ctx, req.Workdir)
		return root, nil, err
	}
	return store.Ensure(ctx, req.Workdir)
}

// findRun finds the run that a call works in: the one it names, the one that has
// the round it names, or the newest open one that the plan belongs to. Nil means
// that a run is to be started.
func findRun(root store.Root, req RefineRequest, plan string) (*store.RunDir, error) {
	if req.RunID != "" {
		dir, err := root.Run(req.RunID)
		if err != nil {
			return nil, noRunError("--run", req.RunID, err)
		}
		return &dir, nil
	}
	runs, err := root.Runs()
	if err != nil {
		return nil, err
	}
	slices.Reverse(runs) // newest first
	for _, summary := range runs {
		if summary.Err != nil || (req.ResumeRoundID == "" && summary.Run.Status.Terminal()) {
			continue
		}
		if belongs(summary, req.ResumeRoundID, plan) {
			return &summary.Dir, nil
		}
	}
	if req.ResumeRoundID != "" {
		return nil, inputErrorf("--resume-round %s: no run has this round; `pilothouse show RUN` lists the rounds of a run", req.ResumeRoundID)
	}
	return nil, nil
}

// belongs tells whether a run has a round, or, without one, whether a plan is the
// run's: it lies in the run's artifact directory or is the plan on record.
func belongs(run store.RunSummary, roundID, plan string) bool {
	if roundID == "" && contains(run.Run.ArtifactDir, plan) {
		return true
	}
	cp, err := run.Dir.LoadCheckpoint()
	if err != nil {
		return false
	}
	if roundID != "" {
		return cp.Round(roundID) != nil
	}
	return cp.Plan != nil && cp.Plan.Path == plan
}

func contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// round is what a call asks for once its defaults are filled in.
type round struct {
	roundID        string
	role           actors.Role
	target         string
	reviewers      int
	focus, context string
	resumed        bool
}

// wantedRound fills in defaults, or takes over what a resumed round was started
// with. The second result is the earlier record of a resumed round.
func wantedRound(run *store.RunDir, req RefineRequest) (round, *store.RoundRecord, error) {
	w := round{
		role: req.Role, target: req.Target, reviewers: req.Reviewers, focus: req.Focus, context: req.Context,
		roundID: req.ResumeRoundID, resumed: req.ResumeRoundID != "",
	}
	if !w.resumed {
		if w.role == "" {
			w.role = actors.Reviewer
		}
		if w.target == "" {
			w.target = actors.TargetPlan
		}
		w.reviewers = max(w.reviewers, 1)
		return w, nil, nil
	}
	cp, err := run.LoadCheckpoint()
	if err != nil {
		return round{}, nil, err
	}
	known := cp.Round(req.ResumeRoundID)
	if known == nil {
		return round{}, nil, inputErrorf("--resume-round %s: run %s has no such round", req.ResumeRoundID, run.ID)
	}
	if w.role == "" {
		w.role = actors.Role(known.Role)
	}
	if w.target == "" {
		w.target = known.Target
	}
	if w.reviewers == 0 {
		w.reviewers = len(known.Lanes)
	}
	w.focus, w.context = known.Focus, known.Context
	record, err := run.RoundDir().LoadRound(req.ResumeRoundID)
	switch {
	case errors.Is(err, store.ErrNoRound): // started by another program on the same files
		return w, nil, nil
	case err != nil:
		return round{}, nil, err
	}
	return w, &record, nil
}

// startRun makes the run of a plan that belongs to none, so that nothing runs
// unrecorded.
func (s *services) startRun(root store.Root, plan planFile) (store.RunDir, []string, error) {
	run, notices, err := store.StartRun(root, store.StartRunRequest{
		Topic: heading(plan), Skill: "refine", RequestText: "refine " + plan.path,
	}, s.now())
	if err != nil {
		return store.RunDir{}, nil, err
	}
	dir, err := root.Run(run.RunID)
	if err != nil {
		return store.RunDir{}, nil, err
	}
	if _, err := dir.CreateCheckpoint(s.now()); err != nil {
		return store.RunDir{}, nil, err
	}
	return dir, append(notices, "started run "+run.RunID+" for this plan"), nil
}

// heading is the topic of a plan: its first heading, else its file name.
func heading(plan planFile) string {
	lines := bufio.NewScanner(strings.NewReader(plan.text))
	lines.Buffer(nil, len(plan.text)+1)
	for lines.Scan() {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\uFEFF"))
		if title := strings.TrimLeft(line, "#"); title != line && strings.TrimSpace(title) != "" {
			return strings.TrimSpace(title)
		}
	}
	return strings.TrimSuffix(filepath.Base(plan.path), filepath.Ext(plan.path))
}

// planRound fills in the lanes: those to run and those whose answers are reused.
func (s *services) planRound(a *assignment, run store.RunDir, config store.Config, req RefineRequest, w round, plan planFile, earlier *store.RoundRecord) error {
	if a.roundID == "" {
		a.roundID = store.DefaultRoundID(w.target, string(w.role), s.clock.next())
	}
	record, err := run.Load()
	if err != nil {
		return err
	}
	planned, err := s.planLanes(config, req, w, plan, record, a.model)
	if err != nil {
		return err
	}
	s.transcribe(run.Root, run.ID, a.roundID, planned)
	a.spec = &store.RoundSpec{
		RoundID: a.roundID, Role: string(w.role), Target: w.target, Plan: &plan.identity, Focus: w.focus, Context: w.context,
	}
	for _, lane := range planned {
		a.order = append(a.order, lane.Spec.ID)
		a.spec.Lanes = append(a.spec.Lanes, store.LaneSpec{LaneID: lane.Spec.ID, Lens: lane.Lens})
	}
	cp, err := loadOrCreateCheckpoint(run, s)
	if err != nil {
		return err
	}
	// A rehearsal on a copy: a phase or plan that refuses the round is told
	// before the run is touched.
	trial := cp.Clone()
	if err := startRoundOf(*a.spec, s.now())(&trial); err != nil && !errors.Is(err, store.ErrNoChange) {
		return err
	}
	a.record = store.RoundRecord{
		RoundID: a.roundID, Role: string(w.role), Target: w.target, Model: a.model, PlanPath: plan.path,
		PlanSHA256: plan.identity.SHA256, Focus: w.focus, Context: w.context, StartedAt: s.now(),
	}
	if earlier != nil {
		a.record.StartedAt = earlier.StartedAt
	}
	a.takeOver(run, planned, trial.Round(a.roundID), earlier)
	return nil
}

func (s *services) planLanes(config store.Config, req RefineRequest, w round, plan planFile, run store.Run, model string) ([]actors.Lane, error) {
	review := actors.ReviewRequest{
		Target: w.target, PlanPath: plan.path, PlanText: plan.text, Reviewers: w.reviewers,
		Focus: w.focus, Context: w.context, Language: languageOf(run), RunID: run.RunID, Model: model,
		Dir: req.Workdir, Limits: req.Limits,
	}
	if w.role == actors.Criticizer {
		review.NamePrefix = config.Criticizer.NamePrefix
		return actors.PlanCriticism(review, s.now())
	}
	review.NamePrefix = config.Reviewer.NamePrefix
	return actors.PlanReview(review)
}

// takeOver splits the planned lanes into those whose answers are on disk and
// those to run. An answer that is recorded but cannot be read is run again. One
// that a crash kept out of the checkpoint is in the round's record, and counts:
// nobody pays for it twice (faults D51).
func (a *assignment) takeOver(run store.RunDir, planned []actors.Lane, known *store.ReviewRound, earlier *store.RoundRecord) {
	for _, lane := range planned {
		id := lane.Spec.ID
		kept := keptLane(lane, earlier)
		state := known.Lane(id)
		recorded := state != nil && state.Reusable()
		if recorded {
			kept.Status, kept.ResultFile = store.LaneStatusComplete, state.ResultFile
		}
		if kept.Status != store.LaneStatusComplete || kept.ResultFile == "" {
			a.lanes = append(a.lanes, lane)
			a.record.Lanes = append(a.record.Lanes, queuedLane(lane))
			continue
		}
		answer, err := run.ReadReview(kept.ResultFile)
		if err != nil {
			a.notices = append(a.notices, fmt.Sprintf("lane %s runs again: its answer cannot be read (%v)", id, err))
			a.lanes = append(a.lanes, lane)
			a.record.Lanes = append(a.record.Lanes, queuedLane(lane))
			continue
		}
		if !recorded {
			a.adopted = append(a.adopted, kept)
		}
		a.record.Lanes = append(a.record.Lanes, kept)
		a.reused = append(a.reused, reuse(lane, a.role, kept, answer))
		a.stored[id] = filepath.Join(run.Dir, filepath.FromSlash(kept.ResultFile))
	}
}

// keptLane is what an earlier call recorded of a lane, or the record of a lane
// that waits.
func keptLane(lane actors.Lane, earlier *store.RoundRecord) store.LaneRecord {
	if earlier != nil {
		for _, record := range earlier.Lanes {
			if record.LaneID == lane.Spec.ID {
				return record
			}
		}
	}
	return queuedLane(lane)
}

func loadOrCreateCheckpoint(run store.RunDir, s *services) (store.Checkpoint, error) {
	cp, err := run.LoadCheckpoint()
	if errors.Is(err, store.ErrNoCheckpoint) { // a run of a time before checkpoints
		return run.CreateCheckpoint(s.now())
	}
	return cp, err
}

// briefOnly answers a call in current-session mode: the session does the
// read-only pass itself. No round is recorded, for its lanes could never end.
func (s *services) briefOnly(req RefineRequest, w round, plan planFile) (destination, error) {
	brief := actors.ReviewBrief{
		Role: string(w.role), Target: w.target, PlanPath: plan.path, PlanText: plan.text, Focus: w.focus, Context: w.context,
	}.Text()
	return destination{value: RoundResult{
		Role: w.role, Target: w.target, Lanes: []LaneResult{},
		Text: "The " + string(w.role) + " mode is current-session: do this read-only pass yourself, in this session.\n\n" + brief,
	}}, nil
}
