package actors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	// ObeysProject is true for a pi that cannot be told to ignore the settings of
	// the directory it works in (Pi fact §2: the older generation).
	ObeysProject bool
	Limits       lanes.Limits
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
		lane.Refused = refusal(ref, req.ObeysProject)
		planned = append(planned, lane)
	}
	return planned, nil
}

// refusal says why a reference cannot be analysed, "" when it can. Strangers
// wrote the reference: a pi that would take its model, its system prompt or its
// shell from there is not started in it.
func refusal(ref Reference, obeysProject bool) string {
	if info, err := os.Stat(ref.LocalPath); err != nil || !info.IsDir() {
		return "reference directory not found: " + ref.LocalPath
	}
	if !obeysProject {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(ref.LocalPath, ".pi")); errors.Is(err, os.ErrNotExist) {
		return ""
	}
	return "this pi takes orders from the .pi folder of the reference " + ref.LocalPath + "; use Pi 1.6 or newer, or remove that folder"
}
