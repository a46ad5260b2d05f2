package supervisor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"pilothouse/store"
)

// ResumeRequest asks to take up a run.
type ResumeRequest struct {
	Session
	RunID string
	// Move is the user's yes to [Candidate.MoveQuestion], Legacy that to
	// [Candidate.LegacyQuestion].
	Move, Legacy bool
}

// Resumption is a run that was taken up.
type Resumption struct {
	RunID  string          `json:"runId"`
	Status store.RunStatus `json:"status"`
	Phase  store.Phase     `json:"phase,omitempty"`
	// ArtifactDir is where the plan and its documents are now.
	ArtifactDir string `json:"artifactDir"`
	// MovedFrom is the work tree that the run came from just now, "" when it stayed.
	MovedFrom string `json:"movedFrom,omitempty"`
	// Handoff says why the plan has to be approved before its execution goes on.
	Handoff string `json:"handoff,omitempty"`
	// Reverify are the verified items to be verified again first: they passed on another
	// commit than the one checked out now.
	Reverify []string `json:"reverify,omitempty"`
	// Brief tells the agent all it needs to go on.
	Brief string `json:"brief"`
}

// Resume takes up a run for a session: it becomes the session's own, its owner is
// recorded, a question whose answer a crash kept out of the checkpoint is settled, and
// a run of another work tree moves here. Nothing is changed when it fails. Errors:
// *InputError, *store.StateError when there is nothing to resume or a question is not
// answered by req, *store.CorruptError, *store.OwnedError, store.ErrNoArtifacts and
// store.ErrArtifactConflict for a move.
func (s *System) Resume(ctx context.Context, req ResumeRequest) (Resumption, error) {
	r := &resumption{req: req, notesOf: s.notesOf}
	value, err := s.ask(ctx, nil, func(caller *actor.PID) prepare {
		return func(work context.Context) (destination, error) {
			if err := r.prepare(work, s.services); err != nil {
				return destination{}, err
			}
			change := &planChange{caller: caller, session: req.ID, files: r.store, step: r.step}
			return destination{
				run: runKey{r.root.Dir, r.dir.ID}, session: req.ID, message: planCommit{caller, change},
				spawn: newRun(s.services, &r.dir, r.dir.RoundDir()),
			}, nil
		}
	})
	if err != nil {
		return Resumption{}, err
	}
	s.settleSeat(ctx, req.ID)
	s.executions.end(req.ID) // an execution is taken up anew, by the commit that is checked out now
	s.turnTo(req.ID, r.dir)
	cp, written := value.(store.Checkpoint)
	if !written {
		return r.legacy()
	}
	return r.resumed(cp)
}

// resumption is the way of one request. It decides twice: before the run is touched,
// so that a refusal leaves no trace, and again when the run is the session's.
type resumption struct {
	req     ResumeRequest
	root    store.Root
	dir     store.RunDir
	head    *string
	notesOf func(store.RunDir) store.WorkflowNotes

	candidate Candidate
	steps     []store.Change // of the checkpoint, empty without one
	run       store.Run      // as it is on disk now
}

func (r *resumption) prepare(ctx context.Context, s *services) (err error) {
	if r.root, err = store.Find(ctx, r.req.Workdir); err != nil {
		return err
	}
	if r.dir, err = r.root.Run(r.req.RunID); err != nil {
		return noRunError("run", r.req.RunID, err)
	}
	if r.head, err = store.Head(ctx, r.root.Worktree); err != nil {
		return err
	}
	_, err = r.decide()
	return err
}

// decide reads the run and says whether it can be resumed as req asks.
func (r *resumption) decide() (cp store.Checkpoint, err error) {
	if r.run, err = r.dir.Load(); err != nil {
		return cp, err
	}
	if cp, err = r.dir.LoadCheckpoint(); err != nil && !errors.Is(err, store.ErrNoCheckpoint) {
		return cp, err // corrupt: left as it is
	}
	var resumable bool
	r.candidate, resumable = candidateOf(store.RunSummary{Dir: r.dir, Run: r.run}, r.root)
	step := "resume run " + r.dir.ID
	switch {
	case !resumable:
		return cp, &store.StateError{Step: step, Reason: "it is over, there is nothing to resume"}
	case r.candidate.From != "" && !r.req.Move:
		return cp, &store.StateError{Step: step, Reason: fmt.Sprintf("it belongs to the work tree %s, and its move here was not confirmed", r.candidate.From)}
	case r.candidate.LegacyQuestion() != "" && !r.req.Legacy:
		return cp, &store.StateError{Step: step, Reason: "how far its execution was is not on record, and a new start was not confirmed"}
	}
	return cp, nil
}

