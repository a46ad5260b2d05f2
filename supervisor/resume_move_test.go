package supervisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// linked adds a work tree to the repository and returns the session's like there.
func (b *bundle) linked() supervisor.Session {
	b.t.Helper()
	b.commit()
	dir := filepath.Join(b.t.TempDir(), "linked")
	b.git("worktree", "add", "-q", dir, "-b", "linked")
	session := b.as("mover")
	session.Workdir = dir
	return session
}

// approvedHere is a run whose execution was approved in the first work tree.
func (b *bundle) approvedHere() (dir store.RunDir, plan string) {
	b.t.Helper()
	head := b.commit()
	dir = b.recorded(1, "things", store.StatusPlanning)
	plan = b.artifact(dir, "PLAN_v1.md", twoChecks)
	if _, err := dir.MutateCheckpoint(nil, nil, time.Now(), executing(b.t, plan, head, dir.Root.Worktree)...); err != nil {
		b.t.Fatal(err)
	}
	if _, err := dir.SetStatus(store.StatusExecuting, time.Now()); err != nil {
		b.t.Fatal(err)
	}
	return dir, plan
}

func TestARunMovesToAnotherWorkTreeWithItsDocumentsAndWithoutItsApproval(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, plan := b.approvedHere()
	there := b.linked()
	req := supervisor.ResumeRequest{Session: there, RunID: dir.ID}
	if _, err := b.system.Resume(context.Background(), req); err == nil {
		t.Fatal("it moved without a yes")
	}
	before := b.checkpoint(dir)
	req.Move = true
	resumed, err := b.system.Resume(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(there.Workdir, "docs", "pi-plans", filepath.Base(filepath.Dir(plan)), "PLAN_v1.md")
	for _, path := range []string{plan, copied} {
		if text, err := os.ReadFile(path); err != nil || string(text) != twoChecks {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	cp := b.checkpoint(dir)
	if cp.Workdir != there.Workdir || cp.Plan.Path != copied || cp.Migration == nil || cp.NextAction != store.ActionAcceptExecute || cp.Revision != before.Revision+1 {
		t.Errorf("the checkpoint is %+v", cp)
	}
	if e := cp.Execution; e.Approval != nil || len(e.DoneVCIDs) != 0 || e.OriginWorktree != before.WorktreeRoot {
		t.Errorf("the execution is %+v", e)
	}
	if run, err := dir.Load(); err != nil || run.Workdir != there.Workdir || run.ArtifactDir != filepath.Dir(copied) {
		t.Errorf("the run is %+v, %v", run, err)
	}
	holds(t, resumed.Brief, "approved again: the run has moved to another work tree", copied)
	if resumed.Handoff == "" || resumed.MovedFrom != before.WorktreeRoot {
		t.Errorf("resumed is %+v", resumed)
	}
	// What was withdrawn is not taken back by resuming once more.
	again, err := b.system.Resume(context.Background(), supervisor.ResumeRequest{Session: there, RunID: dir.ID})
	if err != nil || again.Handoff == "" || again.MovedFrom != "" {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestARunDoesNotMoveOverADifferentDocument(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, plan := b.approvedHere()
	there := b.linked()
	target := filepath.Join(there.Workdir, "docs", "pi-plans", filepath.Base(filepath.Dir(plan)), "PLAN_v1.md")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	writeText(t, target, "mine")
	b.artifact(dir, "NOTES.md", "notes")
	before := b.checkpoint(dir)
	req := supervisor.ResumeRequest{Session: there, RunID: dir.ID, Move: true}
	if _, err := b.system.Resume(context.Background(), req); !errors.Is(err, store.ErrArtifactConflict) {
		t.Errorf("got %v, want %v", err, store.ErrArtifactConflict)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
		t.Errorf("the document is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(target), "NOTES.md")); err == nil {
		t.Error("another document was copied")
	}
	if after := b.checkpoint(dir); after.Revision != before.Revision || after.Execution.Approval == nil {
		t.Errorf("the checkpoint is %+v", after)
	}
	if _, state, err := dir.Owner(); err != nil || state != store.OwnerNone {
		t.Errorf("owner is %s, %v; want none after the refusal", state, err)
	}
	writeText(t, target, twoChecks) // the same bytes are no conflict
	if resumed, err := b.system.Resume(context.Background(), req); err != nil || resumed.MovedFrom == "" {
		t.Errorf("with the same bytes: %+v, %v", resumed, err)
	}
}

func TestARunWithoutDocumentsDoesNotMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, plan := b.approvedHere()
	there := b.linked()
	if err := os.RemoveAll(filepath.Dir(plan)); err != nil {
		t.Fatal(err)
	}
	req := supervisor.ResumeRequest{Session: there, RunID: dir.ID, Move: true}
	if _, err := b.system.Resume(context.Background(), req); !errors.Is(err, store.ErrNoArtifacts) {
		t.Errorf("got %v, want %v", err, store.ErrNoArtifacts)
	}
}

func TestAReviewThatMovesCountsItsRoundsAnew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir, _ := b.approvedHere()
	there := b.linked()
	if _, err := dir.MutateCheckpoint(nil, nil, time.Now(), store.ExecutionCompleted(), store.ReviewConfigured("2 rounds")); err != nil {
		t.Fatal(err)
	}
	resumed, err := b.system.Resume(context.Background(), supervisor.ResumeRequest{Session: there, RunID: dir.ID, Move: true})
	if err != nil {
		t.Fatal(err)
	}
	cp := b.checkpoint(dir)
	if r := cp.ImplementationReview; r.TerminationCondition != "2 rounds" || r.CompletedRounds != 0 || cp.NextAction != store.ActionRunReview {
		t.Errorf("the review is %+v, next %s", r, cp.NextAction)
	}
	holds(t, resumed.Brief, "It ends: 2 rounds. Rounds completed: 0")
	if _, err := b.system.ApproveExecution(context.Background(), there, dir.ID, ""); err == nil {
		t.Error("an execution was approved during the review")
	}
}
