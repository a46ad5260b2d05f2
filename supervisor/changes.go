package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
)

// beginRound records a round and all its lanes before the first child exists, so
// that no child's work can go unaccounted for (faults C39).
type beginRound struct {
	spec    *store.RoundSpec // nil for references: they are not in the checkpoint (spec: subagents 4.2)
	adopted []store.LaneRecord
	record  store.RoundRecord
}

func (c *beginRound) store(f *files) error {
	if err := f.occupy(c.record.RoundID); err != nil {
		return err
	}
	f.records[c.record.RoundID] = &c.record
	if err := f.rounds.SaveRound(c.record); err != nil {
		return errors.Join(err, f.vacate(c.record.RoundID))
	}
	return nil
}

func (c *beginRound) reduce(now time.Time) store.Change {
	if c.spec == nil {
		return nil
	}
	steps := []store.Change{startRoundOf(*c.spec, now)}
	for _, lane := range c.adopted {
		steps = append(steps, store.LaneCompleted(c.record.RoundID, lane.LaneID, lane.ResultFile, now))
	}
	return allOf(steps)
}

// allOf makes one change of several, of which some may find nothing to do.
func allOf(steps []store.Change) store.Change {
	return func(cp *store.Checkpoint) error {
		outcome := store.ErrNoChange
		for _, step := range steps {
			switch err := step(cp); {
			case err == nil:
				outcome = nil
			case !errors.Is(err, store.ErrNoChange):
				return err
			}
		}
		return outcome
	}
}

// startRoundOf starts or resumes a round. The plan's identity is brought up to
// date first when the recorded plan was edited in place.
func startRoundOf(spec store.RoundSpec, now time.Time) store.Change {
	return func(cp *store.Checkpoint) error {
		if err := refuseRound(cp, spec); err != nil {
			return err
		}
		edited := spec.Target == actors.TargetPlan && spec.Plan != nil && cp.Plan != nil &&
			cp.Plan.Path == spec.Plan.Path && cp.Plan.SHA256 != spec.Plan.SHA256
		if edited && cp.Round(spec.RoundID) == nil {
			if err := store.PlanWritten(*spec.Plan)(cp); err != nil {
				return err
			}
		}
		return store.RoundStartedOrResumed(spec, now)(cp)
	}
}

// recordLane records the end of one lane: its answer as a file first, then the
// ledger, the round's record and the checkpoint.
type recordLane struct {
	roundID    string
	durable    bool // the round is in the checkpoint
	outcome    actors.Outcome
	resultFile string // set by store: relative to the run
}

func (c *recordLane) store(f *files) error {
	result := c.outcome.Result
	if result.Status == lanes.Complete {
		file, err := f.rounds.WriteReview(c.roundID, result.LaneID, result.Output)
		if err != nil {
			return fmt.Errorf("store the answer of lane %s: %w", result.LaneID, err)
		}
		c.resultFile = file
	}
	if f.run != nil && result.Attempts > 0 {
		entry := store.Subagent{Role: string(c.role(f)), Name: c.outcome.Lane.Spec.Name, Model: c.model()}
		if _, err := f.run.AppendSubagent(entry, f.now()); err != nil {
			// The ledger is a log for people; a lane's answer does not depend on it.
			f.logger.Warn("subagent not recorded in the ledger", "lane", result.LaneID, "error", err)
		}
	}
	record := f.records[c.roundID]
	i := slices.IndexFunc(record.Lanes, func(l store.LaneRecord) bool { return l.LaneID == result.LaneID })
	if i < 0 {
		return fmt.Errorf("record lane %s: round %s has no such lane", result.LaneID, c.roundID)
	}
	record.Lanes[i] = laneRecord(c.outcome, c.resultFile, f.now())
	return f.rounds.SaveRound(*record)
}

func (c *recordLane) role(f *files) actors.Role { return actors.Role(f.records[c.roundID].Role) }

// model is what the child reported, else what was asked for, else nothing.
func (c *recordLane) model() *string {
	if c.outcome.Result.Model != "" {
		return &c.outcome.Result.Model
	}
	return optional(c.outcome.Lane.Spec.Model)
}

func (c *recordLane) reduce(now time.Time) store.Change {
	switch {
	case !c.durable:
		return nil
	case c.resultFile != "":
		return store.LaneCompleted(c.roundID, c.outcome.Result.LaneID, c.resultFile, now)
	default:
		return store.LaneEndedWithoutResult(c.roundID, c.outcome.Result.LaneID, now)
	}
}

// endRound closes the record of a round. Lanes whose end could not be recorded, as on a
// full disk or without descriptors, get their terminal record now, when the children
// of the round are gone and took what they used with them.
type endRound struct {
	roundID    string
	durable    bool // the round is in the checkpoint
	unrecorded []actors.Outcome
	late       []store.LaneRecord // set by store: those that got it now
}

func (c *endRound) store(f *files) error {
	record := f.records[c.roundID]
	delete(f.records, c.roundID)
	for _, o := range c.unrecorded {
		i := slices.IndexFunc(record.Lanes, func(l store.LaneRecord) bool { return l.LaneID == o.Result.LaneID })
		if i < 0 {
			continue
		}
		if !record.Lanes[i].Status.Terminal() {
			record.Lanes[i] = laneRecord(o, "", f.now())
		}
		c.late = append(c.late, record.Lanes[i])
	}
	record.CompletedAt = f.now()
	if err := f.rounds.SaveRound(*record); err != nil {
		return err
	}
	return f.vacate(c.roundID)
}

func (c *endRound) reduce(now time.Time) store.Change {
	if !c.durable || len(c.late) == 0 {
		return nil
	}
	var steps []store.Change
	for _, lane := range c.late {
		if lane.ResultFile != "" { // only the checkpoint lacks it
			steps = append(steps, store.LaneCompleted(c.roundID, lane.LaneID, lane.ResultFile, now))
		} else {
			steps = append(steps, store.LaneEndedWithoutResult(c.roundID, lane.LaneID, now))
		}
	}
	return allOf(steps)
}

// laneRecord is what the round's record keeps of a lane.
func laneRecord(o actors.Outcome, resultFile string, now time.Time) store.LaneRecord {
	record := queuedLane(o.Lane)
	record.Status = store.LaneStatus(o.Result.Status)
	record.Attempts = o.Result.Attempts
	record.Model = o.Result.Model
	record.Usage = store.LaneUsage(o.Result.Usage)
	record.Turns = o.Result.Turns
	record.DurationMs = o.Result.Duration.Milliseconds()
	record.Exit = store.LaneExit{Code: o.Result.Exit.Code, Signal: o.Result.Exit.Signal}
	if o.Result.Error != nil {
		record.Error = store.LaneError{Class: string(o.Result.Error.Class), Message: o.Result.Error.Message}
	} else {
		record.WellFormed = &o.Report.WellFormed
	}
	record.ResultFile = resultFile
	record.StartedAt = o.Result.Started
	record.CompletedAt = now
	return record
}

// queuedLane is the record of a lane that waits.
func queuedLane(lane actors.Lane) store.LaneRecord {
	record := store.LaneRecord{
		LaneID: lane.Spec.ID, Name: lane.Spec.Name, Lens: lane.Lens, Batch: lane.Batch, Status: store.LaneStatusQueued,
	}
	if lane.Ref != nil {
		record.RefID, record.RefDir = lane.Ref.ID, lane.Ref.LocalPath
	}
	return record
}