// store does what a resume changes beside the checkpoint, and plans what it changes in
// it. The run is the session's by now.
func (r *resumption) store(f *files) (any, error) {
	cp, err := r.decide()
	if err != nil {
		return nil, err
	}
	status := r.run.Status
	if r.candidate.From != "" {
		if err := r.move(&cp, f.now()); err != nil {
			return nil, err
		}
	}
	switch now := termsOf(cp, r.head, r.notesOf(r.dir)); {
	case r.candidate.Legacy && (status == store.StatusExecuting || status == store.StatusStopped):
		status = store.StatusAccepted
	case r.candidate.Legacy:
	case now != nil && now.handoff == "":
		status = store.StatusExecuting
		if len(now.stale) > 0 {
			r.steps = append(r.steps, store.HeadChanged())
		}
	case now != nil: // until it is approved again, only its documents may be written
		status = store.StatusAccepted
	case status == store.StatusStopped && (cp.Phase == store.PhasePlanning || cp.Phase == store.PhaseReviewing):
		status = store.StatusPlanning
	}
	if status != r.run.Status {
		if r.run, err = r.dir.SetStatus(status, f.now()); err != nil {
			return nil, err
		}
	}
	return r.run, nil
}

// move brings the run into this work tree. The documents come first and the
// checkpoint last: a crash in between leaves a run that is moved again.
func (r *resumption) move(cp *store.Checkpoint, now time.Time) error {
	documents, err := r.root.CopyArtifacts(r.run.ArtifactDir)
	if err != nil {
		return fmt.Errorf("move run %s here: %w", r.dir.ID, err)
	}
	from := r.run.ArtifactDir
	if r.run, err = r.dir.SetPlace(r.root.Workdir, documents, now); err != nil {
		return err
	}
	if r.candidate.Legacy {
		return nil
	}
	r.steps = append(r.steps, store.Migrated(r.root, now))
	if cp.Plan != nil && contains(from, cp.Plan.Path) {
		here, err := store.IdentifyPlan(filepath.Join(documents, filepath.Base(cp.Plan.Path)))
		if err == nil && here.SHA256 == cp.Plan.SHA256 {
			r.steps = append(r.steps, store.PlanMoved(here))
		}
	}
	moved := cp.Clone()
	if err := allOf(r.steps)(&moved); err != nil {
		return err
	}
	*cp = moved
	return nil
}

func (r *resumption) step(time.Time) store.Change {
	if r.candidate.Legacy {
		return nil
	}
	return allOf(r.steps)
}

// resumed tells of a run by its checkpoint as it is on disk now.
func (r *resumption) resumed(cp store.Checkpoint) (Resumption, error) {
	rounds, _, err := toldRounds(r.dir, &cp)
	if err != nil {
		return Resumption{}, err
	}
	now := termsOf(cp, r.head, r.notesOf(r.dir))
	result := r.result()
	result.Phase = cp.Phase
	result.Brief = resumeBrief{run: r.run, cp: cp, rounds: rounds, terms: now}.text()
	if now != nil {
		result.Handoff, result.Reverify = now.handoff, now.stale
	}
	return result, nil
}

// legacy tells of a run without a checkpoint.
func (r *resumption) legacy() (Resumption, error) {
	decisions, err := r.dir.Decisions()
	if err != nil {
		return Resumption{}, err
	}
	result := r.result()
	was := r.run
	was.Status = r.candidate.Status
	result.Brief = legacyBrief(was, decisions)
	if r.candidate.LegacyQuestion() != "" {
		result.Handoff = "how far the execution was is not on record"
	}
	return result, nil
}

func (r *resumption) result() Resumption {
	return Resumption{RunID: r.dir.ID, Status: r.run.Status, ArtifactDir: r.run.ArtifactDir, MovedFrom: r.candidate.From}
}
