package actors

import (
	"pilothouse/agents"
	"pilothouse/lanes"
)

// ReviewRequest is what a reviewer or criticizer round is about.
type ReviewRequest struct {
	Target     string // TargetPlan or TargetImplementation
	PlanPath   string // absolute
	PlanText   string // its exact bytes
	Reviewers  int    // 1 to 3; a criticizer round has always one lane
	Focus      string
	Context    string
	Language   string // tag of the run, "" for none
	NamePrefix string // of the role's setting
	RunID      string
	Model      string // provider/model, "" inherits
	Dir        string // the workspace
	Limits     lanes.Limits
}

// PlanReview makes the lanes of a reviewer round: one general lane, or one lane
// for each lens (spec: subagents 4.1).
func PlanReview(req ReviewRequest) ([]Lane, error) {
	prompt, err := agents.Prompt(string(Reviewer))
	if err != nil {
		return nil, err
	}
	var planned []Lane
	for _, id := range ReviewerLanes(req.Reviewers) {
		lane := Lane{
			Batch: 1,
			Spec:  req.spec(id, req.NamePrefix+"-"+req.RunID+"-"+id, prompt, req.brief(Reviewer, id)),
		}
		if Lens(id) != "" {
			lane.Lens = id
		}
		planned = append(planned, lane)
	}
	return planned, nil
}

func (req ReviewRequest) brief(role Role, laneID string) string {
	return ReviewBrief{
		Role: string(role), Target: req.Target, PlanPath: req.PlanPath, PlanText: req.PlanText,
		Lens: Lens(laneID), Focus: req.Focus, Context: req.Context, LanguageTag: req.Language,
	}.Text()
}

func (req ReviewRequest) spec(id, name, prompt, task string) lanes.Spec {
	return lanes.Spec{
		ID: id, Name: name, Dir: req.Dir, Model: req.Model, Tools: readOnlyTools,
		SystemPrompt: prompt, Task: task, Limits: req.Limits,
	}
}
