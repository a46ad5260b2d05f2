package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Change is one step of the workflow. It fails with a *StateError when the step is
// not allowed in the state it meets, and then leaves the checkpoint as it was.
// ErrNoChange tells that there is nothing to do (spec: checkpoint 2.3).
type Change func(*Checkpoint) error

// ErrNoChange is returned by a Change that found its effect there already; when all
// changes of a write return it nothing is written.
var ErrNoChange = errors.New("nothing to change")

// StateError tells that a step is not allowed in the state of the workflow.
type StateError struct {
	// Step names what was tried, for example "approve execution".
	Step string
	// Reason says why not.
	Reason string
}

func (e *StateError) Error() string { return "cannot " + e.Step + ": " + e.Reason }

func refuse(step, format string, args ...any) error {
	return &StateError{Step: step, Reason: fmt.Sprintf(format, args...)}
}

func refusePhase(step string, cp *Checkpoint, allowed ...Phase) error {
	if slices.Contains(allowed, cp.Phase) {
		return nil
	}
	return &StateError{Step: step + " from phase " + string(cp.Phase), Reason: fmt.Sprintf("it needs one of %v", allowed)}
}

// Isolate makes a change that belongs to one of several askers harmless to the
// others: when it fails, or would leave the checkpoint invalid, the error goes to
// report and the checkpoint stays as it was. Report is called in any case, with nil
// or ErrNoChange when all is well, before anything is durable.
func Isolate(change Change, report func(error)) Change {
	return func(cp *Checkpoint) error {
		trial := cp.Clone()
		err := change(&trial)
		if err == nil {
			err = trial.Validate()
		}
		report(err)
		if err != nil {
			return ErrNoChange
		}
		*cp = trial
		return nil
	}
}

// QuestionAsked makes a question pending. Asking a pending question again replaces it.
func QuestionAsked(question PendingQuestion, now time.Time) Change {
	return func(cp *Checkpoint) error {
		const step = "ask a question"
		if err := refusePhase(step, cp, PhasePlanning, PhaseReviewing, PhaseImplementationReview); err != nil {
			return err
		}
		if cp.Answered(question.QuestionID) {
			return refuse(step, "question %s is already answered", question.QuestionID)
		}
		if pending := cp.PendingQuestion; pending != nil && pending.QuestionID != question.QuestionID {
			return refuse(step, "question %s is still pending", pending.QuestionID)
		}
		asked := question
		asked.Options = slices.Clone(question.Options)
		asked.AskedAt = Stamp(now)
		cp.PendingQuestion = &asked
		cp.NextAction = ActionAskQuestion
		return nil
	}
}

// QuestionAnswered moves the pending question to the answered ones. Source is
// AnswerUser, AnswerAutoComplete or AnswerOther.
func QuestionAnswered(questionID, answer, source string, now time.Time) Change {
	return func(cp *Checkpoint) error {
		if cp.PendingQuestion == nil || cp.PendingQuestion.QuestionID != questionID {
			return refuse("answer a question", "question %s is not pending", questionID)
		}
		cp.PendingQuestion = nil
		cp.AnsweredQuestions = append(cp.AnsweredQuestions, AnsweredQuestion{
			QuestionID: questionID, Answer: answer, Source: source, AnsweredAt: Stamp(now),
		})
		return nil
	}
}

// QuestionDropped takes a pending question back without an answer: it was cancelled,
// or the ledger shows that it was answered before a crash.
func QuestionDropped(questionID string) Change {
	return func(cp *Checkpoint) error {
		if cp.PendingQuestion == nil || cp.PendingQuestion.QuestionID != questionID {
			return ErrNoChange
		}
		cp.PendingQuestion = nil
		return nil
	}
}

// PlanWritten records which plan is the current one. What a later writer noted of a
// plan stays with its file.
func PlanWritten(plan PlanIdentity) Change {
	return func(cp *Checkpoint) error {
		if err := refusePhase("record a plan", cp, PhasePlanning, PhaseReviewing); err != nil {
			return err
		}
		written := plan
		if cp.Plan != nil && cp.Plan.Path == plan.Path {
			written.Extra = cp.Plan.Extra
		}
		cp.Plan = &written
		return nil
	}
}

// HandoffOffered makes the approval of the execution the next action, which
// ExecutionApproved requires.
func HandoffOffered() Change {
	return func(cp *Checkpoint) error {
		if err := refusePhase("offer execution", cp, PhasePlanning, PhaseReviewing, PhaseExecuting); err != nil {
			return err
		}
		cp.NextAction = ActionAcceptExecute
		return nil
	}
}

// ExecutionApproved starts the execution of exactly the approved plan, from nothing.
func ExecutionApproved(approval Approval) Change {
	return func(cp *Checkpoint) error {
		const step = "approve execution"
		if err := refusePhase(step, cp, PhasePlanning, PhaseReviewing, PhaseExecuting); err != nil {
			return err
		}
		if cp.NextAction != ActionAcceptExecute {
			return refuse(step, "the next action is %s, not %s", cp.NextAction, ActionAcceptExecute)
		}
		if cp.Plan != nil && cp.Plan.SHA256 != approval.Plan.SHA256 {
			return refuse(step, "the plan does not match the recorded one")
		}
		given, plan := approval, approval.Plan
		if cp.Plan != nil { // the same bytes
			plan.Extra = cp.Plan.Extra
		}
		cp.Plan = &plan
		cp.Phase, cp.NextAction = PhaseExecuting, ActionExecuteItems
		cp.Execution = &Execution{Approval: &given, DoneVCIDs: []string{}, ImplStatus: map[string]string{}}
		return nil
	}
}

