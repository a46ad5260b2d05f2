package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
)

// ExecuteRequest asks for a plan to be carried out without a Pi session.
type ExecuteRequest struct {
	// Session says where and with which pi; an execution is a session of its own, so its
	// ID does not count. Its Model is what the executor works with.
	Session
	// PlanPath is relative to Workdir; "" is the plan of the run.
	PlanPath string
	// RunID names the run; "" finds the one that the plan belongs to, or the active one.
	RunID string
	// Approve is the SHA-256 of the plan that the user approves, "" for none.
	Approve string
	// Ask puts the approval to a person; nil when there is nobody.
	Ask func(ctx context.Context, question string) (bool, error)
	// Review says how the implementation is reviewed.
	Review ReviewRequest
	// Limits bound the executor. The whole time is that of the execution.
	Limits lanes.Limits
}

// ReviewRequest is how an implementation is reviewed after its execution.
type ReviewRequest struct {
	// Condition says when the review ends (see execution.TerminationOptions). It is the
	// user's to choose: "" leaves a review that has none to a session.
	Condition string
	Reviewers int // 1 to 3, 1 by default
	Model     ModelAnswer
	Limits    lanes.Limits
}

// ApprovalError tells that only a person may let a plan be executed, and that none has.
type ApprovalError struct {
	PlanPath string
	SHA256   string
	Reason   string
}

func (e *ApprovalError) Error() string {
	return fmt.Sprintf("%s is not executed: %s; read it, and approve exactly this version with --approve %s", e.PlanPath, e.Reason, e.SHA256)
}

// What an execution tells its watch, besides lanes.Progress of the executor and the
// events of its review rounds.
type (
	// ExecutionStarted comes first.
	ExecutionStarted struct{ RunID, PlanPath, Transcript string }
	// ExecutionTurn is a message of the executor, with the checks that it has verified.
	ExecutionTurn struct {
		Text     string
		Verified []string
	}
	// ExecutionNotice is what a session would show its user. Level is that of an [Action].
	ExecutionNotice struct{ Level, Text string }
)

// Defaults of the limits of an execution where they differ from those of a lane: builds
// and tests run long and say little.
const (
	executionTime    = 12 * time.Hour
	executionSilence = time.Hour
	executionTurns   = 1000
)

// Execute carries a plan out with an executor of its own, in the same steps and with the
// same words as a Pi session does: approval, checks with their markers, wakes and their
// limits, the review of the implementation with its findings carried to fixes. All that
// it reaches is durable at once; after a crash or an interruption the same call goes on
// from there. When ctx ends, the child is ended by the kill ladder and the run stopped.
//
// The result says what became of the plan, also when the execution was stopped or has
// failed. Errors tell that it did not begin: *ApprovalError, *InputError,
// *store.StateError, *store.OwnedError, *lanes.CommandError, and others of the store.
func (s *System) Execute(ctx context.Context, req ExecuteRequest, watch Watch) (ExecuteResult, error) {
	if err := checkExecute(&req); err != nil {
		return ExecuteResult{}, err
	}
	if watch == nil {
		watch = func(any) {}
	}
	h := &headless{System: s, req: req, session: req.Session, watch: watch, began: time.Now(), again: map[string]string{}}
	h.session.ID = "headless-" + strings.ToLower(rand.Text())
	defer func() {
		// What it holds is given back whatever happened, and however the caller left.
		_ = s.EndSession(context.WithoutCancel(ctx), h.session.ID)
	}()
	if _, err := piCommand(req.Session); err != nil { // before anything is approved
		return ExecuteResult{}, err
	}
	if err := h.find(ctx); err != nil {
		return ExecuteResult{}, err
	}
	if err := h.takeUp(ctx); err != nil {
		return ExecuteResult{}, err
	}
	first, err := h.approve(ctx)
	if err != nil {
		return ExecuteResult{}, err
	}
	return h.carryOut(ctx, first)
}

var digestShape = regexp.MustCompile(`^[0-9a-f]{64}$`)

func checkExecute(req *ExecuteRequest) error {
	switch {
	case req.Approve != "" && !digestShape.MatchString(req.Approve):
		return inputErrorf("--approve %q is no SHA-256 of a plan: 64 lower-case hexadecimal digits, as sha256sum prints them", req.Approve)
	case req.Review.Reviewers < 0 || req.Review.Reviewers > 3:
		return inputErrorf("--reviewers %d is out of range: 1 to 3 reviewers can look at an implementation", req.Review.Reviewers)
	}
	req.Review.Reviewers = max(1, req.Review.Reviewers)
	for _, limit := range []struct {
		value  *time.Duration
		preset time.Duration
	}{{&req.Limits.Lane, executionTime}, {&req.Limits.Silence, executionSilence}} {
		if *limit.value == 0 {
			*limit.value = limit.preset
		}
	}
	if req.Limits.Turns == 0 {
		req.Limits.Turns = executionTurns
	}
	return nil
}

