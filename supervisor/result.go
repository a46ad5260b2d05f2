package supervisor

import (
	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
)

// RoundResult is the result of a round as `--json` prints it (design: the
// command line).
type RoundResult struct {
	RunID   string       `json:"runId"`
	RoundID string       `json:"roundId"`
	Role    actors.Role  `json:"role"`
	Target  string       `json:"target,omitempty"` // refine only
	Model   *string      `json:"model"`            // requested selector; null inherits
	Lanes   []LaneResult `json:"lanes"`
	// Findings are those of all reviewers, the same fault once (reviewer only).
	Findings []actors.MergedFinding `json:"findings,omitempty"`
	// Text is the result as the asking agent reads it.
	Text string `json:"text"`
	// Stored is the directory of the full answers.
	Stored  string   `json:"stored,omitempty"`
	Notices []string `json:"notices,omitempty"`
}

// LaneResult is one lane of a [RoundResult].
type LaneResult struct {
	LaneID     string         `json:"laneId"`
	Lens       *string        `json:"lens,omitempty"`  // reviewer lanes; null for a general review
	RefID      string         `json:"refId,omitempty"` // ref-analyst lanes
	Batch      int            `json:"batch,omitempty"` // ref-analyst lanes, 1-based
	Name       string         `json:"name"`
	Status     lanes.Status   `json:"status"`
	Attempts   int            `json:"attempts"`
	Model      *string        `json:"model"` // as the child reported it
	Usage      pijson.Usage   `json:"usage"`
	Turns      int            `json:"turns"`
	DurationMs int64          `json:"durationMs"`
	Exit       ExitResult     `json:"exit"`
	Error      *lanes.Failure `json:"error"`      // null iff complete
	ResultFile *string        `json:"resultFile"` // absolute; null when nothing was stored
	// Transcript is the file of what the lane said and did; null when it did not
	// run in this call. It is a cache and may be deleted.
	Transcript *string  `json:"transcript"`
	Output     string   `json:"output"`
	Reused     bool     `json:"reused,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	Stderr     string   `json:"stderr,omitempty"` // of a lane that is not complete

	// WellFormed tells whether the answer fits the role's grammar; null when
	// there is no answer. Problems say what is off.
	WellFormed *bool               `json:"wellFormed"`
	Problems   []string            `json:"problems,omitempty"`
	Findings   []actors.Finding    `json:"findings,omitempty"`  // reviewer
	Holds      *bool               `json:"holds,omitempty"`     // reviewer, criticizer: the plan holds
	Summary    string              `json:"summary,omitempty"`   // criticizer
	Questions  []actors.Question   `json:"questions,omitempty"` // criticizer
	Sections   *actors.RefSections `json:"sections,omitempty"`  // ref-analyst
}

// ExitResult is how the last child of a lane ended; both are null when no child
// was started.
type ExitResult struct {
	Code   *int    `json:"code"`
	Signal *string `json:"signal"`
}

// Complete counts the lanes that are complete.
func (r RoundResult) Complete() int {
	n := 0
	for _, lane := range r.Lanes {
		if lane.Status == lanes.Complete {
			n++
		}
	}
	return n
}

func newLaneResult(o actors.Outcome, resultFile string) LaneResult {
	r := LaneResult{
		LaneID: o.Lane.Spec.ID, Name: o.Lane.Spec.Name,
		Status: o.Result.Status, Attempts: o.Result.Attempts,
		Model: optional(o.Result.Model), Usage: o.Result.Usage, Turns: o.Result.Turns,
		DurationMs: o.Result.Duration.Milliseconds(),
		Exit:       ExitResult{Code: o.Result.Exit.Code, Signal: optional(o.Result.Exit.Signal)},
		Error:      o.Result.Error, ResultFile: optional(resultFile), Output: o.Result.Output,
		Reused: o.Reused, Notes: o.Result.Notes, Problems: o.Report.Problems,
	}
	if !o.Reused && o.Result.Attempts > 0 {
		r.Transcript = optional(o.Lane.Spec.Transcript)
	}
	if o.Lane.Ref != nil {
		r.RefID, r.Batch = o.Lane.Ref.ID, o.Lane.Batch
	} else {
		r.Lens = optional(o.Lane.Lens)
	}
	if o.Result.Status != lanes.Complete {
		r.Stderr = o.Result.Stderr
		return r
	}
	r.WellFormed = &o.Report.WellFormed
	switch {
	case o.Report.Review != nil:
		r.Findings, r.Holds = o.Report.Review.Findings, &o.Report.Review.Holds
	case o.Report.Criticism != nil:
		r.Summary, r.Questions, r.Holds = o.Report.Criticism.Summary, o.Report.Criticism.Questions, &o.Report.Criticism.Holds
	case o.Report.Analysis != nil:
		r.Sections = o.Report.Analysis
	}
	return r
}

// optional makes null of an empty string.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
