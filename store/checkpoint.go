package store

import "reflect"

// Phase is the logical state of a run's workflow.
type Phase string

// The phases (spec: checkpoint 2.1).
const (
	PhasePlanning             Phase = "planning"
	PhaseReviewing            Phase = "reviewing"
	PhaseExecuting            Phase = "executing"
	PhaseImplementationReview Phase = "implementation-review"
	PhaseCompleted            Phase = "completed"
)

// NextAction is what the workflow waits for.
type NextAction string

// The next actions (spec: checkpoint 2.1).
const (
	ActionAskQuestion       NextAction = "ask-question"
	ActionContinuePlanning  NextAction = "continue-planning"
	ActionRunReview         NextAction = "run-review"
	ActionConsolidateReview NextAction = "consolidate-review"
	ActionRevisePlan        NextAction = "revise-plan"
	ActionAcceptExecute     NextAction = "accept-execute"
	ActionExecuteItems      NextAction = "execute-items"
	ActionApplyReviewFixes  NextAction = "apply-review-fixes"
	ActionVerifyReviewFixes NextAction = "verify-review-fixes"
	ActionFinishReview      NextAction = "finish-review"
	ActionNone              NextAction = "none"
)

// Roles and targets of a review round.
const (
	RoleReviewer   = "reviewer"
	RoleCriticizer = "criticizer"

	TargetPlan           = "plan"
	TargetImplementation = "implementation"
)

// States of a lane in the checkpoint.
const (
	LanePending  = "pending"
	LaneRunning  = "running"
	LaneComplete = "complete"
	LaneFailed   = "failed"
)

// Sources of an answer in the checkpoint.
const (
	AnswerUser         = "user"
	AnswerAutoComplete = "auto-complete"
	AnswerOther        = "other"
)

// Checkpoint is checkpoint.json, the durable workflow state of a run (spec:
// checkpoint 2.1). Times are written by [Stamp]. Keys that newer writers are known
// to add are kept; any other unknown key makes the file corrupt.
type Checkpoint struct {
	Schema               int                   `json:"schema"`
	RunID                string                `json:"runId"`
	Revision             int                   `json:"revision"`
	Generation           int                   `json:"generation"`
	UpdatedAt            string                `json:"updatedAt"`
	Phase                Phase                 `json:"phase"`
	NextAction           NextAction            `json:"nextAction"`
	OriginWorkdir        string                `json:"originWorkdir"`
	Workdir              string                `json:"workdir"`
	WorktreeRoot         string                `json:"worktreeRoot"`
	CommonDir            string                `json:"commonDir"`
	Plan                 *PlanIdentity         `json:"plan" store:"null,optional"`
	PendingQuestion      *PendingQuestion      `json:"pendingQuestion" store:"null,optional"`
	AnsweredQuestions    []AnsweredQuestion    `json:"answeredQuestions" store:"optional,lax"`
	ReviewRounds         []ReviewRound         `json:"reviewRounds" store:"optional,lax"`
	ImplementationReview *ImplementationReview `json:"implementationReview,omitempty"`
	Execution            *Execution            `json:"execution,omitempty"`
	AutoComplete         *bool                 `json:"autoComplete,omitempty"`
	Owner                *CheckpointOwner      `json:"owner,omitempty" store:"null"`
	Migration            *Migration            `json:"migration,omitempty" store:"null"`
	Extra                Extra                 `json:"-" later:"pendingQuestions,huge"`
}

// PendingQuestion is a question that was put to the user and has no answer yet.
type PendingQuestion struct {
	QuestionID   string   `json:"questionId"`
	Question     string   `json:"question"`
	Options      []string `json:"options"`
	Purpose      string   `json:"purpose,omitempty"`
	AllowOther   *bool    `json:"allowOther,omitempty"`
	AutoComplete *bool    `json:"autoComplete,omitempty"`
	AskedAt      string   `json:"askedAt"`
	Extra        Extra    `json:"-"`
}

// AnsweredQuestion is a question and its answer.
type AnsweredQuestion struct {
	QuestionID string `json:"questionId"`
	Answer     string `json:"answer"`
	// Source is AnswerUser, AnswerAutoComplete or AnswerOther.
	Source     string `json:"source"`
	AnsweredAt string `json:"answeredAt"`
	Extra      Extra  `json:"-"`
}

// ReviewRound is a round of reviews of the plan or the implementation.
type ReviewRound struct {
	RoundID             string       `json:"roundId"`
	Role                string       `json:"role"`
	Target              string       `json:"target"`
	PlanSHA256          string       `json:"planSha256,omitempty" store:"filled"`
	Focus               string       `json:"focus,omitempty"`
	Context             string       `json:"context,omitempty"`
	Reviewers           int          `json:"reviewers"`
	Lanes               []ReviewLane `json:"lanes" store:"optional,lax"`
	Consolidated        bool         `json:"consolidated"`
	DispositionArtifact string       `json:"dispositionArtifact,omitempty" store:"filled"`
	StartedAt           string       `json:"startedAt"`
	CompletedAt         string       `json:"completedAt,omitempty" store:"filled"`
	OriginWorktree      string       `json:"originWorktree,omitempty"`
	Extra               Extra        `json:"-"`
}

