package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pilothouse/actors"
	"pilothouse/store"
)

// ReviewReport is one round of the review of an implementation.
type ReviewReport struct {
	RoundID  string `json:"roundId"`
	Lanes    int    `json:"lanes"`
	Complete int    `json:"complete"`
	// Findings counts them by severity.
	Findings map[string]int `json:"findings"`
	// Disposition is the file of what the executor did about each, "" before it has.
	Disposition string  `json:"disposition,omitempty"`
	Cost        float64 `json:"cost"`
}

// review goes on with the review of the implementation: it returns the findings of the
// next round for the executor, or "" when the review is over, or is the user's to begin.
func (h *headless) review(ctx context.Context) (next string, err error) {
	for {
		cp, err := h.run.LoadCheckpoint()
		if err != nil {
			return "", err
		}
		if cp.ImplementationReview == nil || cp.ImplementationReview.TerminationCondition == "" {
			if h.req.Review.Condition == "" {
				return "", nil
			}
			if cp, err = h.record(ctx, CheckpointParams{Transition: "implementation-review-configured", TerminationCondition: h.req.Review.Condition}); err != nil {
				return "", err
			}
		}
		review := cp.ImplementationReview
		if review.CurrentRoundID == "" && review.CompletedRounds > 0 {
			over, err := h.complete(ctx, *review)
			if over || err != nil {
				return "", err
			}
		}
		result, err := h.Refine(ctx, RefineRequest{
			Session: h.session, PlanPath: h.plan, Role: actors.Reviewer, Target: actors.TargetImplementation, Reviewers: h.lanesOf(cp),
			Model: h.req.Review.Model, RunID: h.run.ID, ResumeRoundID: review.CurrentRoundID, Limits: h.req.Review.Limits,
		}, h.watch)
		if err != nil || ctx.Err() != nil {
			return "", err
		}
		h.rounds = append(h.rounds, reportRound(result))
		if result.Complete() == 0 {
			h.stop("no reviewer of the implementation has answered")
			return "", nil
		}
		h.fixing = &result
		if findings := findingsText(result); findings != "" {
			return fixing(result, findings), nil
		}
		if err := h.closeRound(ctx, "The reviewers have found nothing."); err != nil {
			return "", err
		}
	}
}

// lanesOf is how many reviewers look at it; a round that goes on keeps its own.
func (h *headless) lanesOf(cp store.Checkpoint) int {
	if cp.ImplementationReview.CurrentRoundID != "" {
		return 0
	}
	return h.req.Review.Reviewers
}

// complete ends the review if its condition is met.
func (h *headless) complete(ctx context.Context, review store.ImplementationReview) (over bool, err error) {
	_, err = h.record(ctx, CheckpointParams{Transition: "completed", Evidence: fmt.Sprintf("every check has passed; %d review rounds", review.CompletedRounds)})
	var notYet *store.StateError
	if errors.As(err, &notYet) {
		return false, nil
	}
	return err == nil, err
}

// record makes a step of the workflow as an agent would with the plans tool.
func (h *headless) record(ctx context.Context, step CheckpointParams) (store.Checkpoint, error) {
	value, err := h.Plans(context.WithoutCancel(ctx), h.session, PlansAction{Action: "record-checkpoint", RunID: h.run.ID, Checkpoint: &step})
	cp, _ := value.(store.Checkpoint)
	return cp, err
}

// fixed takes what the executor did about the findings on record, and goes on.
func (h *headless) fixed(ctx context.Context, rested actors.ExecutorRested) (string, error) {
	if rested.Aborted || rested.StopReason != "stop" {
		h.stop("the executor stopped with " + rested.StopReason + failureOf(rested) + " while it worked on findings")
		return "", nil
	}
	if err := h.closeRound(ctx, h.turn.Text); err != nil {
		return "", err
	}
	return h.review(ctx)
}

// closeRound consolidates the round at work with what became of its findings.
func (h *headless) closeRound(ctx context.Context, disposition string) error {
	roundID := h.fixing.RoundID
	file := ""
	_, err := h.changeRun(context.WithoutCancel(ctx), h.session, "close-round", h.run.ID, func(context.Context, store.RunDir) (*planChange, error) {
		return &planChange{
			files: func(f *files) (_ any, err error) {
				file, err = f.run.WriteReview(roundID, "disposition", disposition+"\n")
				return nil, err
			},
			step: func(now time.Time) store.Change {
				return allOf([]store.Change{store.ReviewConsolidated(roundID, file, now), store.ReviewRoundFinished()})
			},
		}, nil
	})
	if err != nil {
		return err
	}
	h.fixing = nil
	h.rounds[len(h.rounds)-1].Disposition = file
	return nil
}

func reportRound(result RoundResult) ReviewReport {
	report := ReviewReport{RoundID: result.RoundID, Lanes: len(result.Lanes), Complete: result.Complete(), Findings: map[string]int{}}
	for _, lane := range result.Lanes {
		for _, finding := range lane.Findings {
			report.Findings[finding.Severity]++
		}
		if !lane.Reused { // paid for by the call that ran it
			report.Cost += lane.Usage.Cost
		}
	}
	return report
}

// findingsText is the answers that hold something to work on, each as it was given.
func findingsText(result RoundResult) string {
	var text strings.Builder
	for _, lane := range result.Lanes {
		clean := lane.WellFormed != nil && *lane.WellFormed && len(lane.Findings) == 0
		if lane.Error == nil && !clean {
			fmt.Fprintf(&text, "\n### %s\n\n%s\n", lane.LaneID, strings.TrimSpace(lane.Output))
		}
	}
	return text.String()
}

// fixing is what the executor is told of a review.
func fixing(result RoundResult, findings string) string {
	return fmt.Sprintf(`Every check has passed. Now %d independent reviewers have looked at the implementation (round %s). Their findings are material to judge, not orders.

Judge each finding on its evidence, as it is in the files now. Mend what is right, within the plan that was approved, and run the checks again that it touches. Leave what is wrong or goes beyond the plan, and say why.

End with one message that lists every finding as accepted or rejected, each with what was changed and how it was tested, or with the reason. Nothing is asked back: nobody can answer.
%s`, len(result.Lanes), result.RoundID, findings)
}
