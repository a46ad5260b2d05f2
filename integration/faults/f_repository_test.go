package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/supervisor"
)

// Section F: the git directory.

// git runs git like a user of the scene would.
func (s *scene) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := s.tryGit(dir, args...)
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (s *scene) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, s.Env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// at goes on in another directory, with a plan of its own there.
func (s *scene) at(dir string) {
	s.t.Helper()
	s.Dir, s.plan = dir, filepath.Join(dir, "PLAN.md")
	piharness.WriteFile(s.t, s.plan, planText)
}

// worktree is a new linked work tree of a repository.
func (s *scene) worktree(repo string) string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "linked")
	s.git(repo, "worktree", "add", "-q", "--detach", dir)
	return dir
}

// startRun starts a run without a plan and returns its id.
func (s *scene) startRun() string {
	s.t.Helper()
	o := s.tryStartRun()
	var result supervisor.StartRunResult
	if err := json.Unmarshal([]byte(o.Stdout), &result); err != nil || o.Code != 0 || result.Run.RunID == "" {
		s.t.Fatalf("start-run ended with %d (%v): %s%s", o.Code, err, o.Stdout, o.Stderr)
	}
	return result.Run.RunID
}

func (s *scene) tryStartRun() outcome {
	s.t.Helper()
	return s.command("plans", "--json", `{"action":"start-run","topic":"Ovens","skill":"plan-small","requestText":"more ovens"}`).start().wait()
}

// listed are the runs that `pilothouse runs` tells of, by id.
func (s *scene) listed() map[string]supervisor.RunInfo {
	s.t.Helper()
	o := s.command("runs", "--json").start().wait()
	var runs []supervisor.RunInfo
	if err := json.Unmarshal([]byte(o.Stdout), &runs); err != nil || o.Code != 0 {
		s.t.Fatalf("runs ended with %d (%v): %s%s", o.Code, err, o.Stdout, o.Stderr)
	}
	byID := map[string]supervisor.RunInfo{}
	for _, run := range runs {
		byID[run.RunID] = run
	}
	return byID
}

// works starts a run, lists it, has the plan reviewed and resumes the round, and
// checks that all of it is in the one state directory.
func (s *scene) works(stateRoot string) {
	s.t.Helper()
	runID := s.startRun()
	if text := piharness.ReadFile(s.t, filepath.Join(stateRoot, "runs", runID, "run.json")); !strings.Contains(text, runID) {
		s.t.Errorf("run.json is %s", text)
	}
	if run := s.listed()[runID]; run.Workdir != s.Dir || run.Problem != "" {
		s.t.Errorf("listed as %+v", run)
	}
	var shown supervisor.ConfigResult
	o := s.command("plans", "show").start().wait()
	if err := json.Unmarshal([]byte(o.Stdout), &shown); err != nil || shown.StateRoot != stateRoot {
		s.t.Errorf("the state is in %q, want %q (%v %s)", shown.StateRoot, stateRoot, err, o.Stderr)
	}
	o = s.refine().wait()
	lane := o.complete(report)
	if lane.ResultFile == nil || !strings.HasPrefix(*lane.ResultFile, filepath.Join(stateRoot, "runs")) {
		s.t.Errorf("the answer is in %v", lane.ResultFile)
	}
	again := s.refine("--resume-round", o.round().RoundID).wait()
	if lane := again.complete(report); !lane.Reused {
		s.t.Error("resuming the round ran the lane again")
	}
	if runs := s.listed(); len(runs) != 2 {
		s.t.Errorf("there are %d runs", len(runs))
	}
}

