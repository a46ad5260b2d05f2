package faults_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/lanes/pijson"
	"pilothouse/store"
)

// onDiskOfItsOwn gives a directory of the state of the scene a small file system of
// its own; "" is the state itself.
func (s *scene) onDiskOfItsOwn(name string) (state string) {
	s.t.Helper()
	if os.Getuid() != 0 {
		s.t.Skip("only root can mount a file system")
	}
	state = filepath.Join(s.Dir, ".git", "pi_plans", name)
	if err := os.MkdirAll(state, 0o700); err != nil {
		s.t.Fatal(err)
	}
	err := syscall.Mount("pilothouse-test", state, "tmpfs", 0, "size=4m,mode=700")
	if errors.Is(err, syscall.EPERM) {
		s.t.Skip("this root must not mount, as in most containers")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := syscall.Unmount(state, 0); err != nil {
			s.t.Errorf("unmount %s: %v", state, err)
		}
	})
	return state
}

// fill leaves no space in a directory's file system and returns the way to free it.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 64 << 10; size > 0; {
		if _, err := file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// documents are the files of state with their contents, but for locks.
func documents(t *testing.T, state string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(state, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && entry.Name() != "filler" && !strings.HasSuffix(path, ".lock") {
			all[path] = piharness.ReadFile(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func unchanged(t *testing.T, before map[string]string) {
	t.Helper()
	for path, content := range before {
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("%s was %d bytes and is %d (%v)", path, len(content), len(now), err)
		}
	}
}

func TestFaultE64AFullDiskIsToldAndChangesNothingThatWasThere(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	state := s.onDiskOfItsOwn("")
	run := s.reviewed("one")[0]
	before := documents(t, state)
	free := fill(t, state)
	for _, args := range [][]string{
		{"refine", "one.md", "--model", "sim/plain"},
		{"plans", "set-status", "--runId", run.ID, "--status", "done"},
		{"plans", "set-language", "--tag", "de", "--languageSource", "user"},
		{"plans", "start-run", "--topic", "x", "--skill", "x", "--requestText", "x"},
	} {
		if o := s.command(args...).start().wait(); o.Code != 1 || !strings.Contains(o.Stderr, "no space left on device") {
			t.Errorf("%v ended with %d: %s", args[:2], o.Code, o.Stderr)
		}
	}
	unchanged(t, before)
	if infos := s.listing(); len(infos) != 1 || infos[0].Problem != "" {
		t.Errorf("listed %+v", infos)
	}
	free()
	if o := s.command("refine", "one.md", "--model", "sim/plain").start().wait(); o.Code != 0 {
		t.Errorf("with space again it ended with %d: %s", o.Code, o.Stderr)
	}
}

func TestFaultE64ADiskThatFillsUpDuringARoundFailsItsLanesUntilItIsResumed(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	s.stub(append(answers(t), "--start-delay", "1s")...)
	state := s.onDiskOfItsOwn("runs") // the prompts, which go with their lanes, are elsewhere
	j := s.refine("--reviewers", "3")
	s.started(3)
	run, _, record := s.recorded()
	before := map[string]string{}
	for _, name := range []string{"run.json", "checkpoint.json", "pilothouse/rounds/" + record.RoundID + ".json"} {
		path := filepath.Join(run.Dir, name)
		before[path] = piharness.ReadFile(t, path)
	}
	free := fill(t, state)
	o := j.wait()
	if o.Code != 1 || o.round().Complete() != 0 {
		t.Errorf("ended with %d: %s", o.Code, o.Stderr)
	}
	for _, lane := range o.round().Lanes {
		checkFailed(t, lane, pijson.ClassInternal, "could not be stored", "no space left on device")
	}
	unchanged(t, before)
	free()
	o = s.refine("--resume-round", record.RoundID).wait()
	if o.Code != 0 || o.round().Complete() != 3 {
		t.Errorf("resuming ended with %d: %s", o.Code, o.Stderr)
	}
	for lane, status := range s.consistent() {
		if status != store.LaneStatusComplete {
			t.Errorf("lane %s is %s", lane, status)
		}
	}
}

func TestFaultE64AReadOnlyDiskIsToldAndCanBeRead(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	state := s.onDiskOfItsOwn("")
	run := s.reviewed("one")[0]
	before := documents(t, state)
	remount := func(flags uintptr) {
		if err := syscall.Mount("pilothouse-test", state, "tmpfs", syscall.MS_REMOUNT|flags, "size=4m,mode=700"); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	for _, args := range [][]string{
		{"refine", "one.md", "--model", "sim/plain"},
		{"plans", "set-status", "--runId", run.ID, "--status", "done"},
		{"plans", "set-language", "--tag", "de", "--languageSource", "user"},
	} {
		if o := s.command(args...).start().wait(); o.Code != 1 || !strings.Contains(o.Stderr, "read-only file system") {
			t.Errorf("%v ended with %d: %s", args[:2], o.Code, o.Stderr)
		}
	}
	unchanged(t, before)
	if infos := s.listing(); len(infos) != 1 || infos[0].Problem != "" || s.shown(run.ID).Problem != "" {
		t.Errorf("listed %+v", infos)
	}
	remount(0)
	if o := s.command("refine", "one.md", "--model", "sim/plain").start().wait(); o.Code != 0 {
		t.Errorf("writable again it ended with %d: %s", o.Code, o.Stderr)
	}
}
