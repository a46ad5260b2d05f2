package actors

import "pilothouse/lanes"

// Role is what a lane is for.
type Role string

// The roles that have lanes.
const (
	Reviewer   Role = "reviewer"
	Criticizer Role = "criticizer"
	RefAnalyst Role = "ref-analyst"
)

// Targets of a review.
const (
	TargetPlan           = "plan"
	TargetImplementation = "implementation"
)

// readOnlyTools are all that a lane may use (seed: Subagent Spawning).
var readOnlyTools = []string{"read", "grep", "find", "ls"}

// Lane is one lane of a round: what it runs and what it is about.
type Lane struct {
	Spec lanes.Spec `json:"spec"`
	// Lens is the id of the reviewer's lens, "" for a general review.
	Lens string `json:"lens,omitempty"`
	// Ref is what a ref-analyst lane reads; nil in other roles.
	Ref *Reference `json:"ref,omitempty"`
	// Batch is the 1-based batch that the lane runs in.
	Batch int `json:"batch"`
	// Refused says why the lane is not run at all; it then fails with this
	// message without a child.
	Refused string `json:"refused,omitempty"`
}

// Reference is one downloaded reference of analyze_refs.
type Reference struct {
	ID        string `json:"id"`
	LocalPath string `json:"localPath"`
	Title     string `json:"title,omitempty"`
	URL       string `json:"url,omitempty"`
	Kind      string `json:"kind,omitempty"`
}

// Outcome is the terminal record of a lane with what its answer says.
type Outcome struct {
	Lane   Lane
	Result lanes.Result
	Report Report
	// Reused marks an answer of an earlier call that was not run again.
	Reused bool
}

// Report is a lane's answer as a program reads it. One of the pointers is set,
// according to the role; all are nil when there is no answer.
type Report struct {
	// WellFormed is false when the answer does not fit the role's grammar; the
	// answer still counts, and Problems says what is off.
	WellFormed bool
	Problems   []string
	Review     *Review
	Criticism  *Criticism
	Analysis   *RefSections
}

// Judge reads the answer of a lane of this role.
func (r Role) Judge(output string) Report {
	switch r {
	case Criticizer:
		c := ParseCriticism(output)
		return Report{WellFormed: c.WellFormed, Problems: c.Problems, Criticism: &c}
	case RefAnalyst:
		a := ParseRefAnalysis(output)
		return Report{WellFormed: a.WellFormed, Problems: a.Problems, Analysis: &a}
	default:
		v := ParseReview(output)
		return Report{WellFormed: v.WellFormed, Problems: v.Problems, Review: &v}
	}
}