// stateBelow checks that of all directories below some there is none for state but
// the one.
func stateBelow(t *testing.T, want string, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == "pi_plans" && path != want {
				t.Errorf("there is state in %s", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// refused checks that each command is refused with every line of the message, and
// that nothing was made for it.
func (s *scene) refused(message string) {
	s.t.Helper()
	for _, j := range []*job{
		s.command("plans", "init"), s.command("plans", "show"), s.command("runs"), s.command("show"), s.refining(),
		s.command("analyze-refs", "--ref", "a="+s.Dir, "--model", "sim/plain"),
	} {
		s.refuses(j.start().wait(), strings.Join(j.Cmd.Args[1:], " "), message)
	}
	s.refuses(s.tryStartRun(), "start-run", message)
	if _, err := os.Lstat(filepath.Join(s.Dir, ".git", "pi_plans")); err == nil {
		s.t.Error("there is state")
	}
}

func (s *scene) refuses(o outcome, what, message string) {
	s.t.Helper()
	if o.Code != 1 || o.Stdout != "" || strings.Count(o.Stderr, "\n") != 1 {
		s.t.Errorf("%s ended with %d: %s%s", what, o.Code, o.Stdout, o.Stderr)
	}
	for line := range strings.SplitSeq(message, "\n") {
		if !strings.Contains(o.Stderr, line) {
			s.t.Errorf("%s told %q, not %q", what, o.Stderr, line)
		}
	}
}

// resolved is a path without symbolic links.
func resolved(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// oldGit puts a git before 2.5 on the PATH: one that was not taught any of the later
// ways to ask for directories.
func (s *scene) oldGit() {
	s.t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.t.TempDir(), "git")
	piharness.WriteFile(s.t, path, fmt.Sprintf(`#!/bin/sh
for word do
	case $word in --path-format*|--absolute-git-dir|--git-common-dir)
		echo "fatal: no $word in this old git" >&2
		exit 128
	esac
done
exec %s "$@"
`, git))
	if err := os.Chmod(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for _, variable := range s.Env {
		if dirs, ok := strings.CutPrefix(variable, "PATH="); ok {
			s.setenv("PATH", filepath.Dir(path)+string(os.PathListSeparator)+dirs)
			return
		}
	}
	s.t.Fatal("the scene has no PATH")
}

// places are where one can stand in a repository; each returns the directory and the
// git directory that belongs to it.
var places = map[string]func(s *scene) (workdir, commonDir string){
	"the top": func(s *scene) (string, string) { return s.Dir, filepath.Join(s.Dir, ".git") },
	"a subdirectory": func(s *scene) (string, string) {
		return filepath.Join(s.Dir, "docs"), filepath.Join(s.Dir, ".git")
	},
	"a linked work tree": func(s *scene) (string, string) {
		return s.worktree(s.Dir), filepath.Join(s.Dir, ".git")
	},
	"a subdirectory of a linked work tree": func(s *scene) (string, string) {
		return filepath.Join(s.worktree(s.Dir), "docs"), filepath.Join(s.Dir, ".git")
	},
	"a submodule": func(s *scene) (string, string) {
		outer := s.t.TempDir()
		s.git(outer, "init", "-q")
		s.git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", s.Dir, "module")
		return filepath.Join(outer, "module", "docs"), filepath.Join(outer, ".git", "modules", "module")
	},
	"a linked work tree of a submodule": func(s *scene) (string, string) {
		outer := s.t.TempDir()
		s.git(outer, "init", "-q")
		s.git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", s.Dir, "module")
		return s.worktree(filepath.Join(outer, "module")), filepath.Join(outer, ".git", "modules", "module")
	},
	"a separate git directory": func(s *scene) (string, string) {
		elsewhere := filepath.Join(s.t.TempDir(), "elsewhere")
		s.git(s.Dir, "init", "-q", "--separate-git-dir", elsewhere)
		return filepath.Join(s.Dir, "docs"), elsewhere
	},
	"a linked .git": func(s *scene) (string, string) {
		elsewhere := filepath.Join(s.t.TempDir(), "elsewhere")
		if err := errors.Join(os.Rename(filepath.Join(s.Dir, ".git"), elsewhere), os.Symlink(elsewhere, filepath.Join(s.Dir, ".git"))); err != nil {
			s.t.Fatal(err)
		}
		return filepath.Join(s.Dir, "docs"), elsewhere
	},
	"spaces and a line break in the path": func(s *scene) (string, string) {
		dir := filepath.Join(s.t.TempDir(), "forty  loaves\nand one")
		s.git(s.Dir, "clone", "-q", s.Dir, dir)
		return filepath.Join(dir, "docs"), filepath.Join(dir, ".git")
	},
}

func TestFaultF85TheStateIsInOneDirectoryWhereverOneStands(t *testing.T) {
	t.Parallel()
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, old := range []bool{false, true} {
				t.Run(fmt.Sprintf("old git %v", old), func(t *testing.T) {
					s := stubScene(t, answers(t)...)
					start := s.Dir
					workdir, commonDir := place(s)
					if old {
						s.oldGit()
					}
					s.at(workdir)
					stateRoot := filepath.Join(resolved(t, commonDir), "pi_plans")
					s.works(stateRoot)
					stateBelow(t, stateRoot, start, workdir, commonDir)
				})
			}
		})
	}
}

func TestFaultF87RunsOfTwoWorkTreesAreToldApart(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	letGo := s.held(answers(t)...)
	main := s.Dir
	trees := []string{s.worktree(main), s.worktree(main)}
	var jobs []*job
	for _, tree := range trees {
		s.at(tree)
		jobs = append(jobs, s.refine())
	}
	s.eventually("both are at work", func() bool {
		owned := 0
		for _, run := range s.listed() {
			if run.Owner != "" {
				owned++
			}
		}
		return owned == len(trees)
	})
	owners := map[string]string{}
	for _, dir := range append(trees, main) {
		s.Dir = dir
		runs := s.listed()
		if len(runs) != len(trees) {
			t.Fatalf("in %s there are %d runs", dir, len(runs))
		}
		for id, run := range runs {
			if run.Owner == "" {
				t.Errorf("nobody works on %s", id)
			}
			owners[run.Workdir] = run.Owner
		}
	}
	if len(owners) != 2 || owners[trees[0]] == owners[trees[1]] {
		t.Errorf("who works where: %v", owners)
	}
	letGo()
	runs := map[string]bool{}
	for i, j := range jobs {
		o := j.wait()
		o.complete(report)
		runID := o.round().RunID
		runs[runID] = true
		if run := s.listed()[runID]; run.Workdir != trees[i] || !strings.HasPrefix(run.ArtifactDir, trees[i]) {
			t.Errorf("the run of %s is %+v", trees[i], run)
		}
	}
	if len(runs) != 2 {
		t.Errorf("both worked in one run: %v", runs)
	}
}

func TestFaultF88ARepositoryThatGitDistrustsIsRefusedInTheWordsOfGit(t *testing.T) {
	t.Parallel()
	distrust := map[string]func(t *testing.T, s *scene){
		"assumed": func(_ *testing.T, s *scene) { s.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1") },
	}
	if os.Geteuid() == 0 {
		distrust["of another user"] = func(t *testing.T, s *scene) {
			err := filepath.WalkDir(s.Dir, func(path string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Lchown(path, 65534, 65534))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, distrusted := range distrust {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, answers(t)...)
			repo, tree := s.Dir, s.worktree(s.Dir)
			s.at(filepath.Join(repo, "docs"))
			s.at(repo)
			distrusted(t, s)
			for _, dir := range []string{repo, filepath.Join(repo, "docs")} {
				s.Dir = dir
				words, err := s.tryGit(dir, "rev-parse", "--git-dir")
				if err == nil || !strings.Contains(words, "safe.directory") {
					t.Fatalf("git trusts it: %s", words)
				}
				s.refused(strings.TrimSpace(words))
			}
			stateBelow(t, "", repo, tree)
			if _, err := os.Lstat(filepath.Join(repo, "docs", ".git")); err == nil {
				t.Error("a repository was made in the repository")
			}
			for _, variable := range s.Env {
				if home, ok := strings.CutPrefix(variable, "HOME="); ok {
					if _, err := os.Lstat(filepath.Join(home, ".gitconfig")); err == nil {
						t.Error("git's configuration was changed")
					}
				}
			}
			// A container has what the user allows in its environment.
			s.setenv("GIT_CONFIG_COUNT", "1")
			s.setenv("GIT_CONFIG_KEY_0", "safe.directory")
			s.setenv("GIT_CONFIG_VALUE_0", "*")
			s.at(repo)
			s.works(filepath.Join(resolved(t, repo), ".git", "pi_plans"))
		})
	}
}

// hook makes a commit in dir, whose hook runs pilothouse. It has the environment that
// git gives to a hook and on top of it all that could lead to another repository.
func (s *scene) hook(repo, dir string, args ...string) outcome {
	s.t.Helper()
	seen := s.t.TempDir()
	path := filepath.Join(repo, ".git", "hooks", "pre-commit")
	piharness.WriteFile(s.t, path, fmt.Sprintf(`#!/bin/sh
cd %[1]s
env >env
export GIT_DIR=%[2]s/.git GIT_COMMON_DIR=%[2]s/.git GIT_WORK_TREE=%[2]s
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.worktree GIT_CONFIG_VALUE_0=/nowhere
%[3]s >stdout 2>stderr
echo $? >code
`, seen, repo, append(piharness.Command{piharness.Binary(s.t)}, args...)))
	if err := os.Chmod(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.git(dir, "-c", "user.name=Hook", "commit", "-q", "--allow-empty", "-m", "with a hook")
	if env := piharness.ReadFile(s.t, filepath.Join(seen, "env")); !strings.Contains(env, "GIT_INDEX_FILE=") || !strings.Contains(env, "GIT_CONFIG_PARAMETERS=") {
		s.t.Errorf("this is not the environment of a hook:\n%s", env)
	}
	o := outcome{piharness.Ended{Stdout: piharness.ReadFile(s.t, filepath.Join(seen, "stdout")), Stderr: piharness.ReadFile(s.t, filepath.Join(seen, "stderr"))}, s.t}
	if _, err := fmt.Sscan(piharness.ReadFile(s.t, filepath.Join(seen, "code")), &o.Code); err != nil {
		s.t.Fatal(err)
	}
	return o
}

func TestFaultF89AGitHookDoesNotMoveTheState(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]func(s *scene) string{
		"at the top":            func(s *scene) string { return s.Dir },
		"in a subdirectory":     func(s *scene) string { return filepath.Join(s.Dir, "docs") },
		"in a linked work tree": func(s *scene) string { return s.worktree(s.Dir) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, answers(t)...)
			own, other := s.Dir, piharness.Repo(t)
			dir := from(s)
			for _, repo := range []string{dir, other} {
				s.at(repo)
				stateRoot := filepath.Join(resolved(t, own), ".git", "pi_plans")
				if repo == other {
					stateRoot = filepath.Join(resolved(t, other), ".git", "pi_plans")
				}
				if o := s.hook(own, dir, "plans", "init", "--workdir", repo); o.Code != 0 || !strings.Contains(o.Stdout, stateRoot) {
					t.Errorf("init ended with %d: %s%s", o.Code, o.Stdout, o.Stderr)
				}
				o := s.hook(own, dir, "refine", s.plan, "--model", "sim/plain", "--json", "--workdir", repo)
				if lane := o.complete(report); lane.ResultFile == nil || !strings.HasPrefix(*lane.ResultFile, stateRoot) {
					t.Errorf("the answer is in %v", lane.ResultFile)
				}
				if runs := s.listed(); len(runs) != 1 || runs[o.round().RunID].Workdir != repo {
					t.Errorf("runs: %+v", runs)
				}
				stateBelow(t, stateRoot, repo)
			}
			if subjects := s.git(dir, "log", "--format=%s", "-4"); subjects != strings.Repeat("with a hook\n", 4) {
				t.Errorf("the commits are %q", subjects)
			}
		})
	}
}

