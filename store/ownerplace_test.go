package store_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/store"
)

// A lease is of the run, whatever way leads there: otherwise a write from another work
// tree would go unchecked.
func TestALeaseCountsInEveryPlaceThatLeadsToItsRun(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(t *testing.T, dir store.RunDir) string{
		"a linked work tree": func(t *testing.T, dir store.RunDir) string {
			gitIn(t, dir.Root.Workdir, "commit", "-q", "--allow-empty", "-m", "x")
			tree := filepath.Join(tempDir(t), "tree")
			gitIn(t, dir.Root.Workdir, "worktree", "add", "-q", tree)
			return tree
		},
		"a subdirectory": func(t *testing.T, dir store.RunDir) string {
			sub := filepath.Join(dir.Root.Workdir, "sub")
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			return sub
		},
		"a symbolic link": func(t *testing.T, dir store.RunDir) string {
			link := filepath.Join(tempDir(t), "link")
			if err := os.Symlink(dir.Root.Workdir, link); err != nil {
				t.Fatal(err)
			}
			return link
		},
		"a workspace whose state is the same directory": func(t *testing.T, dir store.RunDir) string {
			repo := newRepo(t)
			if err := os.Symlink(dir.Root.Dir, filepath.Join(repo, ".git/pi_plans")); err != nil {
				t.Fatal(err)
			}
			return repo
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := withCheckpoint(t)
			root, err := store.Find(t.Context(), other(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			there := runDir(t, root, dir.ID)
			lease := acquire(t, dir, "s")
			if again := acquire(t, there, "s"); again != lease {
				t.Errorf("got another lease, %+v", again)
			}
			refusedFor(t, there, store.OwnedBySession)
			if _, err := there.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered()); err != nil {
				t.Errorf("while the lease counts: %v", err)
			}
			write(t, ownerFile(dir), foreign(func(r map[string]any) { r["host"] = "elsewhere" }))
			var lost *store.LostOwnerError
			if _, err := there.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered()); !errors.As(err, &lost) {
				t.Errorf("after a takeover: got %v", err)
			}
		})
	}
}

// Between the check of the owner and the write there is no room for a takeover.
func TestAfterATakeoverNoWriteOfTheFormerOwnerLands(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	former := acquire(t, dir, "former")
	stopped := make(chan error, 1)
	wrote := make(chan struct{}, 1)
	go func() {
		for {
			if _, err := dir.MutateCheckpoint(former, nil, pinned, anotherAnswer()); err != nil {
				stopped <- err
				return
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	}()
	<-wrote
	lease, err := dir.TakeOver(t.Context(), "new")
	if err != nil || lease.Generation != 2 {
		t.Fatalf("got %+v, %v", lease, err)
	}
	defer func() { _, _ = lease.Release() }()
	taken, err := dir.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	var lost *store.LostOwnerError
	if err := <-stopped; !errors.As(err, &lost) {
		t.Errorf("the former owner stopped with %v", err)
	}
	after, err := dir.LoadCheckpoint()
	if err != nil || after.Revision != taken.Revision {
		t.Errorf("revision %d at the takeover, then %d, %v", taken.Revision, after.Revision, err)
	}
	if next, err := dir.MutateCheckpoint(lease, nil, pinned, anotherAnswer()); err != nil || next.Generation != 2 {
		t.Errorf("the checkpoint is of generation %d, %v", next.Generation, err)
	}
}

// anotherAnswer is a change that is another one each time.
func anotherAnswer() store.Change {
	return func(cp *store.Checkpoint) error {
		cp.AnsweredQuestions = append(cp.AnsweredQuestions[:0:0], store.AnsweredQuestion{
			QuestionID: "q", Source: store.AnswerUser, AnsweredAt: store.Stamp(pinned.Add(time.Duration(cp.Revision) * time.Second)),
		})
		return nil
	}
}

// The age of a file is told by a wall clock, which may have been wrong.
func TestNoFileTimeKeepsARunOrGivesItAway(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"an hour ahead": time.Hour, "a day ahead": 24 * time.Hour, "a year behind": -365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newRun(t)
			owner := startProcess(t, "own", dir, "theirs")
			if got := owner.answer(t); got != "acquired 1" {
				t.Fatal(got)
			}
			shift := func() {
				at := time.Now().Add(by)
				files, err := filepath.Glob(filepath.Join(dir.Dir, "pilothouse/*"))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range append(files, ownerFile(dir)) {
					if err := os.Chtimes(path, at, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			shift()
			refusedFor(t, dir, store.OwnedAlive)
			if err := owner.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = owner.Wait()
			shift()
			if lease := acquire(t, dir, "mine"); lease.Generation != 2 {
				t.Errorf("got %+v", lease)
			}
		})
	}
}

func TestWithoutPsARunCanBeHadAllTheSame(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	if err := os.Symlink(git, filepath.Join(path, "git")); err != nil {
		t.Fatal(err)
	}
	owner := startProcessIn(t, []string{"PATH=" + path}, nil, "own", dir, "theirs")
	if got := owner.answer(t); got != "acquired 1" {
		t.Fatal(got)
	}
	record, state, err := dir.Owner()
	if err != nil || state != store.OwnerAlive || record.PIDStart != nil {
		t.Errorf("got %+v, %s, %v", record, state, err)
	}
	refusedFor(t, dir, store.OwnedAlive)
}

func TestOwnersThatSpeakAndReckonDifferentlyRespectEachOther(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{{"TZ=Asia/Kolkata", "LC_ALL=de_DE.UTF-8"}, {"TZ=Pacific/Chatham"}, {"TZ=XXX+11", "LC_TIME=ja_JP.UTF-8"}} {
		dir := newRun(t)
		owner := startProcessIn(t, env, nil, "own", dir, "theirs")
		if got := owner.answer(t); got != "acquired 1" {
			t.Fatal(got)
		}
		refusedFor(t, dir, store.OwnedAlive)
		t.Log("also when only the shared record tells")
		record, _, err := dir.Owner()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir.Dir, "pilothouse/alive-"+record.ProcessToken+".json")); err != nil {
			t.Fatal(err)
		}
		refusedFor(t, dir, store.OwnedAlive)
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = owner.Wait()
		if lease := acquire(t, dir, "mine"); lease.Generation != 2 {
			t.Errorf("%v: got %+v", env, lease)
		}
	}
}
