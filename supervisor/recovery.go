package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pilothouse/lanes/pijson"
	"pilothouse/store"
)

// A process that is killed leaves lanes on record as queued that nobody works on any
// more. Whoever reads a run without a living owner is told that they failed (lost);
// whoever owns the run next writes that down before anything else (closeLost). A
// resumed round runs exactly these lanes again. An owner that lives, or of whom that
// cannot be said, is left alone, and so are rounds of other programs, which have no
// record of ours.

// nobodyWorks tells whether a run is proven to have nobody at work on it.
func nobodyWorks(state store.OwnerState, err error) bool {
	return err == nil && (state == store.OwnerNone || state == store.OwnerDead)
}

// lostRound is the record of a round that nobody works on any more: its open lanes,
// which come second, have failed. At is when that is written down, zero when it is
// not. Resumable tells whether the checkpoint knows the round.
func lostRound(record store.RoundRecord, resumable bool, at time.Time) (store.RoundRecord, []string) {
	var open []string
	closed := record
	closed.Lanes = slices.Clone(record.Lanes)
	for i, lane := range closed.Lanes {
		if lane.Status.Terminal() {
			continue
		}
		open = append(open, lane.LaneID)
		closed.Lanes[i].Status, closed.Lanes[i].CompletedAt = store.LaneStatusFailed, at
		closed.Lanes[i].Error = store.LaneError{
			Class:   string(pijson.ClassOrchestratorLost),
			Message: pijson.ClassOrchestratorLost.Sentence() + "; " + wayOut(record, resumable),
		}
	}
	if record.CompletedAt.IsZero() {
		closed.CompletedAt = at
	}
	return closed, open
}

// wayOut says how the lost lanes of a round are run again.
func wayOut(record store.RoundRecord, resumable bool) string {
	switch {
	case record.PlanPath == "": // references, which are never in the checkpoint
		return fmt.Sprintf("continue with `pilothouse analyze-refs --resume-round %s`", record.RoundID)
	case !resumable: // the crash came before the checkpoint
		return fmt.Sprintf("ask for it again with `pilothouse refine %s`", record.PlanPath)
	default:
		return fmt.Sprintf("continue with `pilothouse refine %s --resume-round %s`", record.PlanPath, record.RoundID)
	}
}

// LostRound is a round with lanes that a pilothouse which is gone left behind.
type LostRound struct {
	RoundID string   `json:"roundId"`
	Lanes   []string `json:"lanes"`
	// WayOut says, with a command, how to run these lanes again.
	WayOut string `json:"wayOut"`
}

// told is a round's record as it is told, and its lost lanes, those that are on
// record as lost included.
func told(record store.RoundRecord, resumable, abandoned bool) (store.RoundRecord, *LostRound) {
	if abandoned {
		record, _ = lostRound(record, resumable, time.Time{})
	}
	gone := &LostRound{RoundID: record.RoundID, WayOut: wayOut(record, resumable)}
	for _, lane := range record.Lanes {
		if lane.Error.Class == string(pijson.ClassOrchestratorLost) {
			gone.Lanes = append(gone.Lanes, lane.LaneID)
		}
	}
	if gone.Lanes == nil {
		return record, nil
	}
	return record, gone
}

// toldRounds reads the rounds of a run as they are told. The owner is asked before
// the records are read and, when lanes are open, after: an owner who comes or goes
// meanwhile has the last word.
func toldRounds(dir store.RunDir, cp *store.Checkpoint) (records []store.RoundRecord, gone []LostRound, err error) {
	_, state, ownerErr := dir.Owner()
	abandoned := nobodyWorks(state, ownerErr)
	records, err = dir.RoundDir().Rounds()
	if abandoned && anyOpen(records) {
		_, state, ownerErr = dir.Owner()
		abandoned = nobodyWorks(state, ownerErr)
	}
	for i, record := range records {
		var round *LostRound
		if records[i], round = told(record, cp.Round(record.RoundID) != nil, abandoned); round != nil {
			gone = append(gone, *round)
		}
	}
	return records, gone, err
}

// lostNotices tell of the lost lanes of a run, but for the round that goes on now.
func lostNotices(dir store.RunDir, resumed string) []string {
	cp, _ := dir.LoadCheckpoint() // what is wrong with it is told where it is needed
	_, gone, _ := toldRounds(dir, &cp)
	var notices []string
	for _, round := range gone {
		if round.RoundID != resumed {
			notices = append(notices, fmt.Sprintf("an earlier pilothouse ended before round %s had ended; %s", round.RoundID, round.WayOut))
		}
	}
	return notices
}

