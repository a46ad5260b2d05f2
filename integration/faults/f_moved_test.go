package faults_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/integration/piharness"
	"pilothouse/lanes/proc/proctest"
)

// A run at work is held while something happens to its repository.
func (s *scene) atWork(args ...string) (j *job, letGo func()) {
	s.t.Helper()
	letGo = s.held(answers(s.t)...)
	j = s.refine(args...)
	s.started(1)
	return j, letGo
}

func TestFaultF91HousekeepingLeavesTheStateAlone(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(s *scene){
		"gc": func(s *scene) { s.git(s.Dir, "gc", "-q", "--prune=now", "--aggressive") },
		"clean": func(s *scene) {
			s.git(s.Dir, "clean", "-q", "-ffdx")
			if _, err := os.Stat(s.plan); !errors.Is(err, fs.ErrNotExist) {
				s.t.Error("clean cleaned nothing")
			}
			piharness.WriteFile(s.t, s.plan, planText)
		},
		"worktree prune": func(s *scene) {
			tree := s.worktree(s.Dir)
			if err := os.RemoveAll(tree); err != nil {
				s.t.Fatal(err)
			}
			s.git(s.Dir, "worktree", "prune")
		},
		"fsck, repack and a new branch": func(s *scene) {
			s.git(s.Dir, "fsck")
			s.git(s.Dir, "repack", "-q", "-a", "-d")
			s.git(s.Dir, "checkout", "-q", "-B", "other")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, t.TempDir())
			j, letGo := s.atWork()
			keep(s)
			letGo()
			o := j.wait()
			o.complete(report)
			s.consistent()
			keep(s)
			if lane := s.refine("--resume-round", o.round().RoundID).wait().complete(report); !lane.Reused {
				t.Error("the lane ran again")
			}
		})
	}
}

func TestFaultF91ARepositoryThatMovedIsNoticedAndNotMadeAgain(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(s *scene, away string){
		"moved":                     func(*scene, string) {},
		"cloned again in its place": func(s *scene, away string) { s.git(away, "clone", "-q", away, s.Dir) },
		"cloned again in its place and used": func(s *scene, away string) {
			s.git(away, "clone", "-q", away, s.Dir)
			if o := s.command("plans", "init").start().wait(); o.Code != 0 {
				s.t.Error(o.Stderr)
			}
		},
		"replaced by a copy": func(s *scene, away string) {
			if err := os.CopyFS(s.Dir, os.DirFS(away)); err != nil {
				s.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, t.TempDir())
			j, letGo := s.atWork()
			run, _, record := s.recorded()
			place, away := s.Dir, filepath.Join(t.TempDir(), "away")
			if err := os.Rename(place, away); err != nil {
				t.Fatal(err)
			}
			replace(s, away)
			before := kept(t, place)
			letGo()
			o := j.wait()
			words := lastLine(o.Stderr)
			for _, word := range []string{run.ID, "moved, replaced or removed", run.Dir, "start again in the repository where it is now"} {
				if o.Code != 1 || o.Stdout != "" || !strings.Contains(words, word) {
					t.Errorf("ended with %d and without %q: %s%s", o.Code, word, o.Stdout, o.Stderr)
				}
			}
			if diff := cmp.Diff(before, kept(t, place)); diff != "" {
				t.Errorf("where the repository was (-before +after):\n%s", diff)
			}
			s.noSurvivors()
			// Where the repository is now nobody holds the run, and its round goes on.
			s.Dir, s.plan = away, filepath.Join(away, "PLAN.md")
			if owner := s.listed()[run.ID].Owner; owner != "" {
				t.Errorf("the run is still held by %s", owner)
			}
			s.stub(answers(t)...)
			if lane := s.refine("--resume-round", record.RoundID).wait().complete(report); lane.Reused {
				t.Error("an answer was kept that was not recorded")
			}
			for lane, status := range s.consistent() {
				if status != "complete" {
					t.Errorf("lane %s is %s", lane, status)
				}
			}
		})
	}
}

// kept is what is recorded below a directory: the text of all files of state but
// those that say who is at work. There is nothing when there is no directory.
func kept(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && name == "tmp":
			return fs.SkipDir
		case entry.IsDir():
			files[path] = ""
		case strings.Contains(path, "pi_plans") && name != "owner.json" && !strings.HasPrefix(name, "alive-"):
			files[path] = piharness.ReadFile(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFaultF91ARunOutlivesItsWorkTree(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *scene, repo, tree string) error{
		"removed and pruned": func(s *scene, repo, tree string) error {
			defer s.git(repo, "worktree", "prune")
			return os.RemoveAll(tree)
		},
		"without its .git file": func(_ *scene, _, tree string) error { return os.Remove(filepath.Join(tree, ".git")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, t.TempDir())
			repo, tree := s.Dir, s.worktree(s.Dir)
			s.at(tree)
			j, letGo := s.atWork()
			if err := lose(s, repo, tree); err != nil {
				t.Fatal(err)
			}
			letGo()
			o := j.wait()
			lane := o.complete(report)
			s.Dir = repo
			if run := s.listed()[o.round().RunID]; run.Workdir != tree || run.Owner != "" || run.Problem != "" {
				t.Errorf("listed as %+v", run)
			}
			if piharness.ReadFile(t, *lane.ResultFile) != report {
				t.Error("the answer is not there")
			}
			s.consistent()
		})
	}
}

