package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"pilothouse/lanes/pijson"
	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// ExecutionOutcome is what became of an execution.
type ExecutionOutcome string

// The outcomes.
const (
	// ExecutionCompleted: every check has passed, and the review is over.
	ExecutionCompleted ExecutionOutcome = "completed"
	// ExecutionReviewPending: every check has passed; when the review ends is the
	// user's to say.
	ExecutionReviewPending ExecutionOutcome = "review-pending"
	// ExecutionStopped: it goes on with another call; Reason says why it stopped.
	ExecutionStopped ExecutionOutcome = "stopped"
	// ExecutionInterrupted: its caller left.
	ExecutionInterrupted ExecutionOutcome = "interrupted"
)

// ExecuteResult reports an execution, as `--json` prints it.
type ExecuteResult struct {
	RunID      string           `json:"runId"`
	PlanPath   string           `json:"planPath"`
	PlanSHA256 string           `json:"planSha256"`
	Outcome    ExecutionOutcome `json:"outcome"`
	// Reason says why it is not complete.
	Reason string          `json:"reason,omitempty"`
	Status store.RunStatus `json:"status"`
	Phase  store.Phase     `json:"phase"`
	Checks []CheckReport   `json:"checks"`
	Rounds []ReviewReport  `json:"rounds"` // of this call
	Model  string          `json:"model,omitempty"`
	Turns  int             `json:"turns"`
	// Usage is that of the executor in this call, Cost includes the reviews. Tokens count
	// all calls together.
	Usage      pijson.Usage     `json:"usage"`
	Cost       float64          `json:"cost"`
	Tokens     store.TokenUsage `json:"tokens"`
	DurationMs int64            `json:"durationMs"`
	// From is the commit at the approval, Changes what differs from it now.
	From       string             `json:"from,omitempty"`
	Changes    []store.FileChange `json:"changes"`
	Transcript string             `json:"transcript,omitempty"`
	Notes      []string           `json:"notes,omitempty"`
	// WayOut is the command that goes on, "" when there is nothing to do.
	WayOut string `json:"wayOut,omitempty"`
}

// CheckReport is one check of the plan.
type CheckReport struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Passed bool   `json:"passed"`
	// Commit is the one that was checked out when the check passed, Evidence what was said
	// of it then, in whichever call or session that was; "" where it is not on record.
	Commit   string `json:"commit,omitempty"`
	Evidence string `json:"evidence,omitempty"`
}

// concluded puts the run at rest, when it is not done, and reports.
func (h *headless) concluded(ctx context.Context) (ExecuteResult, error) {
	lasting := context.WithoutCancel(ctx)
	result := ExecuteResult{
		RunID: h.run.ID, PlanPath: h.plan, Rounds: slices.Concat([]ReviewReport{}, h.rounds), Model: h.spent.Model, Turns: h.spent.Turns,
		Usage: h.spent.Usage, Cost: h.spent.Usage.Cost, DurationMs: time.Since(h.began).Milliseconds(), Transcript: h.diary, Notes: h.spent.Notes,
		Checks: []CheckReport{}, Changes: []store.FileChange{},
	}
	for _, round := range h.rounds {
		result.Cost += round.Cost
	}
	if end := h.spent.Error; end != nil && ctx.Err() == nil {
		h.stop(end.Message)
	}
	h.settleSeat(lasting, h.session.ID)
	cp, err := h.run.LoadCheckpoint()
	if err != nil {
		return result, err
	}
	result.Outcome, result.Reason = h.outcome(ctx, cp)
	if cp.Phase == store.PhaseExecuting {
		if _, err := h.StopRun(lasting, h.session, h.run.ID, result.Reason); err != nil {
			result.Notes = append(result.Notes, err.Error())
		}
	}
	if h.spent.Turns > 0 {
		h.recordExecutor(lasting)
	}
	if result.Outcome != ExecutionCompleted {
		result.WayOut = "pilothouse execute --run " + h.run.ID
	}
	return result, h.describe(lasting, &result, cp)
}

// outcome says what became of it, and why.
func (h *headless) outcome(ctx context.Context, cp store.Checkpoint) (ExecutionOutcome, string) {
	switch {
	case cp.Phase == store.PhaseCompleted:
		return ExecutionCompleted, ""
	case ctx.Err() != nil:
		return ExecutionInterrupted, fmt.Sprint(context.Cause(ctx))
	case h.stopped == "" && cp.Phase == store.PhaseImplementationReview:
		return ExecutionReviewPending, "when the review of the implementation ends is not decided; choose with --review"
	case h.stopped == "":
		return ExecutionStopped, "it ended before every check had passed"
	}
	return ExecutionStopped, h.stopped
}

// recordExecutor leaves a line in the ledger of subagents, which is a log for people.
func (h *headless) recordExecutor(ctx context.Context) {
	entry := store.Subagent{Role: "executor", Name: "pi-plans-executor-" + h.run.ID, Model: optional(h.spent.Model)}
	err := h.changeFiles(ctx, h.session, "record-executor", h.run.ID, func(f *files) error {
		_, err := f.run.AppendSubagent(entry, f.now())
		return err
	})
	if err != nil {
		h.logger.Warn("executor not recorded in the ledger", "run", h.run.ID, "error", err)
	}
}

// describe fills in what is on record and in the work tree now.
func (h *headless) describe(ctx context.Context, result *ExecuteResult, cp store.Checkpoint) error {
	run, err := h.run.Load()
	if err != nil {
		return err
	}
	result.Status, result.Phase = run.Status, cp.Phase
	if cp.Plan != nil {
		result.PlanSHA256 = cp.Plan.SHA256
	}
	var done []string
	var noted store.ExecutionNotes
	if at := cp.Execution; at != nil {
		done, result.Tokens = at.DoneVCIDs, at.Usage
		if at.Approval != nil && at.Approval.HeadAtApproval != nil {
			result.From = *at.Approval.HeadAtApproval
		}
		if notes := h.notesOf(h.run).Execution; at.Approval != nil && notes.Of(*at.Approval) {
			noted = *notes
		}
	}
	if text, err := os.ReadFile(h.plan); err != nil {
		result.Notes = append(result.Notes, "the plan cannot be read any more: "+err.Error())
	} else {
		for _, check := range execution.Parse(string(text)).Checks {
			report := CheckReport{ID: check.ID, Text: check.Text, Passed: slices.Contains(done, check.ID)}
			if report.Passed {
				report.Commit = noted.Verified[check.ID]
				report.Evidence = cmp.Or(h.again[check.ID], noted.Evidence[check.ID])
			}
			result.Checks = append(result.Checks, report)
		}
	}
	if result.From != "" {
		changes, err := store.DiffStat(ctx, h.root.Worktree, result.From)
		if err != nil {
			result.Notes = append(result.Notes, err.Error())
		}
		result.Changes = slices.Concat([]store.FileChange{}, changes)
	}
	return nil
}