// Progress is what an execution reports after a turn. Nil fields stay as they are.
type Progress struct {
	DoneVCIDs  []string
	ImplStatus map[string]string
	CurrentI   *string
	// Usage is added to what was used before.
	Usage TokenUsage
	// PausedReason "" ends a pause.
	PausedReason *string
}

// ExecutionProgressed records progress.
func ExecutionProgressed(progress Progress) Change {
	return func(cp *Checkpoint) error {
		if err := refuseIdle("record progress", cp); err != nil {
			return err
		}
		execution := cp.Execution
		if progress.DoneVCIDs != nil {
			execution.DoneVCIDs = slices.Clone(progress.DoneVCIDs)
		}
		if progress.ImplStatus != nil {
			execution.ImplStatus = maps.Clone(progress.ImplStatus)
		}
		if progress.CurrentI != nil {
			execution.CurrentI = *progress.CurrentI
		}
		if progress.PausedReason != nil {
			execution.PausedReason = *progress.PausedReason
		}
		execution.Usage.InToks += progress.Usage.InToks
		execution.Usage.OutToks += progress.Usage.OutToks
		return nil
	}
}

func refuseIdle(step string, cp *Checkpoint) error {
	if err := refusePhase(step, cp, PhaseExecuting); err != nil {
		return err
	}
	if cp.Execution == nil {
		return refuse(step, "nothing is being executed")
	}
	return nil
}

// HeadChanged records that what was verified must be verified again.
func HeadChanged() Change { return setReverify(true) }

// Reverified records that everything was verified again.
func Reverified() Change { return setReverify(false) }

func setReverify(reverify bool) Change {
	return func(cp *Checkpoint) error {
		if err := refuseIdle("record a changed HEAD", cp); err != nil {
			return err
		}
		if cp.Execution.MustReverify() == reverify {
			return ErrNoChange
		}
		if cp.Execution.ReverifyAll = nil; reverify {
			cp.Execution.ReverifyAll = &reverify
		}
		return nil
	}
}

// ExecutionStopped pauses the execution; the phase stays.
func ExecutionStopped(reason string) Change {
	return func(cp *Checkpoint) error {
		if err := refuseIdle("stop execution", cp); err != nil {
			return err
		}
		cp.Execution.PausedReason = reason
		return nil
	}
}

// ExecutionCompleted moves on to the review of the implementation.
func ExecutionCompleted() Change {
	return func(cp *Checkpoint) error {
		if err := refuseIdle("complete execution", cp); err != nil {
			return err
		}
		cp.Execution.PausedReason = ""
		cp.Phase, cp.NextAction = PhaseImplementationReview, ActionAskQuestion
		return nil
	}
}

// ReturnedToPlanning takes an execution back because its plan is to be revised. The
// approval was for the old plan, so it goes, and with it what was done; what it cost
// stays.
func ReturnedToPlanning() Change {
	return func(cp *Checkpoint) error {
		if err := refusePhase("return to planning", cp, PhaseExecuting); err != nil {
			return err
		}
		cp.Phase, cp.NextAction = PhasePlanning, ActionRevisePlan
		if cp.Execution != nil {
			cp.Execution = cp.Execution.withdrawn(cp.Execution.OriginWorktree)
		}
		return nil
	}
}

// withdrawn is an execution without approval and progress, and without what a later
// writer noted of it: its tasks, audits and budgets were those of the approved plan.
func (e Execution) withdrawn(origin string) *Execution {
	return &Execution{DoneVCIDs: []string{}, ImplStatus: map[string]string{}, Usage: e.Usage, OriginWorktree: origin}
}

// Migrated moves the run to another work tree: approval and verification belong to
// the old one and go, the termination condition stays (spec: checkpoint 2.3).
func Migrated(target Root, now time.Time) Change {
	return func(cp *Checkpoint) error {
		from := cp.WorktreeRoot
		cp.Workdir, cp.WorktreeRoot, cp.CommonDir = target.Workdir, target.Worktree, target.CommonDir
		cp.Migration = &Migration{FromWorktree: from, MigratedAt: Stamp(now)}
		if cp.Execution != nil {
			origin := cp.Execution.OriginWorktree
			if origin == "" {
				origin = from
			}
			cp.Execution = cp.Execution.withdrawn(origin)
		}
		if review := cp.ImplementationReview; review != nil {
			cp.ImplementationReview = &ImplementationReview{TerminationCondition: review.TerminationCondition, Extra: review.Extra}
		}
		switch {
		case cp.Phase == PhaseImplementationReview:
			cp.NextAction = ActionRunReview
		case cp.Phase == PhaseExecuting && cp.Plan != nil:
			cp.NextAction = ActionAcceptExecute
		}
		return nil
	}
}

// PlanMoved points the recorded plan to a copy with the same bytes.
func PlanMoved(to PlanIdentity) Change {
	return func(cp *Checkpoint) error {
		if cp.Plan == nil || cp.Plan.SHA256 != to.SHA256 {
			return refuse("move the plan", "the copy is not the recorded plan")
		}
		cp.Plan.Path = to.Path
		return nil
	}
}
