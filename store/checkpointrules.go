package store

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

var (
	phases = []Phase{PhasePlanning, PhaseReviewing, PhaseExecuting, PhaseImplementationReview, PhaseCompleted}
	// The last four are of newer writers: read and kept, never set by us.
	nextActions = []NextAction{
		ActionAskQuestion, ActionContinuePlanning, ActionRunReview, ActionConsolidateReview, ActionRevisePlan,
		ActionAcceptExecute, ActionExecuteItems, ActionApplyReviewFixes, ActionVerifyReviewFixes, ActionFinishReview, ActionNone,
		"accept-overall", "start-version-planning", "plan-next-version", "complete-huge",
	}
)

// ValidID tells whether id can name a round, a lane, a question or a token. Such an
// id is safe as part of a file name.
func ValidID(id string) bool { return len(id) <= 128 && isName(id) }

// isName tells whether a string has a letter or digit first and then only those,
// dots, dashes and underscores, no two dots together. This, like the other shapes here,
// is no regular expression because it is asked of every name in a directory, and
// because compiling them took each start of the program a millisecond.
func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', isDigit(c):
		case i > 0 && (c == '-' || c == '_' || c == '.' && s[i-1] != '.'):
		default:
			return false
		}
	}
	return s != ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// hasShape compares a string with one in which every 0 stands for a digit.
func hasShape(s, shape string) bool {
	if len(s) != len(shape) {
		return false
	}
	for i := range len(s) {
		if s[i] != shape[i] && (shape[i] != '0' || !isDigit(s[i])) {
			return false
		}
	}
	return true
}

