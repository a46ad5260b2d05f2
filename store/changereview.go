package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RoundSpec asks for a round of reviews.
type RoundSpec struct {
	RoundID string
	// Role is RoleReviewer or RoleCriticizer, Target TargetPlan or TargetImplementation.
	Role, Target string
	Lanes        []LaneSpec
	// Plan is the identity of the plan file as it is now; nil when none was named.
	Plan           *PlanIdentity
	Focus, Context string
}

// LaneSpec asks for one lane of a round.
type LaneSpec struct{ LaneID, Lens string }

// DefaultRoundID names a round by what it does and when it starts.
func DefaultRoundID(target, role string, now time.Time) string {
	return fmt.Sprintf("%s-%s-r%s", target, role, strconv.FormatInt(now.UnixMilli(), 36))
}

// CheckResume tells whether a round can go on as the spec asks: same role, target
// and lanes, and the plan has not changed since. The error is a *StateError.
func (round *ReviewRound) CheckResume(spec RoundSpec) error {
	step := "resume round " + round.RoundID
	if round.Role != spec.Role || round.Target != spec.Target {
		return refuse(step, "it is a %s round of the %s", round.Role, round.Target)
	}
	var have, want []string
	for _, lane := range round.Lanes {
		have = append(have, lane.LaneID)
	}
	for _, lane := range spec.Lanes {
		want = append(want, lane.LaneID)
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return refuse(step, "it has different lanes, %v", have)
	}
	if spec.Plan != nil && round.PlanSHA256 != "" && round.PlanSHA256 != spec.Plan.SHA256 {
		return refuse(step, "it was started for a different plan version; start a new round")
	}
	return nil
}

// RoundStartedOrResumed starts the round, or finds that it can be resumed and
// returns ErrNoChange (spec: checkpoint 2.4). A review of the plan records the plan
// when none is recorded yet.
func RoundStartedOrResumed(spec RoundSpec, now time.Time) Change {
	return func(cp *Checkpoint) error {
		if round := cp.Round(spec.RoundID); round != nil {
			if err := round.CheckResume(spec); err != nil {
				return err
			}
			return ErrNoChange
		}
		if spec.Target == TargetPlan && cp.Plan == nil && spec.Plan != nil {
			trial := cp.Clone()
			if err := PlanWritten(*spec.Plan)(&trial); err != nil {
				return err
			}
			if err := RoundStarted(spec, now)(&trial); err != nil {
				return err
			}
			*cp = trial
			return nil
		}
		return RoundStarted(spec, now)(cp)
	}
}

// RoundStarted adds a round with all lanes pending.
func RoundStarted(spec RoundSpec, now time.Time) Change {
	return func(cp *Checkpoint) error {
		step := "start round " + spec.RoundID
		if err := refusePhase(step, cp, PhasePlanning, PhaseReviewing, PhaseImplementationReview); err != nil {
			return err
		}
		if cp.Round(spec.RoundID) != nil {
			return refuse(step, "there is one with this id")
		}
		if len(spec.Lanes) == 0 {
			return refuse(step, "it has no lanes")
		}
		switch spec.Target {
		case TargetPlan:
			if cp.Plan == nil {
				return refuse(step, "no plan is recorded")
			}
		case TargetImplementation:
			if cp.Phase != PhaseImplementationReview {
				return refuse(step, "the phase is %s, not %s", cp.Phase, PhaseImplementationReview)
			}
			if cp.ImplementationReview == nil || cp.ImplementationReview.TerminationCondition == "" {
				return refuse(step, "no termination condition is set")
			}
			cp.ImplementationReview.CurrentRoundID = spec.RoundID
		}
		cp.ReviewRounds = append(cp.ReviewRounds, newRound(cp, spec, now))
		return nil
	}
}

func newRound(cp *Checkpoint, spec RoundSpec, now time.Time) ReviewRound {
	round := ReviewRound{
		RoundID: spec.RoundID, Role: spec.Role, Target: spec.Target, Focus: spec.Focus, Context: spec.Context,
		Reviewers: len(spec.Lanes), StartedAt: Stamp(now), OriginWorktree: cp.WorktreeRoot,
	}
	switch {
	case spec.Plan != nil:
		round.PlanSHA256 = spec.Plan.SHA256
	case cp.Plan != nil:
		round.PlanSHA256 = cp.Plan.SHA256
	}
	for _, lane := range spec.Lanes {
		round.Lanes = append(round.Lanes, ReviewLane{
			LaneID: lane.LaneID, Lens: lane.Lens, Status: LanePending, StartedAt: round.StartedAt,
		})
	}
	return round
}

