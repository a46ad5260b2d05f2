package supervisor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"pilothouse/actors"
	"pilothouse/store"
)

// analysisRound is where a round of references lives.
type analysisRound struct {
	run     *store.RunDir // nil for one that belongs to no run
	rounds  store.RoundDir
	earlier store.RoundRecord
}

// analysisToResume finds the round of references that a call goes on with, among the
// runs, the newest first, and those that belong to none.
func analysisToResume(root store.Root, roundID string) (analysisRound, error) {
	if !store.ValidID(roundID) {
		return analysisRound{}, inputErrorf("--resume-round %q is not a round id", roundID)
	}
	ids, err := root.RunIDs()
	if err != nil {
		return analysisRound{}, err
	}
	places := []analysisRound{}
	for _, id := range slices.Backward(ids) {
		if run, err := root.Run(id); err == nil { // else it was removed meanwhile
			places = append(places, analysisRound{run: &run, rounds: run.RoundDir()})
		}
	}
	for _, place := range append(places, analysisRound{rounds: root.AdHoc()}) {
		place.earlier, err = place.rounds.LoadRound(roundID)
		switch {
		case errors.Is(err, store.ErrNoRound):
			continue
		case err != nil:
			return analysisRound{}, err
		case place.earlier.Role != string(actors.RefAnalyst):
			return analysisRound{}, inputErrorf("--resume-round %s is a round of a %s; `pilothouse refine` goes on with it", roundID, place.earlier.Role)
		}
		return place, nil
	}
	return analysisRound{}, inputErrorf("--resume-round %s: no run has this round; `pilothouse show RUN` lists the rounds of a run", roundID)
}

// references are those of the round. A call that names some must name the same.
func (r analysisRound) references(named []actors.Reference) ([]actors.Reference, error) {
	var refs []actors.Reference
	for _, lane := range r.earlier.Lanes {
		refs = append(refs, actors.Reference{ID: lane.RefID, LocalPath: lane.RefDir})
	}
	if named == nil {
		return refs, nil
	}
	if !slices.EqualFunc(refs, named, func(a, b actors.Reference) bool { return a.ID == b.ID && a.LocalPath == b.LocalPath }) {
		return nil, inputErrorf("round %s is of different references; leave --ref and --refs out to go on with its own", r.earlier.RoundID)
	}
	return named, nil
}

// takeOver splits the planned lanes of a resumed round into those whose answers are on
// disk and those to run. An answer that cannot be read is run again.
func (r analysisRound) takeOver(a *assignment) {
	a.record.StartedAt = r.earlier.StartedAt
	a.record.Lanes = nil
	planned := a.lanes
	a.lanes = nil
	for _, lane := range planned {
		kept := keptLane(lane, &r.earlier)
		if kept.Status == store.LaneStatusComplete && kept.ResultFile != "" {
			answer, err := r.rounds.ReadReview(kept.ResultFile)
			if err == nil {
				a.record.Lanes = append(a.record.Lanes, kept)
				a.reused = append(a.reused, reuse(lane, a.role, kept, answer))
				a.stored[lane.Spec.ID] = filepath.Join(r.rounds.Reviews, filepath.FromSlash(kept.ResultFile))
				continue
			}
			a.notices = append(a.notices, fmt.Sprintf("lane %s runs again: its answer cannot be read (%v)", lane.Spec.ID, err))
		}
		a.lanes = append(a.lanes, lane)
		a.record.Lanes = append(a.record.Lanes, queuedLane(lane))
	}
}
