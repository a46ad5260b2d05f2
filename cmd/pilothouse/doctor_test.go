package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/lanes/proc"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestThePageOfTheDoctorNamesWhatIsWrongAndTheWayOut(t *testing.T) {
	t.Parallel()
	owner := func(pid int, host, session string, state store.OwnerState) *supervisor.OwnerFinding {
		return &supervisor.OwnerFinding{Host: host, PID: pid, SessionID: session, Since: "2026-08-25T13:00:00Z", Generation: 1, State: state}
	}
	d := supervisor.Diagnosis{
		Pi:        supervisor.PiFinding{Command: []string{"/opt/node", "/opt/pi/cli.js"}, Version: "1.6.0"},
		Workspace: supervisor.WorkspaceFinding{Git: "git version 2.47.0", Worktree: "/repo", StateRoot: "/repo/.git/pi_plans"},
		Cgroup:    supervisor.CgroupFinding{Reason: "no cgroup v2 is mounted"},
		Children:  supervisor.ChildrenFinding{Dir: "/home/me/children", Leftovers: proc.Leftovers{Alive: 3, Left: 2, Unclear: 1}},
		Runs:      9,
		Findings: []supervisor.RunFinding{
			{RunID: "20260825T130001Z-alive", Owner: owner(12, "ci-1", "s1", store.OwnerAlive)},
			{RunID: "20260825T130002Z-dead", Owner: owner(13, "ci-1", "", store.OwnerDead), LeftLock: "/repo/owner.json.lock"},
			{RunID: "20260825T130003Z-elsewhere", Owner: owner(14, "ci-2", "", store.OwnerElsewhere)},
			{RunID: "20260825T130004Z-hidden", Owner: owner(15, "ci-1", "s4", store.OwnerUnverifiable)},
			{RunID: "20260825T130005Z-corrupt", CorruptOwner: true, Problems: []string{"owner.json is corrupt"}},
			{RunID: "20260825T130006Z-broken", Problems: []string{"run.json is corrupt", "checkpoint.json\nis corrupt"}},
		},
		Wrong: 3,
	}
	var daemon daemonFinding
	daemon.note("daemon", "process %d listens on /run/api.sock", 12)
	daemon.wrong("log", "it cannot be written\nname another file")
	const want = `pi        1.6.0 (/opt/node /opt/pi/cli.js)
git       git version 2.47.0
workspace /repo
state     /repo/.git/pi_plans
config    readable
cgroup    not to be had (no cgroup v2 is mounted); children are held by the other nets
children  3 at work, 2 left by a crash, which the next round ends, 1 that cannot be judged in /home/me/children
daemon    process 12 listens on /run/api.sock
log       ! it cannot be written; name another file
runs      9, 6 with something to tell

RUN                         OWNER               SESSION  SINCE                 STATE
20260825T130001Z-alive      process 12 on ci-1  s1       2026-08-25T13:00:00Z  at work
20260825T130002Z-dead       process 13 on ci-1  -        2026-08-25T13:00:00Z  gone; the next command takes the run over
20260825T130003Z-elsewhere  process 14 on ci-2  -        2026-08-25T13:00:00Z  on another machine
20260825T130004Z-hidden     process 15 on ci-1  s4       2026-08-25T13:00:00Z  cannot be seen from here

  run 20260825T130002Z-dead: a crash has left /repo/owner.json.lock; the next takeover removes it.

  run 20260825T130003Z-elsewhere: only ci-2 can tell whether its owner lives.
  ` + "`pilothouse doctor --release 20260825T130003Z-elsewhere --force`" + ` takes the run away, if you know that it does not.

! run 20260825T130004Z-hidden: it cannot be told whether its owner lives.
  ` + "`pilothouse doctor --release 20260825T130004Z-hidden --force`" + ` takes the run away, if you know that it does not.

! run 20260825T130005Z-corrupt: owner.json is corrupt
  ` + "`pilothouse doctor --release 20260825T130005Z-corrupt`" + ` sets its owner.json aside.

! run 20260825T130006Z-broken: run.json is corrupt

! run 20260825T130006Z-broken: checkpoint.json; is corrupt

4 things are wrong.
`
	var page bytes.Buffer
	if err := writeReport(&page, newReport(d, daemon)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, page.String()); diff != "" {
		t.Error(diff)
	}
}