// LaneCompleted records the result of a lane, a file that is already on disk (see
// [RunDir.WriteReview]). The same result again changes nothing but is no error; a
// failed lane may still complete, even after the round was consolidated.
func LaneCompleted(roundID, laneID, resultFile string, now time.Time) Change {
	return func(cp *Checkpoint) error {
		step := fmt.Sprintf("complete lane %s of round %s", laneID, roundID)
		lane, err := findLane(step, cp, roundID, laneID)
		if err != nil {
			return err
		}
		if resultFile == "" {
			return refuse(step, "it has no result file")
		}
		file, err := CleanRelative(resultFile)
		if err != nil {
			return refuse(step, "its result file %q leaves the run", resultFile)
		}
		if lane.Status == LaneComplete {
			if lane.ResultFile != file {
				return refuse(step, "it is complete with another result, %s", lane.ResultFile)
			}
			return nil
		}
		lane.Status, lane.ResultFile, lane.CompletedAt = LaneComplete, file, Stamp(now)
		return nil
	}
}

// LaneEndedWithoutResult records that a lane failed or was cancelled. Why is kept
// in the round record, the checkpoint has no room for it.
func LaneEndedWithoutResult(roundID, laneID string, now time.Time) Change {
	return func(cp *Checkpoint) error {
		step := fmt.Sprintf("fail lane %s of round %s", laneID, roundID)
		lane, err := findLane(step, cp, roundID, laneID)
		if err != nil {
			return err
		}
		if lane.Status == LaneComplete {
			return refuse(step, "it is complete already")
		}
		lane.Status, lane.CompletedAt = LaneFailed, Stamp(now)
		return nil
	}
}

func findLane(step string, cp *Checkpoint, roundID, laneID string) (*ReviewLane, error) {
	round := cp.Round(roundID)
	if round == nil {
		return nil, refuse(step, "there is no such round")
	}
	lane := round.Lane(laneID)
	if lane == nil {
		return nil, refuse(step, "there is no such lane")
	}
	return lane, nil
}

// ReviewConsolidated closes a round whose lanes have all ended. A round of
// reviewers needs one result at least. The disposition is a path below the run
// directory, or empty.
func ReviewConsolidated(roundID, disposition string, now time.Time) Change {
	return func(cp *Checkpoint) error {
		step := "consolidate round " + roundID
		round := cp.Round(roundID)
		if round == nil {
			return refuse(step, "there is no such round")
		}
		if round.Consolidated {
			return ErrNoChange
		}
		complete := 0
		for _, lane := range round.Lanes {
			switch lane.Status {
			case LaneComplete:
				complete++
			case LaneFailed:
			default:
				return refuse(step, "lane %s is still %s", lane.LaneID, lane.Status)
			}
		}
		if len(round.Lanes) == 0 || round.Role == RoleReviewer && complete == 0 {
			return refuse(step, "no lane has a result")
		}
		if disposition != "" {
			file, err := CleanRelative(disposition)
			if err != nil {
				return refuse(step, "the disposition artifact %q leaves the run", disposition)
			}
			round.DispositionArtifact = file
		}
		round.Consolidated, round.CompletedAt = true, Stamp(now)
		return nil
	}
}

// ReviewConfigured sets when the review of the implementation ends. It can be set once.
func ReviewConfigured(terminationCondition string) Change {
	return func(cp *Checkpoint) error {
		const step = "configure the implementation review"
		if err := refusePhase(step, cp, PhaseImplementationReview); err != nil {
			return err
		}
		if strings.TrimSpace(terminationCondition) == "" {
			return refuse(step, "the termination condition is empty")
		}
		review := cp.ImplementationReview
		if review != nil && review.TerminationCondition != "" {
			return refuse(step, "it is configured already: %s", review.TerminationCondition)
		}
		if review == nil {
			review = &ImplementationReview{}
			cp.ImplementationReview = review
		}
		review.TerminationCondition = terminationCondition
		cp.NextAction = ActionRunReview
		return nil
	}
}

// ReviewRoundFinished counts the current round of the implementation review.
func ReviewRoundFinished() Change {
	return func(cp *Checkpoint) error {
		const step = "finish the implementation round"
		if err := refusePhase(step, cp, PhaseImplementationReview); err != nil {
			return err
		}
		review := cp.ImplementationReview
		if review == nil || review.CurrentRoundID == "" {
			return refuse(step, "none is running")
		}
		if round := cp.Round(review.CurrentRoundID); round == nil || !round.Consolidated {
			return refuse(step, "round %s is not consolidated", review.CurrentRoundID)
		}
		review.CompletedRounds++
		review.CurrentRoundID = ""
		return nil
	}
}

// Completed ends the workflow. The evidence is asked for but not stored.
func Completed(evidence string) Change {
	return func(cp *Checkpoint) error {
		const step = "complete"
		if err := refusePhase(step, cp, PhaseImplementationReview); err != nil {
			return err
		}
		if cp.ImplementationReview == nil || cp.ImplementationReview.TerminationCondition == "" {
			return refuse(step, "no termination condition is set")
		}
		if strings.TrimSpace(evidence) == "" {
			return refuse(step, "the evidence is empty")
		}
		cp.Phase, cp.NextAction = PhaseCompleted, ActionNone
		return nil
	}
}
