package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/lanes"
	"pilothouse/lanes/proc"
	"pilothouse/store"
)

// ward is a workspace with runs for a doctor.
type ward struct {
	t       *testing.T
	system  *System
	session Session
	root    store.Root
}

func newWard(t *testing.T) *ward {
	t.Helper()
	req := holdingRequest(t)
	system, err := New(Options{ChildrenDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := system.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := &ward{t: t, system: system, session: Session{Workdir: req.Workdir, Environ: os.Environ(), Pi: script(t, "echo 9.9.9")}}
	if w.root, _, err = store.Ensure(t.Context(), req.Workdir); err != nil {
		t.Fatal(err)
	}
	return w
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// run starts a run of this topic and puts files into it.
func (w *ward) run(topic string, files map[string]string) store.RunDir {
	w.t.Helper()
	run, _, err := store.StartRun(w.root, store.StartRunRequest{Topic: topic, Skill: "x", RequestText: "x"}, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	dir, err := w.root.Run(run.RunID)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir.Dir, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return dir
}

func (w *ward) examine() Diagnosis {
	w.t.Helper()
	d, err := w.system.Doctor(context.Background(), w.session)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// ownedBy is an owner.json of another program.
func ownedBy(host string, pid int) string {
	return fmt.Sprintf(`{"schema":1,"host":%q,"pid":%d,"pidStart":null,"sessionId":"s9","processToken":"0123456789abcdef0123456789abcdef","generation":7,"acquiredAt":"2026-11-30T00:00:00Z"}`, host, pid)
}

func deadProcess(t *testing.T) int {
	t.Helper()
	command := exec.Command("true")
	if err := command.Run(); err != nil {
		t.Fatal(err)
	}
	return command.Process.Pid
}

func TestTheDoctorFindsEveryOwnerAndEveryBrokenRunAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dead := deadProcess(t)
	w.run("healthy", nil)
	alive := w.run("alive", nil)
	lease, err := alive.Acquire(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = lease.Release() }()
	gone := w.run("gone", map[string]string{"owner.json": ownedBy(host, dead), "owner.json.lock": ""})
	lock := filepath.Join(gone.Dir, "owner.json.lock")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, long, long); err != nil {
		t.Fatal(err)
	}
	elsewhere := w.run("elsewhere", map[string]string{"owner.json": ownedBy("far-away", 12)})
	corrupt := w.run("corrupt", map[string]string{"owner.json": ""})
	broken := w.run("broken", map[string]string{"run.json": "{", "checkpoint.json": "\x00\x00"})
	unfinished := w.run("unfinished", nil)
	if err := os.Remove(filepath.Join(unfinished.Dir, "run.json")); err != nil {
		t.Fatal(err)
	}
	before := everything(t, w.root.Dir)

	d := w.examine()
	found := map[string]RunFinding{}
	for _, finding := range d.Findings {
		found[finding.RunID] = finding
	}
	want := map[string]RunFinding{
		alive.ID:      {Owner: &OwnerFinding{Host: host, PID: os.Getpid(), SessionID: "s1", Generation: 1, State: store.OwnerAlive}},
		gone.ID:       {Owner: &OwnerFinding{Host: host, PID: dead, SessionID: "s9", Since: "2026-11-30T00:00:00Z", Generation: 7, State: store.OwnerDead}, LeftLock: lock},
		elsewhere.ID:  {Owner: &OwnerFinding{Host: "far-away", PID: 12, SessionID: "s9", Since: "2026-11-30T00:00:00Z", Generation: 7, State: store.OwnerElsewhere}},
		corrupt.ID:    {CorruptOwner: true, Problems: []string{filepath.Join(corrupt.Dir, "owner.json")}},
		broken.ID:     {Problems: []string{filepath.Join(broken.Dir, "run.json"), filepath.Join(broken.Dir, "checkpoint.json")}},
		unfinished.ID: {Problems: []string{unfinished.ID}},
	}
	for id, finding := range want {
		finding.RunID = id
		if finding.Owner != nil && finding.Owner.Since == "" {
			finding.Owner.Since = found[id].Owner.Since
		}
		names := cmp.Comparer(func(a, b string) bool { return strings.Contains(a, b) || strings.Contains(b, a) }) // the sentence names the file
		if diff := cmp.Diff(finding, found[id], cmp.FilterPath(func(p cmp.Path) bool { return strings.Contains(p.String(), "Problems") }, names)); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	if len(found) != len(want) || d.Runs != 7 || d.Wrong != 3 {
		t.Errorf("%d findings among %d runs, %d are wrong; want %d, 7, 3", len(found), d.Runs, d.Wrong, len(want))
	}
	if d.Pi.Version != "9.9.9" || d.Pi.Problem != "" || d.Workspace.StateRoot != w.root.Dir || d.Workspace.Problem != "" || d.Workspace.Fresh {
		t.Errorf("got %+v, %+v", d.Pi, d.Workspace)
	}
	if diff := cmp.Diff(before, everything(t, w.root.Dir)); diff != "" {
		t.Errorf("a look changed the state: %s", diff)
	}
}

// everything is every file below a directory with its content.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheDoctorCountsTheChildrenThatACrashHasLeft(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	dir := w.system.children.dir
	for _, name := range []string{"another-boot.1.json", "another-boot.2.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := ChildrenFinding{Dir: dir, Leftovers: proc.Leftovers{Left: 2}}
	if diff := cmp.Diff(want, w.examine().Children); diff != "" {
		t.Error(diff)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("a look left %v, %v", entries, err)
	}
}

func TestTheDoctorTellsWhyChildrenHaveNoCgroupAndWhoCanGiveThemOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		problem error
		want    CgroupFinding
	}{
		"delegated":     {nil, CgroupFinding{Writable: true}},
		"not delegated": {fmt.Errorf("make a cgroup: %w", fs.ErrPermission), CgroupFinding{Reason: "make a cgroup: permission denied; a systemd service has it with Delegate=yes"}},
		"not mounted":   {errors.New("no cgroup v2 is mounted"), CgroupFinding{Reason: "no cgroup v2 is mounted"}},
	} {
		if diff := cmp.Diff(tt.want, examineCgroup(tt.problem)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTheDoctorTellsWhatKeepsAWorkspaceFromBeingUsed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(w *ward)
		fresh   bool
		wrong   int
		problem string
	}{
		"healthy":   {prepare: func(*ward) {}},
		"no state":  {prepare: func(w *ward) { w.remove(w.root.Dir) }, fresh: true},
		"no git":    {prepare: func(w *ward) { w.remove(w.root.CommonDir) }, fresh: true},
		"no config": {prepare: func(w *ward) { w.remove(filepath.Join(w.root.Dir, "config.json")) }, fresh: true},
		"a broken config": {
			prepare: func(w *ward) { w.write(filepath.Join(w.root.Dir, "config.json"), "{") }, wrong: 1, problem: "config.json is corrupt",
		},
		"a broken repository": {
			prepare: func(w *ward) { w.write(filepath.Join(w.root.CommonDir, "HEAD"), "") }, wrong: 1, problem: "git cannot use the repository",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			test.prepare(w)
			d := w.examine()
			if d.Workspace.Fresh != test.fresh || d.Wrong != test.wrong || !strings.Contains(d.Workspace.Problem, test.problem) || (d.Workspace.Problem == "") != (test.problem == "") {
				t.Errorf("%d wrong, %+v", d.Wrong, d.Workspace)
			}
		})
	}
}

func (w *ward) remove(path string) {
	w.t.Helper()
	if err := os.RemoveAll(path); err != nil {
		w.t.Fatal(err)
	}
}

func (w *ward) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// The owner may be this very process, as with a daemon that is asked by its own client.
func TestARunThatIsAtWorkHereIsReleasedByForceOnlyAndStops(t *testing.T) {
	t.Parallel()
	req := holdingRequest(t) // its directory goes after the system, which gives the run back at its end
	system := watchedSystem(t)
	req.ID = "s1"
	started, working, done := make(chan RoundStarted, 1), make(chan struct{}, 100), make(chan error, 1)
	go func() {
		_, err := system.Refine(context.Background(), req, func(event any) {
			switch m := event.(type) {
			case RoundStarted:
				started <- m
			case lanes.Progress:
				if m.Phase == "responding" {
					working <- struct{}{}
				}
			}
		})
		done <- err
	}()
	round := <-started
	<-working
	var owned *store.OwnedError
	if _, err := system.ReleaseRun(context.Background(), req.Session, round.RunID, false); !errors.As(err, &owned) || owned.SessionID != "s1" {
		t.Errorf("without force: %v", err)
	}
	repairs, err := system.ReleaseRun(context.Background(), req.Session, round.RunID, true)
	want := []store.Repair{{RunID: round.RunID, Action: store.RepairRelease, State: store.OwnerAlive, Forced: true}}
	if diff := cmp.Diff(want, repairs, cmpopts.IgnoreFields(store.Repair{}, "At", "Owner")); diff != "" || err != nil {
		t.Errorf("with force: %v %s", err, diff)
	}
	var lost *store.LostOwnerError
	if err := <-done; !errors.As(err, &lost) {
		t.Errorf("the round ended with %v", err)
	}
	again := answering(req)
	again.RunID, again.ResumeRoundID = round.RunID, round.RoundID
	if result, err := system.Refine(context.Background(), again, nil); err != nil || result.Complete() != 1 {
		t.Errorf("resumed: %d complete, %v", result.Complete(), err)
	}
}
