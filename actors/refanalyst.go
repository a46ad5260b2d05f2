package actors

import (
	"fmt"
	"os"

	"pilothouse/agents"
	"pilothouse/lanes"
)

// AnalysisRequest is what a ref-analyst round is about.
type AnalysisRequest struct {
	Refs     []Reference // LocalPath absolute
	Context  string
	Language string // tag of the run, "" for none
	RunID    string // or "adhoc"
	Model    string // provider/model, "" inherits
	Limits   lanes.Limits
}

// PlanAnalysis makes one lane for each reference, in batches of three, each
// working inside its own reference's directory (spec: subagents 4.2). A
// reference that is no directory gets a lane that fails without a child, so
// that it is accounted for.
func PlanAnalysis(req AnalysisRequest) ([]Lane, error) {
	prompt, err := agents.Prompt(string(RefAnalyst))
	if err != nil {
		return nil, err
	}
	var planned []Lane
	for i, ref := range req.Refs {
		id := fmt.Sprintf("ref-%d", i+1)
		lane := Lane{
			Batch: i/lanes.BatchSize + 1,
			Ref:   &ref,
			Spec: lanes.Spec{
				ID: id, Name: "pi-plans-refs-" + req.RunID + "-" + id, Dir: ref.LocalPath,
				Model: req.Model, Tools: readOnlyTools, SystemPrompt: prompt, Limits: req.Limits,
				Task: RefBrief{
					RefID: ref.ID, Title: ref.Title, URL: ref.URL, Kind: ref.Kind, LocalPath: ref.LocalPath,
					Context: req.Context, LanguageTag: req.Language,
				}.Text(),
			},
		}
		if info, err := os.Stat(ref.LocalPath); err != nil || !info.IsDir() {
			lane.Refused = "reference directory not found: " + ref.LocalPath
		}
		planned = append(planned, lane)
	}
	return planned, nil
}
