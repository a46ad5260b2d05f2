package faults_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// Section E: who owns a run. What is done to files of state by crashes and by disks
// is in the other file of this section.

func (s *scene) runDir(runID string) string {
	return filepath.Join(s.Dir, ".git", "pi_plans", "runs", runID)
}

func (s *scene) ownerFile(runID string) string { return filepath.Join(s.runDir(runID), "owner.json") }

// owned leaves a run to a process, as the other program would.
func (s *scene) owned(runID string, change map[string]any) {
	s.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		s.t.Fatal(err)
	}
	record := map[string]any{
		"schema": 1, "host": host, "pid": os.Getpid(), "pidStart": nil, "sessionId": "theirs",
		"processToken": strings.Repeat("ab", 16), "generation": 3, "acquiredAt": "2026-08-25T13:00:00Z",
	}
	for key, value := range change {
		record[key] = value
	}
	text, err := json.Marshal(record)
	if err != nil {
		s.t.Fatal(err)
	}
	piharness.WriteFile(s.t, s.ownerFile(runID), string(text))
}

// decide is a command that writes to a run and starts no child.
func (s *scene) decide(runID string) *job {
	s.t.Helper()
	return s.command("plans", "record-decision", "--runId", runID,
		"--decision", `{"question":"q","options":["a"],"answer":"a","answerSource":"user"}`)
}

// ends checks how a command ended, and that it says so in one line with the words.
func (j *job) ends(code int, words ...string) outcome {
	j.s.t.Helper()
	o := j.start().wait()
	if o.Code != code {
		j.s.t.Errorf("%v ended with %d, want %d: %s%s", j.Cmd.Args[1:], o.Code, code, o.Stdout, o.Stderr)
	}
	for _, word := range words {
		if !strings.Contains(o.Stderr, word) {
			j.s.t.Errorf("%q is not in %s", word, o.Stderr)
		}
	}
	if code != 0 && strings.Count(o.Stderr, "\n") != 1 {
		j.s.t.Errorf("more than one line: %s", o.Stderr)
	}
	return o
}

// free checks that nobody has a run and that it can be worked on.
func (s *scene) free(runID string) {
	s.t.Helper()
	s.decide(runID).ends(0)
	if _, err := os.Stat(s.ownerFile(runID)); !os.IsNotExist(err) {
		s.t.Errorf("owner.json: %v", err)
	}
}

