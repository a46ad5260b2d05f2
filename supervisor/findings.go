package supervisor

import (
	"pilothouse/actors"
	"pilothouse/store"
)

// RoundFindings are the findings of the reviewers of one round.
type RoundFindings struct {
	RoundID  string                 `json:"roundId"`
	Target   string                 `json:"target"`
	Findings []actors.MergedFinding `json:"findings"`
}

// consolidated are the findings of the lanes of a round, nil when none reports any.
func consolidated(lanes []LaneResult) []actors.MergedFinding {
	var reviews []actors.LaneFindings
	for _, lane := range lanes {
		if len(lane.Findings) > 0 {
			reviews = append(reviews, actors.LaneFindings{LaneID: lane.LaneID, Findings: lane.Findings})
		}
	}
	if reviews == nil {
		return nil
	}
	return actors.Consolidate(reviews)
}

// roundFindings reads the findings of the reviews of a run, round by round. A review that
// cannot be read is left out; its lane tells where it should be.
func roundFindings(run store.RunDir, cp store.Checkpoint) []RoundFindings {
	var all []RoundFindings
	for _, round := range cp.ReviewRounds {
		if round.Role != store.RoleReviewer {
			continue
		}
		var reviews []actors.LaneFindings
		for _, review := range reviewsOf(run, round) {
			if len(review.Findings) > 0 {
				reviews = append(reviews, actors.LaneFindings{LaneID: review.laneID, Findings: review.Findings})
			}
		}
		if reviews != nil {
			all = append(all, RoundFindings{RoundID: round.RoundID, Target: round.Target, Findings: actors.Consolidate(reviews)})
		}
	}
	return all
}

// laneReview is the answer of one lane.
type laneReview struct {
	laneID string
	actors.Review
}

// reviewsOf reads the answers of a round of reviewers that can be read.
func reviewsOf(run store.RunDir, round store.ReviewRound) []laneReview {
	var reviews []laneReview
	for _, lane := range round.Lanes {
		if !lane.Reusable() {
			continue
		}
		if text, err := run.ReadReview(lane.ResultFile); err == nil {
			reviews = append(reviews, laneReview{lane.LaneID, actors.ParseReview(text)})
		}
	}
	return reviews
}