func TestFaultF91AWorkTreeThatLostItsRepositoryIsDefined(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, s *scene, repo, tree string){
		"pruned": func(t *testing.T, s *scene, repo, tree string) {
			if err := os.Rename(tree, tree+"-moved"); err != nil {
				t.Fatal(err)
			}
			s.git(repo, "worktree", "prune")
			if err := os.Rename(tree+"-moved", tree); err != nil {
				t.Fatal(err)
			}
		},
		"whose repository moved": func(t *testing.T, _ *scene, repo, _ string) {
			if err := os.Rename(repo, filepath.Join(t.TempDir(), "away")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, answers(t)...)
			repo, tree := s.Dir, s.worktree(s.Dir)
			s.at(tree)
			s.startRun()
			lose(t, s, repo, tree)
			marker := piharness.ReadFile(t, filepath.Join(tree, ".git"))
			for _, dir := range []string{filepath.Join(tree, "docs"), tree} {
				s.Dir = dir
				words, err := s.tryGit(dir, "rev-parse", "--git-dir")
				if err == nil {
					t.Fatalf("git knows it: %s", words)
				}
				s.refused(strings.TrimSpace(words))
			}
			if piharness.ReadFile(t, filepath.Join(tree, ".git")) != marker {
				t.Error("the .git file was changed")
			}
		})
	}
	t.Run("without its .git file", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, answers(t)...)
		repo, tree := s.Dir, s.worktree(s.Dir)
		s.at(tree)
		lost := s.startRun()
		if err := os.Remove(filepath.Join(tree, ".git")); err != nil {
			t.Fatal(err)
		}
		// Nothing is left there that tells of a repository: what only reads says so, and
		// what writes makes one and says that.
		for what, o := range map[string]outcome{"runs": s.command("runs").start().wait(), "show": s.command("plans", "show").start().wait()} {
			s.refuses(o, what, "not in a git repository")
			s.refuses(o, what, tree)
		}
		if o := s.tryStartRun(); o.Code != 0 || !strings.Contains(o.Stdout, "ran `git init` in "+tree) {
			t.Errorf("start-run ended with %d: %s%s", o.Code, o.Stdout, o.Stderr)
		}
		s.Dir = repo
		if run, found := s.listed()[lost]; !found || run.Workdir != tree {
			t.Errorf("the run of the work tree is %+v", run)
		}
	})
}

func TestFaultF91AMovedRepositoryEndsAllLanesOfARound(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	refs, seen := t.TempDir(), t.TempDir()
	stub := append(piharness.Command{proctest.Build(t), "--marker", s.Marker}, answers(t)...)
	path := s.script(fmt.Sprintf(`echo >%[1]s/started-${PWD##*/}
while [ ! -e %[1]s/gate ] || [ ${PWD##*/} != a ]; do sleep 0.02; done
exec %[2]s
`, seen, stub))
	s.setenv("PILOTHOUSE_PI", piharness.Command{path, s.Marker}.String())
	args := []string{"analyze-refs", "--model", "sim/plain", "--json"}
	for _, id := range []string{"a", "b", "c", "d"} {
		piharness.WriteFile(t, filepath.Join(refs, id, "NOTES.md"), "a list\n")
		args = append(args, "--ref", id+"="+filepath.Join(refs, id))
	}
	j := s.command(args...).start()
	s.eventually("the first batch is at work", func() bool {
		started, err := filepath.Glob(filepath.Join(seen, "started-*"))
		return err == nil && len(started) == 3
	})
	if err := os.Rename(s.Dir, filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	piharness.WriteFile(t, filepath.Join(seen, "gate"), "") // lets the first lane answer; the others would never end
	if o := j.wait(); o.Code != 1 || strings.Count(lastLine(o.Stderr), "moved, replaced or removed") != 1 {
		t.Errorf("ended with %d: %s", o.Code, o.Stderr)
	}
	if made := kept(t, s.Dir); len(made) != 0 {
		t.Errorf("the repository was made again: %v", made)
	}
	s.noSurvivors()
}

func TestFaultF91ARepositoryThatMovesBetweenAttemptsIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	place, away := s.Dir, filepath.Join(t.TempDir(), "away")
	path := s.script(fmt.Sprintf("mv %q %q\necho 'Lock file is already being held' >&2\nexit 1\n", place, away))
	s.setenv("PILOTHOUSE_PI", piharness.Command{path, s.Marker}.String())
	if o := s.refine("--attempts", "2").wait(); o.Code != 1 || !strings.Contains(o.Stderr, "moved, replaced or removed") {
		t.Errorf("ended with %d: %s", o.Code, o.Stderr)
	}
	if made := kept(t, place); len(made) != 0 {
		t.Errorf("the repository was made again: %v", made)
	}
}
