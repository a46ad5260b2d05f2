package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"pilothouse/store"
)

// finished is a run that was done at the pinned time, with a transcript, a review and
// a plan, and is not the active one.
func finished(t testing.TB) store.RunDir {
	t.Helper()
	dir := withCheckpoint(t)
	if _, err := dir.SetStatus(store.StatusDone, pinned); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir.Root.TranscriptDir(dir.ID), "r1__a.jsonl"), "{}\n")
	write(t, filepath.Join(planDir(t, dir), "PLAN_v1.md"), "# Plan\n")
	if _, err := dir.WriteReview("r1", "a", "text"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.StartRun(dir.Root, store.StartRunRequest{Topic: "Another", Skill: "x", RequestText: "x"}, pinned.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func planDir(t testing.TB, dir store.RunDir) string {
	t.Helper()
	run, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	return run.ArtifactDir
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

var later = pinned.Add(24 * time.Hour)

func TestAPrunedRunIsGoneWithItsTranscriptsAndItsPlansStay(t *testing.T) {
	t.Parallel()
	dir := finished(t)
	plans := planDir(t, dir)
	if due, err := dir.Prunable(later); !due || err != nil {
		t.Fatal(due, err)
	}
	if removed, err := dir.Prune(t.Context(), later); !removed || err != nil {
		t.Fatal(removed, err)
	}
	for path, want := range map[string]bool{
		dir.Dir: false, dir.Root.TranscriptDir(dir.ID): false,
		filepath.Join(plans, "PLAN_v1.md"): true, filepath.Join(dir.Root.Dir, "config.json"): true,
	} {
		if exists(path) != want {
			t.Errorf("%s is there: %v", path, !want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir.Root.Dir, "pilothouse/trash")); len(left) != 0 || err != nil {
		t.Errorf("left in the trash: %v, %v", left, err)
	}
	if ids, err := dir.Root.RunIDs(); len(ids) != 1 || err != nil {
		t.Errorf("got %v, %v", ids, err)
	}
	if _, err := dir.Prune(t.Context(), later); !errors.Is(err, store.ErrNoRun) {
		t.Errorf("again: %v", err)
	}
}

// keeps checks that a run is not removed, and not changed but for what the attempt to
// own it leaves in the private folder.
func keeps(t *testing.T, dir store.RunDir, want error) {
	t.Helper()
	before := read(t, filepath.Join(dir.Dir, "run.json"))
	for what, act := range map[string]func() (bool, error){
		"prunable": func() (bool, error) { return dir.Prunable(later) },
		"prune":    func() (bool, error) { return dir.Prune(t.Context(), later) },
	} {
		due, err := act()
		switch {
		case due:
			t.Errorf("%s: it is to go", what)
		case want == nil && err != nil:
			t.Errorf("%s: got %v", what, err)
		case want != nil && (err == nil || !strings.Contains(err.Error(), want.Error())):
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	if read(t, filepath.Join(dir.Dir, "run.json")) != before || !exists(filepath.Join(dir.Dir, "reviews/r1__a.md")) {
		t.Error("the run changed")
	}
	if !exists(filepath.Join(dir.Root.TranscriptDir(dir.ID), "r1__a.jsonl")) {
		t.Error("its transcripts are gone")
	}
}

func TestARunIsKept(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, dir store.RunDir)
		want   error // nil: it is not due
	}{
		"that is not finished": {func(t *testing.T, dir store.RunDir) {
			if _, err := dir.SetStatus(store.StatusStopped, pinned); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"that has changed since": {func(t *testing.T, dir store.RunDir) {
			if _, err := dir.SetStatus(store.StatusAbandoned, later); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"whose checkpoint has changed since": {func(t *testing.T, dir store.RunDir) {
			if _, err := dir.MutateCheckpoint(nil, nil, later, store.HandoffOffered()); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"whose implementation is under review": {func(t *testing.T, dir store.RunDir) {
			_, err := dir.MutateCheckpoint(nil, nil, pinned, func(cp *store.Checkpoint) error {
				cp.Phase, cp.NextAction = store.PhaseImplementationReview, store.ActionRunReview
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}, nil},
		"that is active": {func(t *testing.T, dir store.RunDir) {
			pointer := filepath.Join(dir.Root.Dir, "active.json")
			write(t, pointer, `{"run_id":"`+dir.ID+`","run_dir":"x","artifact_dir":"x"}`)
		}, errors.New("it is the active run")},
		"that this process holds": {func(t *testing.T, dir store.RunDir) {
			lease, err := dir.Acquire(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = lease.Release() })
		}, errors.New("actively owned")},
		"that another process holds": {func(t *testing.T, dir store.RunDir) {
			if got := startProcess(t, "own", dir, "s").answer(t); got != "acquired 1" {
				t.Fatal(got)
			}
		}, errors.New("actively owned")},
		"whose owner cannot be judged": {func(t *testing.T, dir store.RunDir) {
			write(t, filepath.Join(dir.Dir, "owner.json"), `{"schema":1,"host":"elsewhere","pid":1,"pidStart":null,"sessionId":null,"processToken":"x","generation":1,"acquiredAt":"x"}`)
		}, errors.New("cross-host")},
		"whose owner cannot be read": {func(t *testing.T, dir store.RunDir) {
			write(t, filepath.Join(dir.Dir, "owner.json"), "{")
		}, errors.New("owner.json is corrupt")},
		"whose checkpoint cannot be read": {func(t *testing.T, dir store.RunDir) {
			write(t, filepath.Join(dir.Dir, "checkpoint.json"), "[]")
		}, errors.New("checkpoint.json is corrupt")},
		"that cannot be read": {func(t *testing.T, dir store.RunDir) {
			write(t, filepath.Join(dir.Dir, "run.json"), "")
		}, errors.New("run.json is corrupt")},
		"that does not tell its age": {func(t *testing.T, dir store.RunDir) {
			path := filepath.Join(dir.Dir, "run.json")
			write(t, path, strings.Replace(read(t, path), `"updated_at": "2026-08-25T13:00:00Z"`, `"updated_at": "yesterday"`, 1))
		}, errors.New("when it was changed last")},
		"that holds its plans": {func(t *testing.T, dir store.RunDir) {
			path := filepath.Join(dir.Dir, "run.json")
			write(t, path, strings.Replace(read(t, path), planDir(t, dir), filepath.Join(dir.Dir, "plans"), 1))
		}, errors.New("its plans lie inside it")},
		"that is a link": {func(t *testing.T, dir store.RunDir) {
			elsewhere := filepath.Join(tempDir(t), "run")
			if err := os.Rename(dir.Dir, elsewhere); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, dir.Dir); err != nil {
				t.Fatal(err)
			}
		}, errors.New("its directory is a link")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := finished(t)
			test.change(t, dir)
			keeps(t, dir, test.want)
		})
	}
}

func TestADeadOwnerDoesNotKeepAFinishedRunForEver(t *testing.T) {
	t.Parallel()
	dir := finished(t)
	owner := startProcess(t, "own", dir, "s")
	if got := owner.answer(t); got != "acquired 1" {
		t.Fatal(got)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	if removed, err := dir.Prune(t.Context(), later); !removed || err != nil || exists(dir.Dir) {
		t.Errorf("got %v, %v", removed, err)
	}
}

func TestWhatACrashLeftInTheTrashIsRemovedByTheNextRemovalAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := finished(t)
	trash := filepath.Join(dir.Root.Dir, "pilothouse/trash")
	// As after a crash between the rename and the end of the removal.
	write(t, filepath.Join(trash, dir.ID+"~0a1b2c3d", "run.json"), "{}")
	write(t, filepath.Join(trash, "notes.txt"), "of a person")
	if err := dir.Root.EmptyTrash(); err != nil {
		t.Fatal(err)
	}
	if exists(filepath.Join(trash, dir.ID+"~0a1b2c3d")) || !exists(filepath.Join(trash, "notes.txt")) || !exists(dir.Dir) {
		t.Errorf("the trash: %v, the run is there: %v", list(t, trash), exists(dir.Dir))
	}
	if err := finished(t).Root.EmptyTrash(); err != nil {
		t.Errorf("without a trash: %v", err)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// A removal that is killed leaves a run that is whole, or none.
func TestAKilledRemovalLeavesAWholeRunOrNone(t *testing.T) {
	t.Parallel()
	const reviews = 200 // so that it takes a moment
	for moment, reached := range map[string]func(store.RunDir) bool{
		"as soon as it owns the run":          func(dir store.RunDir) bool { return exists(filepath.Join(dir.Dir, "owner.json")) || !exists(dir.Dir) },
		"as soon as the run is moved":         func(dir store.RunDir) bool { return !exists(dir.Dir) },
		"as soon as the transcripts are gone": func(dir store.RunDir) bool { return !exists(dir.Root.TranscriptDir(dir.ID)) },
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			dir := finished(t)
			for n := range reviews {
				write(t, filepath.Join(dir.Dir, "reviews", fmt.Sprintf("r2__l%d.md", n)), "text")
			}
			helper := startProcess(t, "prune", dir, "s")
			if got := helper.answer(t); got != "ready" {
				t.Fatal(got)
			}
			if _, err := helper.in.Write([]byte("go\n")); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = helper.Wait()
			}()
			for over := false; !over && !reached(dir); {
				select {
				case <-ended:
					over = true
				default:
					runtime.Gosched()
				}
			}
			_ = helper.Process.Kill()
			<-ended
			if exists(dir.Dir) {
				if left := list(t, filepath.Join(dir.Dir, "reviews")); len(left) != reviews+1 {
					t.Errorf("%d of %d reviews are left of a run that is there", len(left), reviews+1)
				}
				if _, err := dir.LoadCheckpoint(); err != nil {
					t.Error(err)
				}
				if removed, err := dir.Prune(t.Context(), later); !removed || err != nil {
					t.Errorf("afterwards it is %v, %v", removed, err)
				}
			}
			if err := dir.Root.EmptyTrash(); err != nil {
				t.Error(err)
			}
			if left := list(t, filepath.Join(dir.Root.Dir, "pilothouse/trash")); len(left) != 0 {
				t.Errorf("left in the trash: %v", left)
			}
		})
	}
}