func isSHA256(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// CleanRelative checks a path that is stored relative to a directory and returns it
// joined with slashes. Refused, with an *InvalidError: empty or absolute paths, NUL,
// and any segment that is empty, . or .. on any system.
func CleanRelative(path string) (string, error) {
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	switch {
	case path == "" || strings.ContainsRune(path, 0):
		return "", invalid(path, "is not a relative path")
	case len(segments) != strings.Count(path, "/")+strings.Count(path, `\`)+1:
		return "", invalid(path, "is absolute or has an empty segment")
	case slices.Contains(segments, ".") || slices.Contains(segments, ".."):
		return "", invalid(path, "leaves its directory")
	case len(segments[0]) == 2 && segments[0][1] == ':':
		return "", invalid(path, "is absolute")
	}
	return strings.Join(segments, "/"), nil
}

// rules collects the first broken rule of a document.
type rules struct{ err error }

func (r *rules) check(ok bool, key, format string, args ...any) {
	if !ok && r.err == nil {
		r.err = invalid(key, format, args...)
	}
}

func (r *rules) id(key, value string) { r.check(ValidID(value), key, "is not an id: %q", value) }
func (r *rules) time(key, value string) {
	r.check(hasShape(value, "0000-00-00T00:00:00Z"), key, "is not a UTC time")
}
func (r *rules) sha(key, value string) {
	r.check(isSHA256(value), key, "is not a SHA-256")
}

func (r *rules) atLeast(key string, value, least int) {
	r.check(value >= least && value <= maxSafeInteger, key, "must be at least %d", least)
}

func (r *rules) relative(key, value string) {
	_, err := CleanRelative(value)
	r.check(err == nil, key, "is not a contained relative path: %q", value)
}

func oneOf[T comparable](r *rules, key string, value T, allowed ...T) {
	r.check(slices.Contains(allowed, value), key, "is not one of %v: %q", allowed, fmt.Sprint(value))
}

// Validate checks every rule of the format; the error is an *InvalidError with the
// path of the first bad key.
func (c *Checkpoint) Validate() error {
	r := &rules{}
	r.check(c.Schema == 1, "schema", "has the unsupported version %d", c.Schema)
	r.check(ValidRunID(c.RunID), "runId", "is not a run id: %q", c.RunID)
	r.atLeast("revision", c.Revision, 1)
	r.atLeast("generation", c.Generation, 1)
	r.time("updatedAt", c.UpdatedAt)
	oneOf(r, "phase", c.Phase, phases...)
	oneOf(r, "nextAction", c.NextAction, nextActions...)
	r.check(c.Phase != PhaseCompleted || c.NextAction == ActionNone, "nextAction", "must be none when the phase is completed")
	if c.Plan != nil {
		c.Plan.check(r, "plan")
	}
	if question := c.PendingQuestion; question != nil {
		r.id("pendingQuestion.questionId", question.QuestionID)
		r.time("pendingQuestion.askedAt", question.AskedAt)
	}
	for i, answered := range c.AnsweredQuestions {
		key := fmt.Sprintf("answeredQuestions[%d]", i)
		r.id(key+".questionId", answered.QuestionID)
		oneOf(r, key+".source", answered.Source, AnswerUser, AnswerAutoComplete, AnswerOther)
		r.time(key+".answeredAt", answered.AnsweredAt)
	}
	for i := range c.ReviewRounds {
		c.ReviewRounds[i].check(r, fmt.Sprintf("reviewRounds[%d]", i))
	}
	if review := c.ImplementationReview; review != nil {
		r.atLeast("implementationReview.completedRounds", review.CompletedRounds, 0)
		r.check(review.CurrentRoundID == "" || ValidID(review.CurrentRoundID), "implementationReview.currentRoundId", "is not an id")
	}
	if c.Execution != nil {
		c.Execution.check(r)
	}
	if owner := c.Owner; owner != nil {
		r.atLeast("owner.pid", owner.PID, 1)
		r.id("owner.processToken", owner.ProcessToken)
		r.atLeast("owner.generation", owner.Generation, 1)
		r.time("owner.acquiredAt", owner.AcquiredAt)
	}
	if c.Migration != nil {
		r.time("migration.migratedAt", c.Migration.MigratedAt)
	}
	return r.err
}

func (p *PlanIdentity) check(r *rules, key string) {
	r.check(filepath.IsAbs(p.Path), key+".path", "must be absolute")
	r.atLeast(key+".version", p.Version, 1)
	r.sha(key+".sha256", p.SHA256)
}

func (round *ReviewRound) check(r *rules, key string) {
	r.id(key+".roundId", round.RoundID)
	oneOf(r, key+".role", round.Role, RoleReviewer, RoleCriticizer)
	oneOf(r, key+".target", round.Target, TargetPlan, TargetImplementation)
	if round.PlanSHA256 != "" {
		r.sha(key+".planSha256", round.PlanSHA256)
	}
	r.atLeast(key+".reviewers", round.Reviewers, 1)
	if round.DispositionArtifact != "" {
		r.relative(key+".dispositionArtifact", round.DispositionArtifact)
	}
	r.time(key+".startedAt", round.StartedAt)
	if round.CompletedAt != "" {
		r.time(key+".completedAt", round.CompletedAt)
	}
	for i, lane := range round.Lanes {
		lane.check(r, fmt.Sprintf("%s.lanes[%d]", key, i))
	}
}

func (l *ReviewLane) check(r *rules, key string) {
	r.id(key+".laneId", l.LaneID)
	oneOf(r, key+".status", l.Status, LanePending, LaneRunning, LaneComplete, LaneFailed)
	if l.ResultFile != "" {
		r.check(l.Status == LaneComplete, key+".resultFile", "is only allowed when the lane is complete")
		r.relative(key+".resultFile", l.ResultFile)
	}
	if l.StartedAt != "" {
		r.time(key+".startedAt", l.StartedAt)
	}
	if l.CompletedAt != "" {
		r.time(key+".completedAt", l.CompletedAt)
	}
}

func (e *Execution) check(r *rules) {
	if approval := e.Approval; approval != nil {
		approval.Plan.check(r, "execution.approval.plan")
		r.time("execution.approval.approvedAt", approval.ApprovedAt)
	}
	r.atLeast("execution.usage.inToks", e.Usage.InToks, 0)
	r.atLeast("execution.usage.outToks", e.Usage.OutToks, 0)
}