// Lane returns the lane with an id, or nil.
func (round *ReviewRound) Lane(id string) *ReviewLane {
	for i := range round.Lanes {
		if round.Lanes[i].LaneID == id {
			return &round.Lanes[i]
		}
	}
	return nil
}

// ReviewLane is one subagent of a review round.
type ReviewLane struct {
	LaneID string `json:"laneId"`
	Lens   string `json:"lens,omitempty"`
	// Status is LanePending, LaneRunning, LaneComplete or LaneFailed.
	Status string `json:"status"`
	// ResultFile is relative to the run directory; only complete lanes have one.
	ResultFile  string `json:"resultFile,omitempty" store:"filled"`
	StartedAt   string `json:"startedAt,omitempty" store:"filled"`
	CompletedAt string `json:"completedAt,omitempty" store:"filled"`
	Extra       Extra  `json:"-"`
}

// Reusable tells whether the result of the lane can be used without running it again.
func (l ReviewLane) Reusable() bool { return l.Status == LaneComplete && l.ResultFile != "" }

// ImplementationReview is how far the review of the implementation is.
type ImplementationReview struct {
	TerminationCondition string `json:"terminationCondition,omitempty"`
	CompletedRounds      int    `json:"completedRounds"`
	CurrentRoundID       string `json:"currentRoundId,omitempty" store:"filled"`
	Extra                Extra  `json:"-" later:"reviewerCount"`
}

// Execution is the approval of a plan and how far its execution is.
type Execution struct {
	// Approval is nil after a move to another work tree: it must be given again.
	Approval     *Approval         `json:"approval" store:"null,optional"`
	DoneVCIDs    []string          `json:"doneVcIds" store:"optional"`
	ImplStatus   map[string]string `json:"implStatus" store:"optional"`
	CurrentI     string            `json:"currentI,omitempty"`
	Usage        TokenUsage        `json:"usage" store:"optional"`
	PausedReason string            `json:"pausedReason,omitempty"`
	// ReverifyAll tells that nothing done so far may be taken as verified.
	ReverifyAll    *bool  `json:"reverifyAll,omitempty"`
	OriginWorktree string `json:"originWorktree,omitempty"`
	Extra          Extra  `json:"-" later:"delegate,tasks,audit,stallRounds,planAmended,blocked,reviewBudget,reviewBudgetDefaulted,reviewRoundsTotal,reviewCapExtension,reviewNoProgress,reviewNonHighRepair,reviewNonHighCredits,executor"`
}

// MustReverify tells whether the flag is set.
func (e Execution) MustReverify() bool { return e.ReverifyAll != nil && *e.ReverifyAll }

// TokenUsage counts tokens of an execution.
type TokenUsage struct {
	InToks  int   `json:"inToks" store:"optional"`
	OutToks int   `json:"outToks" store:"optional"`
	Extra   Extra `json:"-"`
}

// Approval is the evidence that the user let a plan be executed.
type Approval struct {
	Plan     PlanIdentity `json:"plan"`
	Worktree string       `json:"worktree"`
	// HeadAtApproval is nil when there was no commit.
	HeadAtApproval *string `json:"headAtApproval" store:"null,optional"`
	ApprovedAt     string  `json:"approvedAt"`
	Extra          Extra   `json:"-"`
}

// CheckpointOwner may be embedded by other writers; owner.json is what counts.
type CheckpointOwner struct {
	Host         string  `json:"host"`
	PID          int     `json:"pid"`
	SessionID    *string `json:"sessionId,omitempty" store:"null"`
	ProcessToken string  `json:"processToken"`
	Generation   int     `json:"generation"`
	AcquiredAt   string  `json:"acquiredAt"`
	Extra        Extra   `json:"-"`
}

// Migration tells which work tree the run came from.
type Migration struct {
	FromWorktree string `json:"fromWorktree"`
	MigratedAt   string `json:"migratedAt"`
	Extra        Extra  `json:"-"`
}

// MarshalJSON writes the checkpoint with all it was read with.
func (c Checkpoint) MarshalJSON() ([]byte, error) { return encodeValue(reflect.ValueOf(c), nil) }

// UnmarshalJSON reads a checkpoint as strictly as from its file.
func (c *Checkpoint) UnmarshalJSON(data []byte) error {
	*c = Checkpoint{}
	return decodeDocument(data, c)
}

// Clone returns a copy that shares nothing a caller could change.
func (c Checkpoint) Clone() Checkpoint { return cloneOf(c) }

// Round returns the round with an id, or nil.
func (c *Checkpoint) Round(id string) *ReviewRound {
	for i := range c.ReviewRounds {
		if c.ReviewRounds[i].RoundID == id {
			return &c.ReviewRounds[i]
		}
	}
	return nil
}

// Answered tells whether a question has its answer.
func (c *Checkpoint) Answered(questionID string) bool {
	for _, answered := range c.AnsweredQuestions {
		if answered.QuestionID == questionID {
			return true
		}
	}
	return false
}