// headless stands in for a Pi session: it tells the hooks what happens in the child, and
// does what they reply.
type headless struct {
	*System
	req     ExecuteRequest
	session Session
	watch   Watch
	began   time.Time

	root    store.Root
	plan    string        // path
	known   *store.RunDir // the run that the plan belongs to, nil while it has none
	run     store.RunDir  // known from the approval on
	checks  markerScanner
	rounds  []ReviewReport
	fixing  *RoundResult      // whose findings the executor works on, nil while it executes
	again   map[string]string // what was said of checks that were run again for a finding
	turn    actors.ExecutorTurn
	stopped string // why it does not go on, "" while it does
	spent   lanes.SessionEnd
	diary   string // transcript
}

// find finds the plan, and the run that it belongs to.
func (h *headless) find(ctx context.Context) (err error) {
	if h.root, err = store.Find(ctx, h.req.Workdir); err != nil {
		return err
	}
	switch {
	case h.req.RunID != "":
		dir, err := h.root.Run(h.req.RunID)
		if err != nil {
			return noRunError("--run", h.req.RunID, err)
		}
		h.known = &dir
	case h.req.PlanPath == "":
		dir, found, err := h.root.Active()
		if err != nil {
			return err
		}
		if !found {
			return inputErrorf("there is no active run; name the plan file, or a run with --run")
		}
		h.known = &dir
	}
	if h.req.PlanPath != "" {
		if h.plan, err = h.req.within(h.req.PlanPath); err != nil {
			return inputErrorf("plan %s: %v", h.req.PlanPath, err)
		}
		if h.known == nil {
			h.known, err = h.runOfPlan()
		}
		return err
	}
	h.plan, err = planOf(*h.known)
	return err
}

// runOfPlan is the newest run of the plan that can go on, nil when there is none.
func (h *headless) runOfPlan() (*store.RunDir, error) {
	candidates, err := h.candidates(h.session, h.root)
	if err != nil {
		return nil, err
	}
	for _, candidate := range candidates {
		summary, ok := h.root.Summary(candidate.RunID)
		if ok && candidate.Corrupt == "" && belongs(summary, "", h.plan) {
			return &summary.Dir, nil
		}
	}
	return nil, nil
}

// planOf is the plan of a run: the one on record, else the latest version.
func planOf(run store.RunDir) (string, error) {
	cp, err := run.LoadCheckpoint()
	if err != nil && !errors.Is(err, store.ErrNoCheckpoint) {
		return "", err
	}
	if cp.Plan != nil {
		return cp.Plan.Path, nil
	}
	record, err := run.Load()
	if err != nil {
		return "", err
	}
	path, _, err := store.LatestPlan(record.ArtifactDir)
	if errors.Is(err, store.ErrNoPlan) {
		return "", inputErrorf("run %s has no PLAN_v<N>.md in %s; write the plan first", run.ID, record.ArtifactDir)
	}
	return path, err
}

// takeUp resumes the run, if there is one. What a person would have to confirm is
// refused: `pilothouse resume` asks.
func (h *headless) takeUp(ctx context.Context) error {
	if h.known == nil {
		return nil
	}
	_, err := h.Resume(ctx, ResumeRequest{Session: h.session, RunID: h.known.ID, Legacy: true})
	return err
}

// approve gets the approval, unless it stands, and returns what the executor is told
// first. A review that goes on needs none.
func (h *headless) approve(ctx context.Context) (first string, err error) {
	if h.known != nil {
		cp, err := h.known.LoadCheckpoint()
		if err == nil && cp.Phase == store.PhaseImplementationReview {
			h.run = *h.known
			return "", nil
		}
	}
	approval, err := h.handoff(ctx, h.session, &approver{h: h}, executeParams{PlanPath: h.plan})
	if err != nil {
		return "", err
	}
	if approval.declined {
		return "", &ApprovalError{h.plan, approval.plan.identity.SHA256, "it was not approved"}
	}
	h.run = approval.run
	h.perform(Reply{Actions: approval.actions})
	return approval.context, nil
}

// approver is the UI of an execution without a session: it can say yes to one plan.
type approver struct {
	UI // the rest is not asked for
	h  *headless
}

func (a *approver) Has() bool              { return true }
func (a *approver) Mode() string           { return "print" }
func (a *approver) Idle() bool             { return true }
func (a *approver) Editor() bool           { return false }
func (a *approver) Size() (rows, cols int) { return 0, 0 }

// Confirm approves what the user has approved, by its digest, which is part of the
// message, or asks.
func (a *approver) Confirm(ctx context.Context, _, message string) (bool, error) {
	req := a.h.req
	switch {
	case req.Approve != "" && strings.Contains(message, req.Approve):
		return true, nil
	case req.Approve == "" && req.Ask != nil:
		return req.Ask(ctx, message)
	}
	sum, err := store.SHA256File(a.h.plan)
	if err != nil {
		return false, inputErrorf("the plan cannot be read: %v", err)
	}
	reason := "only a person may let it be executed, and nobody can be asked here"
	if req.Approve != "" {
		reason = "it is not the version that was approved"
	}
	return false, &ApprovalError{a.h.plan, sum, reason}
}
