package faults_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
)

// Section E: files and directories of another user, or that others could read.

// nobody owns no files on any system.
const nobody = 65534

// asNobody makes a command one of a user whom permissions bind.
func (s *scene) asNobody(j *job) *job {
	s.t.Helper()
	if os.Getuid() != 0 {
		return j
	}
	for _, variable := range s.Env {
		if home, ok := strings.CutPrefix(variable, "HOME="); ok {
			s.giveAway(filepath.Dir(home))
		}
	}
	j.Cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return j
}

// giveAway makes a directory and all in it nobody's.
func (s *scene) giveAway(dir string) {
	s.t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}); err != nil {
		s.t.Fatal(err)
	}
}

func TestFaultE81ALockThatCannotBeRemovedIsGivenUp(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only the superuser can make files of another user")
	}
	s := stubScene(t)
	runID := s.startRun()
	s.owned(runID, map[string]any{"pid": gone(t)})
	s.giveAway(s.Dir)
	lock := s.ownerFile(runID) + ".lock"
	piharness.WriteFile(t, lock, "")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, long, long); err != nil {
		t.Fatal(err)
	}
	// In a sticky directory nobody may remove what is the superuser's.
	if err := os.Chown(s.runDir(runID), 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.runDir(runID), 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	before := piharness.ReadFile(t, s.ownerFile(runID))
	s.asNobody(s.decide(runID)).ends(1, lock)
	s.asNobody(s.command("doctor", "--release", runID)).ends(1, lock)
	if piharness.ReadFile(t, s.ownerFile(runID)) != before {
		t.Error("owner.json was changed")
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	s.asNobody(s.decide(runID)).ends(0)
}

func TestFaultE84StateIsPrivateWhateverTheUmask(t *testing.T) {
	t.Parallel()
	for _, umask := range []string{"000", "022", "077"} {
		t.Run(umask, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t, answers(t)...)
			under := func(j *job) *job {
				j.Cmd.Args = append([]string{"sh", "-c", "umask " + umask + ` && exec "$0" "$@"`, j.Cmd.Path}, j.Cmd.Args[1:]...)
				j.Cmd.Path = "/bin/sh"
				return j
			}
			under(s.refining()).ends(0)
			runID := s.runs()[0].Dir.ID
			s.owned(runID, map[string]any{"pid": gone(t)})
			under(s.decide(runID)).ends(0) // a takeover
			piharness.WriteFile(t, s.ownerFile(runID), "")
			under(s.command("doctor", "--release", runID)).ends(0)
			state := filepath.Join(s.Dir, ".git", "pi_plans")
			if err := filepath.WalkDir(state, func(path string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := entry.Info()
				if err != nil {
					return err
				}
				want := fs.FileMode(0o600)
				if info.IsDir() {
					want = 0o700 | fs.ModeDir
				}
				if info.Mode() != want && !strings.Contains(path, "corrupt-owner-") { // that one the test made
					t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestFaultE84FilesThatMayNotBeWrittenAreNamed(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only the superuser can make files of another user")
	}
	for name, test := range map[string]struct {
		path func(s *scene, runID string) string
		mode fs.FileMode // when it stays nobody's
	}{
		"the state root":       {path: func(s *scene, _ string) string { return filepath.Join(s.Dir, ".git", "pi_plans") }},
		"the run":              {path: func(s *scene, runID string) string { return s.runDir(runID) }},
		"its checkpoint":       {path: func(s *scene, runID string) string { return filepath.Join(s.runDir(runID), "checkpoint.json") }},
		"its owner":            {path: func(s *scene, runID string) string { return s.ownerFile(runID) }},
		"a run that is locked": {path: func(s *scene, runID string) string { return s.runDir(runID) }, mode: 0o500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t)
			runID := s.startRun()
			if name == "its owner" {
				s.owned(runID, map[string]any{"pid": gone(t)})
				if err := os.Chmod(s.ownerFile(runID), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s.giveAway(s.Dir)
			path := test.path(s, runID)
			err := os.Chown(path, 0, 0)
			if test.mode != 0 {
				err = errors.Join(os.Chown(path, nobody, nobody), os.Chmod(path, test.mode))
			}
			if err != nil {
				t.Fatal(err)
			}
			plan := s.command("plans", "record-checkpoint", "--runId", runID, "--checkpoint", `{"transition":"plan-written","planPath":"PLAN.md"}`)
			s.asNobody(plan).ends(1, path, "permission denied")
		})
	}
}