func TestFaultF92EveryKindOfRepositoryIsDefined(t *testing.T) {
	t.Parallel()
	clone := func(s *scene, args ...string) string {
		dir := filepath.Join(s.t.TempDir(), "clone")
		s.git(s.Dir, append(append([]string{"clone", "-q"}, args...), dir)...)
		return dir
	}
	for name, kind := range map[string]func(s *scene) string{
		"no commits": func(s *scene) string {
			dir := s.t.TempDir()
			s.git(dir, "init", "-q")
			return dir
		},
		"an unborn branch": func(s *scene) string {
			s.git(s.Dir, "checkout", "-q", "--orphan", "unborn")
			return s.Dir
		},
		"a detached HEAD": func(s *scene) string {
			s.git(s.Dir, "checkout", "-q", "--detach")
			return s.Dir
		},
		"a sha256 repository": func(s *scene) string {
			dir := s.t.TempDir()
			s.git(dir, "init", "-q", "--object-format=sha256")
			s.git(dir, "commit", "-q", "--allow-empty", "-m", "first")
			return dir
		},
		"a partial clone whose origin is gone": func(s *scene) string {
			s.git(s.Dir, "config", "uploadpack.allowFilter", "true")
			dir := clone(s, "--filter=blob:none", "--no-checkout", "file://"+s.Dir)
			if err := os.RemoveAll(s.Dir); err != nil {
				s.t.Fatal(err)
			}
			return dir
		},
		"a shallow clone": func(s *scene) string { return clone(s, "--depth=1", "file://"+s.Dir) },
		"a linked work tree of a bare repository": func(s *scene) string {
			return s.worktree(clone(s, "--bare", s.Dir))
		},
		"no repository yet": func(s *scene) string { return s.t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, answers(t)...)
			dir := kind(s)
			commonDir := filepath.Join(resolved(t, dir), ".git")
			if info, err := os.Stat(commonDir); err == nil && !info.IsDir() {
				commonDir = strings.TrimSuffix(s.git(dir, "rev-parse", "--path-format=absolute", "--git-common-dir"), "\n")
			}
			s.at(dir)
			s.works(filepath.Join(commonDir, "pi_plans"))
		})
	}
	t.Run("a bare repository", func(t *testing.T) {
		t.Parallel()
		s := stubScene(t, answers(t)...)
		bare := clone(s, "--bare", s.Dir)
		s.Dir = bare
		for what, o := range map[string]outcome{"start-run": s.tryStartRun(), "refine": s.refine().wait(), "init": s.command("plans", "init").start().wait()} {
			s.refuses(o, what, "the repository is bare")
			s.refuses(o, what, "use a clone or a linked work tree")
		}
		if runs := s.listed(); len(runs) != 0 {
			t.Errorf("runs: %v", runs)
		}
		stateBelow(t, "", bare)
	})
}
