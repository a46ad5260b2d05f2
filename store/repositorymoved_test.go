package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

// disturbances are what can become of a repository while a run is held. Each returns
// where the run is afterwards, "" for nowhere.
var disturbances = map[string]func(t *testing.T, repo string) string{
	"moved": moveAway,
	"cloned again in its place": func(t *testing.T, repo string) string {
		away := moveAway(t, repo)
		gitIn(t, filepath.Dir(repo), "clone", "-q", away, repo)
		return away
	},
	"cloned again in its place and used": func(t *testing.T, repo string) string {
		away := moveAway(t, repo)
		gitIn(t, filepath.Dir(repo), "clone", "-q", away, repo)
		if _, _, err := store.StartRun(ensure(t, repo), store.StartRunRequest{Topic: "Other", Skill: "plan-normal", RequestText: "x"}, pinned); err != nil {
			t.Fatal(err)
		}
		return away
	},
	"replaced by a copy": func(t *testing.T, repo string) string {
		away := moveAway(t, repo)
		if err := os.CopyFS(repo, os.DirFS(away)); err != nil {
			t.Fatal(err)
		}
		return away
	},
	"removed": func(t *testing.T, repo string) string {
		if err := os.RemoveAll(repo); err != nil {
			t.Fatal(err)
		}
		return ""
	},
}

func moveAway(t *testing.T, repo string) string {
	t.Helper()
	away := filepath.Join(tempDir(t), "away")
	if err := os.Rename(repo, away); err != nil {
		t.Fatal(err)
	}
	return away
}

// writes are all the ways to write into a run.
func writes(dir store.RunDir, lease *store.Lease) map[string]func() error {
	round := exampleRound("r1", pinned)
	return map[string]func() error{
		"the checkpoint":     func() error { _, err := dir.MutateCheckpoint(lease, nil, pinned, store.HandoffOffered()); return err },
		"its own checkpoint": func() error { _, err := dir.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered()); return err },
		"the status":         func() error { _, err := dir.SetStatus(store.StatusStopped, pinned); return err },
		"the work tree":      func() error { _, err := dir.SetPlace("/x", "/x/plans", pinned); return err },
		"a review":           func() error { _, err := dir.WriteReview("r1", "a", "text"); return err },
		"a review of rounds": func() error { _, err := dir.RoundDir().WriteReview("r1", "a", "text"); return err },
		"a round":            func() error { return dir.RoundDir().SaveRound(round) },
		"a decision":         func() error { _, err := dir.AppendDecision(store.Decision{Question: "q"}, pinned); return err },
		"a tool's decision":  func() error { _, err := dir.AppendToolDecision(store.ToolDecision{Question: "q"}, pinned); return err },
		"a reference":        func() error { _, err := dir.AppendRef(store.Reference{Title: "t"}, pinned); return err },
		"a subagent":         func() error { _, err := dir.AppendSubagent(store.Subagent{Role: "r"}, pinned); return err },
	}
}

func TestNoWriteFollowsARunWhoseRepositoryIsElsewhereNow(t *testing.T) {
	t.Parallel()
	for name, disturb := range disturbances {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := withCheckpoint(t)
			lease, err := dir.Acquire(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			for what, write := range writes(dir, lease) {
				if err := write(); err != nil {
					t.Fatalf("before, %s: %v", what, err)
				}
			}
			away := disturb(t, dir.Root.Workdir)
			before, kept := files(t, dir.Root.Workdir), files(t, away)
			for what, write := range writes(dir, lease) {
				err := write()
				var moved *store.MovedError
				if !errors.As(err, &moved) || moved.Dir != dir.Dir || moved.RunID != dir.ID {
					t.Errorf("%s: got %v", what, err)
				}
				if lost := (*store.LostOwnerError)(nil); !errors.As(err, &lost) || !errors.Is(err, store.ErrNoRun) {
					t.Errorf("%s: %v is not taken for the loss of the run", what, err)
				}
			}
			if diff := cmp.Diff(before, files(t, dir.Root.Workdir)); diff != "" {
				t.Errorf("written where the repository was (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(kept, files(t, away)); diff != "" {
				t.Errorf("written where the repository is (-before +after):\n%s", diff)
			}
			if _, err := lease.Release(); err != nil {
				t.Errorf("release: %v", err)
			}
			if away == "" {
				return
			}
			root, err := store.Find(t.Context(), away)
			if err != nil {
				t.Fatal(err)
			}
			next, err := runDir(t, root, dir.ID).Acquire(t.Context(), "another")
			if err != nil || next.Generation != 2 {
				t.Fatalf("where the repository is now: %+v, %v", next, err)
			}
			if _, err := next.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRoundsOfNoRunMakeNoRepositoryWhereTheirsWas(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"moved", "cloned again in its place", "removed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := ensure(t, newRepo(t))
			rounds, round := root.AdHoc(), exampleRound("r1", pinned)
			if err := rounds.SaveRound(round); err != nil {
				t.Fatal(err)
			}
			disturbances[name](t, root.Workdir)
			before := files(t, root.Workdir)
			for what, err := range map[string]error{
				"the record": rounds.SaveRound(round),
				"a review":   func() error { _, err := rounds.WriteReview("r1", "a", "text"); return err }(),
			} {
				var moved *store.MovedError
				if !errors.As(err, &moved) || moved.Dir != root.Dir || !strings.Contains(err.Error(), "moved, replaced or removed ("+root.Dir) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			if diff := cmp.Diff(before, files(t, root.Workdir)); diff != "" {
				t.Errorf("written where the repository was (-before +after):\n%s", diff)
			}
		})
	}
}

func TestARunIsNotGivenUpBecauseItsSignOfLifeWasDeleted(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	lease, err := dir.Acquire(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	signs, err := filepath.Glob(filepath.Join(dir.Dir, "pilothouse", "alive-"+lease.Token+"*"))
	if err != nil || len(signs) == 0 {
		t.Fatalf("%v, %v", signs, err)
	}
	for _, sign := range signs {
		if err := os.Remove(sign); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dir.MutateCheckpoint(lease, nil, pinned, store.HandoffOffered()); err != nil {
		t.Errorf("got %v", err)
	}
	if released, err := lease.Release(); !released || err != nil {
		t.Errorf("release: %v, %v", released, err)
	}
}

func TestARunTakenOverIsNotTakenForOneThatMoved(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	lease, err := dir.Acquire(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	next, err := dir.TakeOver(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	_, err = dir.MutateCheckpoint(lease, nil, pinned, store.HandoffOffered())
	var lost *store.LostOwnerError
	var moved *store.MovedError
	if !errors.As(err, &lost) || errors.As(err, &moved) {
		t.Errorf("got %v", err)
	}
	if _, err := next.Release(); err != nil {
		t.Error(err)
	}
}

// files are all that is below a directory; nothing when the directory is not there.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if dir == "" {
		return all
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return all
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if entry.IsDir() {
			all[name+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		all[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
