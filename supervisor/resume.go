package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// Candidate is a run that can be taken up again (spec: checkpoint 2.6). Runs are
// candidates until they are abandoned, or done with nothing left to review.
type Candidate struct {
	RunID       string          `json:"runId"`
	Status      store.RunStatus `json:"status"`
	Phase       store.Phase     `json:"phase,omitempty"`
	PlanVersion int             `json:"planVersion,omitempty"` // 0 while no plan is on record
	UpdatedAt   string          `json:"updatedAt"`
	// Active tells that the session works on it, or that the workspace points to it.
	Active bool `json:"active,omitempty"`
	// From is the work tree of a run that is to go on in another one, "" without a move.
	From string `json:"from,omitempty"`
	// Legacy tells that the run has no checkpoint: how far it was is not on record.
	Legacy bool `json:"legacy,omitempty"`
	// Corrupt says why the checkpoint cannot be read. Such a run is listed and cannot be
	// resumed.
	Corrupt string `json:"corrupt,omitempty"`
}

// Label is the line that a chooser shows.
func (c Candidate) Label() string {
	parts := []string{c.RunID, c.state()}
	if c.PlanVersion > 0 {
		parts = append(parts, fmt.Sprintf("plan v%d", c.PlanVersion))
	}
	if c.From != "" {
		parts = append(parts, "another work tree")
	}
	if c.Active {
		parts = append(parts, "active")
	}
	return strings.Join(append(parts, c.UpdatedAt), " · ")
}

func (c Candidate) state() string {
	state := cmp.Or(string(c.Phase), string(c.Status))
	switch {
	case c.Corrupt != "":
		return "corrupt"
	case c.Status == store.StatusStopped && c.Phase != "":
		return state + " (stopped)"
	}
	return state
}

// MoveQuestion asks whether the run may go on in the work tree at to, "" when it is
// there already.
func (c Candidate) MoveQuestion(to string) string {
	if c.From == "" {
		return ""
	}
	return fmt.Sprintf("Run %s belongs to the work tree %s. Let it go on in %s? Its documents are copied and none is overwritten; "+
		"an approval to execute, what was verified and counted review rounds do not move.", c.RunID, c.From, to)
}

// LegacyQuestion asks whether a run may go on that has no record of how far its
// execution was, "" when there is nothing to ask.
func (c Candidate) LegacyQuestion() string {
	if !c.Legacy || c.Status != store.StatusExecuting && c.Status != store.StatusStopped && c.Status != store.StatusDone {
		return ""
	}
	return fmt.Sprintf("Legacy execution run %s (%s) has no checkpoint. Resume it with nothing verified, and a new handoff before anything is changed?",
		c.RunID, c.Status)
}

// Candidates lists the runs that can be resumed: the active one first, then those
// changed last. Those that cannot be read are among them.
func (s *System) Candidates(ctx context.Context, session Session) ([]Candidate, error) {
	value, err := s.ask(ctx, nil, func(*actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			root, err := store.Find(work, session.Workdir)
			if err != nil {
				return destination{}, err
			}
			value, err := s.candidates(session, root)
			return destination{value: value}, err
		}
	})
	candidates, _ := value.([]Candidate)
	return candidates, err
}

func (s *services) candidates(session Session, root store.Root) ([]Candidate, error) {
	runs, err := root.Runs()
	if err != nil {
		return nil, err
	}
	active, _, _ := s.bindings.current(session.ID, root) // a pointer that cannot be read points nowhere
	candidates := []Candidate{}
	for _, summary := range runs {
		if candidate, ok := candidateOf(summary, root); ok {
			candidate.Active = candidate.RunID == active.ID
			candidates = append(candidates, candidate)
		}
	}
	slices.SortStableFunc(candidates, func(a, b Candidate) int {
		switch {
		case a.Active != b.Active && a.Active:
			return -1
		case a.Active != b.Active:
			return 1
		}
		return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(b.RunID, a.RunID))
	})
	return candidates, nil
}

// candidateOf describes a run if it can be resumed, or could if its checkpoint were
// not corrupt. A run whose own record cannot be read is in no listing but that of runs.
func candidateOf(summary store.RunSummary, root store.Root) (Candidate, bool) {
	run := summary.Run
	if summary.Err != nil {
		return Candidate{}, false
	}
	c := Candidate{RunID: run.RunID, Status: run.Status, UpdatedAt: run.UpdatedAt}
	cp, err := summary.Dir.LoadCheckpoint()
	switch {
	case errors.Is(err, store.ErrNoCheckpoint):
		c.Legacy = true
		if !contains(root.Worktree, run.Workdir) {
			c.From = run.Workdir
		}
		return c, resumable(run, cp, err)
	case err != nil:
		c.Corrupt = err.Error()
		return c, run.Status != store.StatusAbandoned
	}
	c.Phase, c.UpdatedAt = cp.Phase, max(run.UpdatedAt, cp.UpdatedAt)
	if cp.Plan != nil {
		c.PlanVersion = cp.Plan.Version
	}
	if !samePlace(cp.WorktreeRoot, root.Worktree) {
		c.From = cp.WorktreeRoot
	}
	return c, resumable(run, cp, nil)
}

// resumable tells whether a run can be taken up, by its record and its checkpoint with
// the error of reading that.
func resumable(run store.Run, cp store.Checkpoint, err error) bool {
	switch {
	case run.Status == store.StatusAbandoned:
		return false
	case errors.Is(err, store.ErrNoCheckpoint):
		return run.Status != store.StatusDone || hasReviews(run.ArtifactDir)
	}
	return err == nil && cp.Phase != store.PhaseCompleted
}

// samePlace tells whether two paths lead to one directory, whatever writer spelled them.
func samePlace(a, b string) bool {
	if a == b {
		return true
	}
	here, err := os.Stat(a)
	there, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(here, there)
}

// hasReviews tells whether an older writer left reviews among the documents of a run.
func hasReviews(artifactDir string) bool {
	entries, err := os.ReadDir(artifactDir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		return strings.HasSuffix(entry.Name(), "_reviewer_comments.md") || strings.HasSuffix(entry.Name(), "_implementation_review.md")
	})
}

// DefaultCandidate is the run to resume when nobody has chosen: the active one, else
// the only one.
func DefaultCandidate(candidates []Candidate) (Candidate, bool) {
	if len(candidates) == 0 || len(candidates) > 1 && !candidates[0].Active {
		return Candidate{}, false
	}
	return candidates[0], true
}
