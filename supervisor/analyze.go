package supervisor

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/store"
)

// adHocRun stands for the run of a round that belongs to none.
const adHocRun = "adhoc"

// AnalyzeRefs runs one analyze_refs round and returns what became of each lane.
// The answers belong to the active run, or to none when there is none. Errors:
// *InputError, *actors.GateError, *store.OwnedError, *lanes.CommandError and
// others of the store; a lane that fails is no error.
func (s *System) AnalyzeRefs(ctx context.Context, req AnalyzeRequest, watch Watch) (RoundResult, error) {
	value, err := s.ask(ctx, watch, func(caller *actor.PID) prepare {
		return func(work context.Context) (destination, error) { return s.prepareAnalysis(work, caller, req) }
	})
	result, _ := value.(RoundResult)
	return result, err
}

func (s *services) prepareAnalysis(ctx context.Context, caller *actor.PID, req AnalyzeRequest) (destination, error) {
	refs, err := references(req)
	if err != nil {
		return destination{}, err
	}
	resumed := req.ResumeRoundID != ""
	command, err := piCommand(req.Session)
	if err != nil {
		return destination{}, err
	}
	root, notices, err := store.Ensure(ctx, req.Workdir)
	if err != nil {
		return destination{}, err
	}
	config, err := root.LoadConfig()
	if err != nil {
		return destination{}, err
	}
	set := setting(config, actors.Reviewer)
	if err := set.CheckAnalysis(req.Model.Answered); err != nil {
		return destination{}, err
	}
	run, language, err := s.activeRun(req.ID, root)
	if err != nil {
		return destination{}, err
	}
	var earlier analysisRound
	if resumed {
		if earlier, err = analysisToResume(root, req.ResumeRoundID); err != nil {
			return destination{}, err
		}
		if refs, err = earlier.references(refs); err != nil {
			return destination{}, err
		}
		if run = earlier.run; run != nil {
			record, err := run.Load()
			if err != nil {
				return destination{}, err
			}
			language = languageOf(record)
		}
		req.Context = earlier.earlier.Context
	}
	a := &assignment{
		caller: caller, session: req.ID, runID: adHocRun, role: actors.RefAnalyst, model: req.Model.model(set, req.Session), notices: notices,
		roundID: cmp.Or(req.ResumeRoundID, "refs-r"+strconv.FormatInt(s.clock.next().UnixMilli(), 36)), stored: map[string]string{},
	}
	rounds, key := root.AdHoc(), adHocKey(root, a.roundID)
	host, err := s.host(req.Session, root)
	if err != nil {
		return destination{}, err
	}
	a.host = host
	if run != nil {
		a.runID, rounds, key = run.ID, run.RoundDir(), runKey{root.Dir, run.ID}
		a.notices = append(a.notices, lostNotices(*run, req.ResumeRoundID)...)
		host.Places = s.places.of(key)
	}
	a.lanes, err = actors.PlanAnalysis(actors.AnalysisRequest{
		Refs: refs, Context: req.Context, Language: language, RunID: a.runID, Model: a.model, ObeysProject: !command.Untrusting, Limits: req.Limits,
	})
	if err != nil {
		return destination{}, err
	}
	s.transcribe(root, a.runID, a.roundID, a.lanes)
	a.full = filepath.Join(rounds.Reviews, "reviews")
	a.record = store.RoundRecord{RoundID: a.roundID, Role: string(a.role), Model: a.model, Context: req.Context, StartedAt: s.now()}
	for _, lane := range a.lanes {
		a.order = append(a.order, lane.Spec.ID)
		a.record.Lanes = append(a.record.Lanes, queuedLane(lane))
	}
	if resumed {
		earlier.takeOver(a)
	}
	return destination{run: key, session: req.ID, message: startRound{a}, spawn: newRun(s, run, rounds)}, nil
}

// adHocKey is the key of a round without a run: each has a supervisor of its own.
func adHocKey(root store.Root, roundID string) runKey {
	return runKey{root.Dir, adHocRun + "-" + roundID}
}

// references checks the request's references and makes their paths absolute.
// A path that is no directory is not an error here: its lane fails, the others
// run (spec: subagents 4.2).
func references(req AnalyzeRequest) ([]actors.Reference, error) {
	if len(req.Refs) == 0 && req.ResumeRoundID != "" {
		return nil, nil
	}
	if len(req.Refs) == 0 {
		return nil, inputErrorf("there is no reference to analyse; name one with --ref ID=DIR")
	}
	seen := map[string]bool{}
	refs := make([]actors.Reference, len(req.Refs))
	for i, ref := range req.Refs {
		switch {
		case ref.ID == "" || ref.LocalPath == "":
			return nil, inputErrorf("reference %d lacks its id or its localPath", i+1)
		case seen[ref.ID]:
			return nil, inputErrorf("reference %q is named twice; give each an id of its own", ref.ID)
		}
		seen[ref.ID] = true
		path, err := req.within(ref.LocalPath)
		if err != nil {
			return nil, inputErrorf("reference %q: %v", ref.ID, err)
		}
		refs[i] = ref
		refs[i].LocalPath = path
	}
	return refs, nil
}

// activeRun finds the run that a session works on, if it is not over, and its
// language.
func (s *services) activeRun(sessionID string, root store.Root) (*store.RunDir, string, error) {
	dir, found, err := s.bindings.current(sessionID, root)
	if err != nil || !found {
		return nil, "", err
	}
	run, err := dir.Load()
	switch {
	case errors.Is(err, store.ErrNoRun):
		return nil, "", nil
	case err != nil:
		return nil, "", err
	case run.Status.Terminal():
		return nil, "", nil
	}
	return &dir, languageOf(run), nil
}

func languageOf(run store.Run) string {
	if run.LanguageTag == nil {
		return ""
	}
	return *run.LanguageTag
}