func psStart(t *testing.T, pid int) string {
	t.Helper()
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// bystander is a living process that has nothing to do with anything.
func bystander(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// gone is the number of a process that has ended.
func gone(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestFaultE68AProcessIDThatIsUsedAgainDoesNotKeepARun(t *testing.T) {
	t.Parallel()
	other := bystander(t)
	const longAgo = "Thu Jan  1 00:00:00 1998"
	for name, test := range map[string]struct {
		owner map[string]any
		code  int
	}{
		"the id of a bystander":            {map[string]any{"pid": other, "pidStart": longAgo}, 0},
		"a bystander that is the owner":    {map[string]any{"pid": other, "pidStart": psStart(t, other)}, 4},
		"a bystander of an unknown start":  {map[string]any{"pid": other}, 4},
		"id 1 of a container that is gone": {map[string]any{"pid": 1, "pidStart": longAgo}, 0},
		"id 1 of this machine":             {map[string]any{"pid": 1, "pidStart": psStart(t, 1)}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScene(t)
			runID := s.startRun()
			s.owned(runID, test.owner)
			before := piharness.ReadFile(t, s.ownerFile(runID))
			s.decide(runID).ends(test.code)
			if test.code == 0 {
				s.free(runID)
			} else if piharness.ReadFile(t, s.ownerFile(runID)) != before {
				t.Error("a refused command changed owner.json")
			}
		})
	}
}

func TestFaultE70EmptyFilesOfACrashBlockNobodyForEver(t *testing.T) {
	t.Parallel()
	s := stubScene(t)
	runID := s.startRun()
	piharness.WriteFile(t, s.ownerFile(runID), "")
	s.decide(runID).ends(1, s.ownerFile(runID))
	s.command("doctor", "--release", runID).ends(0)
	s.free(runID)

	t.Log("an empty takeover lock")
	s.owned(runID, map[string]any{"pid": gone(t)})
	lock := s.ownerFile(runID) + ".lock"
	piharness.WriteFile(t, lock, "")
	long := time.Now().Add(-time.Minute)
	if err := os.Chtimes(lock, long, long); err != nil {
		t.Fatal(err)
	}
	s.free(runID)
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Errorf("the lock: %v", err)
	}
}

// A write of its own would tell the owner, but lanes may think for an hour.
func TestFaultE71AnOwnerWhoseRunIsTakenStopsItself(t *testing.T) {
	t.Parallel()
	s := stubScene(t)
	j, letGo := s.atWork("--reviewers", "3")
	defer letGo()
	s.started(3)
	runID := s.runs()[0].Dir.ID
	s.owned(runID, map[string]any{"host": "elsewhere", "generation": 2})
	owner, before := piharness.ReadFile(t, s.ownerFile(runID)), kept(t, s.runDir(runID))
	o := j.wait()
	if o.Code != 1 || !strings.Contains(o.Stderr, "no longer owns run "+runID) || !strings.Contains(o.Stderr, "elsewhere") {
		t.Errorf("ended with %d: %s", o.Code, o.Stderr)
	}
	s.noSurvivors()
	s.unchanged(runID, before)
	if piharness.ReadFile(t, s.ownerFile(runID)) != owner {
		t.Error("the new owner's record was changed")
	}
}

// unchanged checks that nothing was recorded in a run since.
func (s *scene) unchanged(runID string, before map[string]string) {
	s.t.Helper()
	after := kept(s.t, s.runDir(runID))
	for path, text := range before {
		if after[path] != text && filepath.Base(path) != "run.lock" {
			s.t.Errorf("%s was changed", path)
		}
	}
}

func TestFaultE72AnOwnerThatSleptThroughATakeoverStopsWhenItWakesUp(t *testing.T) {
	t.Parallel()
	s := stubScene(t)
	sleeper, letGo := s.atWork()
	defer letGo()
	runID := s.runs()[0].Dir.ID
	sleeper.Signal(syscall.SIGSTOP)
	s.decide(runID).ends(4, strconv.Itoa(sleeper.Cmd.Process.Pid)) // however long it sleeps
	s.command("doctor", "--release", runID, "--force").ends(0)
	s.stub(answers(t)...)
	if o := s.refine("--run", runID).wait(); o.Code != 0 {
		t.Fatalf("the new owner ended with %d: %s", o.Code, o.Stderr)
	}
	before := kept(t, s.runDir(runID))
	sleeper.Signal(syscall.SIGCONT)
	if o := sleeper.wait(); o.Code != 1 || !strings.Contains(o.Stderr, "no longer owns run "+runID) {
		t.Errorf("it ended with %d: %s", o.Code, o.Stderr)
	}
	s.noSurvivors()
	s.unchanged(runID, before)
	s.free(runID)
}

func TestFaultE73AClockThatWasWrongDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		pid  int
		code int
	}{"alive": {bystander(t), 4}, "dead": {gone(t), 0}} {
		for _, by := range []time.Duration{time.Hour, 24 * time.Hour, -400 * 24 * time.Hour} {
			t.Run(fmt.Sprint(name, " ", by), func(t *testing.T) {
				t.Parallel()
				s := stubScene(t)
				runID := s.startRun()
				at := time.Now().Add(by)
				s.owned(runID, map[string]any{"pid": test.pid, "acquiredAt": store.Stamp(at)})
				if err := filepath.WalkDir(filepath.Join(s.Dir, ".git/pi_plans"), func(path string, _ fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					return os.Chtimes(path, at, at)
				}); err != nil {
					t.Fatal(err)
				}
				s.decide(runID).ends(test.code)
			})
		}
	}
}