func anyOpen(records []store.RoundRecord) bool {
	return slices.ContainsFunc(records, func(record store.RoundRecord) bool {
		return slices.ContainsFunc(record.Lanes, func(lane store.LaneRecord) bool { return !lane.Status.Terminal() })
	})
}

// toldAdHoc is toldRounds for rounds that belong to no run, which have an owner each:
// one that is open without an owner is read again, because
// it may just have ended.
func toldAdHoc(rounds store.RoundDir) ([]store.RoundRecord, error) {
	records, err := rounds.Rounds()
	for i, record := range records {
		if !anyOpen(records[i : i+1]) {
			continue
		}
		abandoned := nobodyWorks(rounds.Occupant(record.RoundID))
		if again, err := rounds.LoadRound(record.RoundID); err == nil {
			record = again
		}
		records[i], _ = told(record, false, abandoned)
	}
	return records, err
}

// closeLost writes down what an owner before us could not. It is the first change of
// a run that has become ours.
type closeLost struct{ behind []store.RoundRecord } // those that the checkpoint has not caught up with

func (c *closeLost) store(f *files) error {
	if f.run == nil {
		return f.closeAbandoned()
	}
	cp, err := f.run.LoadCheckpoint()
	if err != nil && !errors.Is(err, store.ErrNoCheckpoint) {
		return err
	}
	records, err := f.rounds.Rounds()
	if err != nil { // what cannot be read stays as it is, and is listed with its problem
		f.logger.Warn("rounds that cannot be read are left alone", "run", f.run.ID, "error", err)
	}
	for _, record := range records {
		round := cp.Round(record.RoundID)
		closed, open := lostRound(record, round != nil, f.now())
		if record.CompletedAt.IsZero() {
			if err := f.rounds.SaveRound(closed); err != nil {
				return err
			}
			f.logger.Info("round of an earlier process closed", "round", record.RoundID, "lost", open)
		}
		if round != nil && slices.ContainsFunc(round.Lanes, unended) {
			c.behind = append(c.behind, closed)
		}
	}
	return nil
}

func unended(lane store.ReviewLane) bool {
	return lane.Status != store.LaneComplete && lane.Status != store.LaneFailed
}

// reduce brings the checkpoint up to the records: a crash may have come between them.
func (c *closeLost) reduce(now time.Time) store.Change {
	if len(c.behind) == 0 {
		return nil
	}
	return func(cp *store.Checkpoint) error {
		for _, record := range c.behind {
			for _, lane := range record.Lanes {
				round := cp.Round(record.RoundID)
				if round == nil || round.Lane(lane.LaneID) == nil || !unended(*round.Lane(lane.LaneID)) {
					continue
				}
				end := store.LaneEndedWithoutResult(record.RoundID, lane.LaneID, now)
				if lane.Status == store.LaneStatusComplete && lane.ResultFile != "" {
					end = store.LaneCompleted(record.RoundID, lane.LaneID, lane.ResultFile, now)
				}
				if err := end(cp); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// closeAbandoned closes the rounds without a run whose owners died. One that cannot
// be closed does not keep a new round from its work.
func (f *files) closeAbandoned() error {
	abandoned, err := f.rounds.Abandoned()
	if err != nil {
		return err
	}
	var failures []error
	for _, roundID := range abandoned {
		failures = append(failures, f.closeRound(roundID))
	}
	return errors.Join(failures...)
}

func (f *files) closeRound(roundID string) error {
	lease, err := f.rounds.Occupy(context.Background(), roundID)
	var owned *store.OwnedError
	if errors.As(err, &owned) { // somebody else closes it
		return nil
	}
	if err != nil {
		return err
	}
	record, err := f.rounds.LoadRound(roundID)
	if errors.Is(err, store.ErrNoRound) { // the crash came before its record
		return f.rounds.Vacate(lease)
	}
	if err == nil {
		closed, _ := lostRound(record, false, f.now())
		err = f.rounds.SaveRound(closed)
	}
	return errors.Join(err, f.rounds.Vacate(lease))
}

// occupy makes us the owner of a round without a run, which has one of its own.
func (f *files) occupy(roundID string) error {
	if f.run != nil {
		return nil
	}
	lease, err := f.rounds.Occupy(context.Background(), roundID)
	if err != nil {
		return err
	}
	f.occupied[roundID] = lease
	return nil
}

func (f *files) vacate(roundID string) error {
	lease := f.occupied[roundID]
	if lease == nil {
		return nil
	}
	delete(f.occupied, roundID)
	return f.rounds.Vacate(lease)
}