func TestThePageOfTheDoctorForAPlaceWhereNothingIsYet(t *testing.T) {
	t.Parallel()
	const want = `pi        ! there is no pi
git       -
config    none yet; ` + "`pilothouse plans init`" + ` makes it
cgroup    each child gets its own
children  none are noted, because there is no home directory
runs      0, 0 with something to tell

One thing is wrong.
`
	var page bytes.Buffer
	err := writeReport(&page, newReport(supervisor.Diagnosis{
		Pi: supervisor.PiFinding{Problem: "there is no pi"}, Workspace: supervisor.WorkspaceFinding{Fresh: true},
		Cgroup: supervisor.CgroupFinding{Writable: true}, Wrong: 1,
	}, daemonFinding{}))
	if diff := cmp.Diff(want, page.String()); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestThePageOfTheDoctorPutsAProblemWhereItIs(t *testing.T) {
	t.Parallel()
	for want, found := range map[string]supervisor.WorkspaceFinding{
		"\nworkspace ! git cannot use it\ncgroup":           {Git: "git version 2.47.0", Problem: "git cannot use it"},
		"\nstate     /s\nconfig    ! it is corrupt\ncgroup": {Worktree: "/w", StateRoot: "/s", Problem: "it is corrupt"},
	} {
		var page bytes.Buffer
		if err := writeReport(&page, newReport(supervisor.Diagnosis{Workspace: found}, daemonFinding{})); err != nil || !strings.Contains(page.String(), want) {
			t.Errorf("%v, %q is not in\n%s", err, want, &page)
		}
	}
}

func TestEveryRepairIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	session := "s1"
	owner := &store.OwnerRecord{Host: "ci-1", PID: 12, SessionID: &session}
	for want, repair := range map[string]store.Repair{
		"Run r is released. Its owner (session s1, process 12 on ci-1) was gone.":                                                         {RunID: "r", Action: store.RepairRelease, Owner: owner, State: store.OwnerDead},
		"Run r is taken from its owner (session s1, process 12 on ci-1), which stops when it notices, if it lives. The run is free.":      {RunID: "r", Action: store.RepairRelease, Owner: owner, State: store.OwnerAlive, Forced: true},
		"The owner.json of run r could not be understood (invalid JSON: end). It is kept as /repo/corrupt-owner-1.json; the run is free.": {RunID: "r", Action: store.RepairSetAside, Problem: "invalid JSON: end", KeptAs: "/repo/corrupt-owner-1.json"},
		"A takeover lock that a crash had left in run r is removed.":                                                                      {RunID: "r", Action: store.RepairUnlock},
	} {
		if got := repairSentence(repair); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// patient is a repository with a run, and a pi that tells its version.
func patient(t *testing.T) (dir, pi, runID string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	pi = piScript(t, `echo "1.6.0 $*"`)
	out, _ := doctor(t, exitDone, dir, "plans", "start-run", "--topic", "Cache", "--skill", "x", "--requestText", "x")
	var started supervisor.StartRunResult
	if err := json.Unmarshal([]byte(out), &started); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return dir, pi, started.Run.RunID
}

func piScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// doctor runs a command line in dir, which must end with the status.
func doctor(t *testing.T, status int, dir string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, message bytes.Buffer
	args = append([]string{"--local", "--workdir", dir}, args...)
	if got := run(args, streams{in: strings.NewReader(""), out: &out, err: &message}); got != status {
		t.Errorf("%v: status %d, want %d; stdout %s, stderr %s", args, got, status, &out, &message)
	}
	return out.String(), message.String()
}

func TestTheStatusOfTheDoctorTellsWhetherSomethingIsWrong(t *testing.T) {
	for name, value := range map[string]string{ // what the developer has set says nothing here
		"PILOTHOUSE_SOCKET": place(t), "XDG_STATE_HOME": t.TempDir(), "XDG_RUNTIME_DIR": "", "OTEL_EXPORTER_OTLP_ENDPOINT": "",
	} {
		t.Setenv(name, value)
	}
	dir, pi, runID := patient(t)
	page, _ := doctor(t, exitDone, dir, "doctor", "--pi", pi)
	if !strings.Contains(page, "pi        1.6.0 --version ("+pi+")\n") || !strings.HasSuffix(page, "\nNothing is wrong.\n") {
		t.Errorf("the page of a healthy workspace:\n%s", page)
	}

	owner := filepath.Join(dir, ".git/pi_plans/runs", runID, "owner.json")
	if err := os.WriteFile(owner, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := doctor(t, exitFailed, dir, "doctor", "--pi", pi, "--json")
	var d supervisor.Diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil || d.Wrong != 1 || len(d.Findings) != 1 || !d.Findings[0].CorruptOwner || d.Findings[0].RunID != runID {
		t.Errorf("%v, %s", err, out)
	}
	if data, err := os.ReadFile(owner); err != nil || len(data) != 0 {
		t.Errorf("a look changed owner.json to %q, %v", data, err)
	}

	told, _ := doctor(t, exitDone, dir, "doctor", "--release", runID)
	if !strings.HasPrefix(told, "The owner.json of run "+runID+" could not be understood") {
		t.Errorf("told %s", told)
	}
	told, _ = doctor(t, exitDone, dir, "doctor", "--release", runID)
	if told != "Run "+runID+" has no owner; there was nothing to do.\n" {
		t.Errorf("told %s", told)
	}
	if told, _ = doctor(t, exitDone, dir, "doctor", "--release", runID, "--json"); told != "[]\n" {
		t.Errorf("told %s", told)
	}
	doctor(t, exitDone, dir, "doctor", "--pi", pi)
}

func TestAPiThatIsMissingOrMuteIsWrong(t *testing.T) {
	t.Parallel()
	dir, _, _ := patient(t)
	for _, test := range []struct{ pi, want string }{
		{"/nowhere/pi", "/nowhere/pi does not exist"},
		{piScript(t, "exit 0"), "pi does not tell its version: it prints nothing"},
		{piScript(t, "echo no node >&2; exit 3"), "pi does not tell its version: exit status 3: no node"},
	} {
		page, _ := doctor(t, exitFailed, dir, "doctor", "--pi", test.pi)
		if first, _, _ := strings.Cut(page, "\n"); !strings.HasPrefix(first, "pi        ! ") || !strings.Contains(first, test.want) {
			t.Errorf("%s: %s", test.pi, first)
		}
	}
}

func TestAReleaseThatIsRefusedNamesTheOwnerAndTheWayOut(t *testing.T) {
	t.Parallel()
	dir, _, runID := patient(t)
	record := `{"schema":1,"host":"ci-2","pid":14,"pidStart":null,"sessionId":"s1","processToken":"0123456789abcdef0123456789abcdef","generation":7,"acquiredAt":"2026-08-25T13:00:00Z"}`
	owner := filepath.Join(dir, ".git/pi_plans/runs", runID, "owner.json")
	if err := os.WriteFile(owner, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	_, message := doctor(t, exitOwned, dir, "doctor", "--release", runID)
	for _, words := range []string{runID, "session s1, process 14 on ci-2", "`pilothouse doctor --release " + runID + " --force`"} {
		if !strings.Contains(message, words) {
			t.Errorf("%q is missing in %s", words, message)
		}
	}
	told, _ := doctor(t, exitDone, dir, "doctor", "--release", runID, "--force")
	if want := "Run " + runID + " is taken from its owner (session s1, process 14 on ci-2), which stops when it notices, if it lives. The run is free.\n"; told != want {
		t.Errorf("told %s", told)
	}
	if _, err := os.Stat(owner); !os.IsNotExist(err) {
		t.Errorf("owner.json: %v", err)
	}
	log, err := os.ReadFile(filepath.Join(dir, ".git/pi_plans/pilothouse/doctor.jsonl"))
	if err != nil || !strings.Contains(string(log), `"action":"release","state":"elsewhere","owner":{"schema":1,"host":"ci-2","pid":14`) || !strings.Contains(string(log), `"forced":true`) {
		t.Errorf("the log is %s, %v", log, err)
	}

	_, message = doctor(t, exitUsage, dir, "doctor", "--force")
	if message != "pilothouse: --force goes with --release RUN\n" {
		t.Errorf("told %s", message)
	}
	_, message = doctor(t, exitUsage, dir, "doctor", "--release", "../escape")
	if !strings.Contains(message, "`pilothouse runs` lists what there is") {
		t.Errorf("told %s", message)
	}
}