func TestFaultE74ARunOfAnotherHostIsTakenByForceOnly(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{host + ".local", "ci-1.local", strings.ToUpper(host) + "X"} {
		s := stubScene(t)
		runID := s.startRun()
		s.owned(runID, map[string]any{"host": other, "pid": gone(t)})
		s.decide(runID).ends(4, "cross-host", other)
		s.command("doctor", "--release", runID).ends(4, other, "--force")
		s.command("doctor", "--release", runID, "--force").ends(0)
		s.free(runID)
		log := piharness.ReadFile(t, filepath.Join(s.Dir, ".git/pi_plans/pilothouse/doctor.jsonl"))
		if strings.Count(log, "\n") != 1 || !strings.Contains(log, `"host":"`+other+`"`) || !strings.Contains(log, `"forced":true`) {
			t.Errorf("the log is %s", log)
		}
	}
}

// diagnosis is what the doctor says with --json.
func (s *scene) diagnosis() supervisor.Diagnosis {
	s.t.Helper()
	var d supervisor.Diagnosis
	o := s.command("doctor", "--json").start().wait()
	if err := json.Unmarshal([]byte(o.Stdout), &d); err != nil {
		s.t.Fatalf("%v in %s%s", err, o.Stdout, o.Stderr)
	}
	return d
}

func TestFaultE76TheDoctorTellsALivingOwnerFromAKilledOne(t *testing.T) {
	t.Parallel()
	s := stubScene(t)
	j, letGo := s.atWork()
	defer letGo()
	check := func(want store.OwnerState) {
		t.Helper()
		d := s.diagnosis()
		if len(d.Findings) != 1 || d.Findings[0].Owner == nil || d.Findings[0].Owner.State != want || d.Findings[0].Owner.PID != j.Cmd.Process.Pid {
			t.Errorf("got %+v, want the owner %d to be %s", d.Findings, j.Cmd.Process.Pid, want)
		}
	}
	check(store.OwnerAlive)
	j.Signal(syscall.SIGSTOP)
	check(store.OwnerAlive)
	j.Signal(syscall.SIGKILL)
	j.wait()
	check(store.OwnerDead)
	s.eventually("the children of the killed one end", func() bool { return len(piharness.Survivors(s.Marker)) == 0 })
}

func TestFaultE79TheRunOfADeadOwnerIsTakenOverWithoutCleaning(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	runID := s.startRun()
	s.owned(runID, map[string]any{"pid": gone(t), "generation": 41})
	if o := s.refine("--run", runID).wait(); o.Code != 0 {
		t.Fatalf("ended with %d: %s", o.Code, o.Stderr)
	}
	run, cp, _ := s.recorded()
	if cp.Generation != 42 {
		t.Errorf("the checkpoint is of generation %d, want 42", cp.Generation)
	}
	if _, state, err := run.Owner(); state != store.OwnerNone || err != nil {
		t.Errorf("the owner is %s, %v", state, err)
	}
}

func TestFaultE82AStateDirectoryBehindALinkIsOneDirectory(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	link := filepath.Join(s.Dir, ".git", "pi_plans")
	state := filepath.Join(t.TempDir(), "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(state, link); err != nil {
		t.Fatal(err)
	}
	runID := s.startRun()
	if o := s.refine("--run", runID).wait(); o.Code != 0 {
		t.Fatalf("ended with %d: %s", o.Code, o.Stderr)
	}
	owner := filepath.Join(state, "runs", runID, "owner.json")
	piharness.WriteFile(t, owner, "{")
	s.command("doctor", "--release", runID).ends(0)
	if aside, err := filepath.Glob(filepath.Join(state, "runs", runID, "pilothouse", "corrupt-owner-*")); len(aside) != 1 || err != nil {
		t.Errorf("set aside: %v, %v", aside, err)
	}
	if target, err := os.Readlink(link); target != state || err != nil {
		t.Errorf("the link leads to %s, %v", target, err)
	}

	t.Log("another workspace with the same state respects the owner")
	j, letGo := s.atWork("--run", runID)
	defer letGo()
	other := stubScene(t)
	if err := os.Symlink(state, filepath.Join(other.Dir, ".git", "pi_plans")); err != nil {
		t.Fatal(err)
	}
	other.decide(runID).ends(4, strconv.Itoa(j.Cmd.Process.Pid))
	letGo()
	if o := j.wait(); o.Code != 0 {
		t.Errorf("the owner ended with %d: %s", o.Code, o.Stderr)
	}
	other.decide(runID).ends(0)
}
