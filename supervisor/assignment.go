package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/store"
)

// assignment is a round that is ready to run: everything is read, checked and
// chosen, nothing is started.
type assignment struct {
	caller  *actor.PID
	asked   context.Context // has the trace of the call, from when the run has it
	session string
	runID   string // "adhoc" without a run
	roundID string
	role    actors.Role
	target  string // refine only
	model   string // requested, "" inherits
	host    lanes.Host
	notices []string

	order  []string          // ids of all lanes, in the order of the result
	lanes  []actors.Lane     // to be run
	reused []actors.Outcome  // answers of an earlier call
	stored map[string]string // result files by lane, absolute
	full   string            // directory of the full answers

	spec    *store.RoundSpec   // nil: the round is not in the checkpoint
	adopted []store.LaneRecord // complete lanes that a crash kept out of the checkpoint
	record  store.RoundRecord
}

// announcement is what the caller hears first.
func (a *assignment) announcement() RoundStarted {
	m := RoundStarted{RunID: a.runID, RoundID: a.roundID, Role: a.role, Model: a.model, Notices: a.notices}
	byID := map[string]actors.Lane{}
	for _, lane := range a.lanes {
		byID[lane.Spec.ID] = lane
	}
	for _, outcome := range a.reused {
		byID[outcome.Lane.Spec.ID] = outcome.Lane
		m.Reused = append(m.Reused, outcome.Lane.Spec.ID)
	}
	for _, id := range a.order {
		m.Lanes = append(m.Lanes, byID[id])
	}
	return m
}

// result puts the recorded lanes together.
func (r *openRound) result() RoundResult {
	result := RoundResult{
		RunID: r.runID, RoundID: r.roundID, Role: r.role, Target: r.target,
		Model: optional(r.model), Stored: r.full, Notices: r.notices,
	}
	summary := actors.Summary{Role: r.role, Target: r.target, RunID: r.runID, RoundID: r.roundID, Stored: r.full}
	for _, id := range r.order {
		outcome := r.outcomes[id]
		summary.Outcomes = append(summary.Outcomes, outcome)
		result.Lanes = append(result.Lanes, newLaneResult(outcome, r.stored[id]))
	}
	result.Findings = consolidated(result.Lanes)
	result.Text = actors.Text(summary)
	return result
}

// reuse makes an outcome of a lane that an earlier call completed.
func reuse(lane actors.Lane, role actors.Role, record store.LaneRecord, answer string) actors.Outcome {
	return actors.Outcome{
		Lane: lane, Reused: true, Report: role.Judge(answer),
		Result: lanes.Result{
			LaneID: lane.Spec.ID, Status: lanes.Complete, Attempts: record.Attempts, Model: record.Model,
			Usage: pijson.Usage(record.Usage), Turns: record.Turns,
			Exit:   lanes.Exit{Code: record.Exit.Code, Signal: record.Exit.Signal},
			Output: answer, Started: record.StartedAt,
		},
	}
}

// host makes the place where the lanes of a session run. It is checked before
// anything is written: a missing pi must not leave a round behind that never ran. Its
// lanes take turns with those of all runs as what the session runs without one; the
// caller that has a run gives it the places of that.
func (s *services) host(session Session, root store.Root) (*lanes.PiHost, error) {
	command, err := piCommand(session)
	if err != nil {
		return nil, err
	}
	scratch := filepath.Join(root.Dir, "tmp")
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for system prompts: %w", err)
	}
	spawner, err := s.children.start()
	if err != nil {
		return nil, err
	}
	return &lanes.PiHost{
		Spawner: spawner, Command: command, Environ: session.Environ, Scratch: scratch, Turns: s.turns, Pace: &s.pace, Metrics: s.metrics.ofLanes(),
		Places: s.places.of(runKey{root.Dir, adHocRun + "/" + session.ID}),
	}, nil
}

// transcribe names the file that each lane's transcript goes to. Where there can be
// none, lanes work without.
func (s *services) transcribe(root store.Root, runID, roundID string, planned []actors.Lane) {
	dir, err := root.MakeTranscriptDir(runID)
	if err != nil {
		s.logger.Warn("lanes have no transcripts", "run", runID, "error", err)
		return
	}
	for i := range planned {
		planned[i].Spec.Transcript = filepath.Join(dir, roundID+"__"+planned[i].Spec.ID+".jsonl")
	}
}

func piCommand(session Session) (lanes.Command, error) {
	words := session.Pi
	if words == "" {
		words = "pi"
	}
	return lanes.ParseCommand(words, session.Environ)
}

// ErrSelector says what a model selector looks like.
var ErrSelector = errors.New("a model is named as provider/model, without spaces")

// CheckSelector checks the form of a model selector.
func CheckSelector(selector string) error {
	provider, model, found := strings.Cut(selector, "/")
	if !found || provider == "" || model == "" || strings.ContainsAny(selector, " \t\r\n") || strings.HasPrefix(selector, "-") {
		return ErrSelector
	}
	return nil
}

// setting is what the workspace decided about a role.
func setting(config store.Config, role actors.Role) actors.Setting {
	c := config.Reviewer
	if role == actors.Criticizer {
		c = config.Criticizer
	}
	s := actors.Setting{Role: role, Mode: c.Mode, Confirmed: c.Confirmed()}
	if c.ModelSelector != nil {
		s.Model = *c.ModelSelector
	}
	return s
}

// model chooses: the answer of the call, else the workspace's setting; one that
// inherits means the model of the session.
func (m ModelAnswer) model(s actors.Setting, session Session) string {
	chosen := s.Model
	if m.Answered {
		chosen = m.Selector
	}
	return cmp.Or(chosen, session.Model)
}

// within makes a path of the session absolute. A leading @ is pi's way to name a
// file and is dropped; ~ is the home directory.
func (s Session) within(path string) (string, error) {
	path = strings.TrimPrefix(path, "@")
	if path == "~" || strings.HasPrefix(path, "~/") || filepath.IsAbs(path) {
		return store.Expand(path)
	}
	return filepath.Join(s.Workdir, path), nil
}
