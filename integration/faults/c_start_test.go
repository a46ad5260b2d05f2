package faults_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/store"
)

// Section C: the start of a child.

func TestFaultC33ALongPlanReachesTheChildAndNoCommandLine(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]string{
		"131 071 bytes":          planText + strings.Repeat("x", 131_071-len(planText)),
		"131 072 bytes":          planText + strings.Repeat("x", 131_072-len(planText)),
		"200 000 bytes":          planText + strings.Repeat("- bread\n", 25_000)[:200_000-len(planText)],
		"64 KiB of long letters": planText + strings.Repeat("é🥖", 11_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard, argv := filepath.Join(t.TempDir(), "heard"), filepath.Join(t.TempDir(), "argv")
			s := stubScene(t, append(answers(t), "--read-stdin", "--stdin-dump", heard, "--argv-dump", argv)...)
			piharness.WriteFile(t, s.plan, plan)
			s.refine().wait().complete(report)
			if !strings.Contains(piharness.ReadFile(t, heard), plan) {
				t.Error("the child did not hear the whole plan")
			}
			if words := piharness.ReadFile(t, argv); len(words) > 4000 || strings.Contains(words, "Bake") || strings.Contains(words, "boundary") {
				t.Errorf("the command line tells too much:\n%.2000s", words)
			}
		})
	}
	generations(t, func(t *testing.T, pi piharness.Command) {
		s := piScene(t, pi, on(anyTask, says(report)))
		plan := planText + strings.Repeat("- bread\n", 25_000)
		piharness.WriteFile(t, s.plan, plan)
		s.refine().wait().complete(report)
		if requests := s.model.Requests(); len(requests) != 1 || !strings.Contains(requests[0].User, plan) {
			t.Errorf("the model did not hear the whole plan in %d requests", len(requests))
		}
	})
}

func TestFaultC34ChildrenThatFightForALockAtStartAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	s.stub(append(answers(t), "--lock-dir", filepath.Join(t.TempDir(), "auth.json.lock"))...)
	o := s.refine("--reviewers", "3", "--attempts", "6").wait()
	if o.Code != 0 || o.round().Complete() != 3 {
		t.Errorf("ended with %d, %d lanes complete:\n%s", o.Code, o.round().Complete(), o.Stderr)
	}
	// The loser's words are no proof that the credentials are wrong, but in the end they are told.
	lock := filepath.Join(t.TempDir(), "held")
	if err := os.Mkdir(lock, 0o700); err != nil {
		t.Fatal(err)
	}
	s.stub(append(answers(t), "--lock-dir", lock)...)
	if lane := s.refine().wait().failed(pijson.ClassAuth, "No API key found"); lane.Attempts != lanes.DefaultAttempts {
		t.Errorf("%d attempts", lane.Attempts)
	}
}

func TestFaultC35ASlowStartIsShownAndWaitedFor(t *testing.T) {
	t.Parallel()
	if lanes.DefaultFirstEvent < 50*time.Second {
		t.Errorf("a start may take %v only", lanes.DefaultFirstEvent)
	}
	s := stubScene(t, append(answers(t), "--start-delay", "3s")...)
	j := s.refine()
	s.eventually("the start is shown", func() bool { return strings.Contains(j.Stderr.String(), "general  starting") })
	if lane := j.wait().complete(report); lane.Attempts != 1 || lane.DurationMs < 3000 {
		t.Errorf("%d attempts in %d ms", lane.Attempts, lane.DurationMs)
	}
}

func TestFaultC36AHeldLockFileIsNamedAndNotFoughtForEver(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	words := s.file("words", "Error: Lock file is already being held: /home/dev/.pi/agent/auth.json.lock\n")
	s.stub("--stderr-lines", words, "--then", "exit 1")
	lane := s.refine().wait().failed(pijson.ClassStartContention, "/home/dev/.pi/agent/auth.json.lock")
	if lane.Attempts != lanes.DefaultAttempts {
		t.Errorf("%d attempts", lane.Attempts)
	}
}

func TestFaultC37AProgramThatCannotRunIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		piharness.WriteFile(t, path, text)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct{ pi, reason string }{
		"not on PATH":    {"no-such-pi", `there is no program "no-such-pi" on the PATH`},
		"not there":      {filepath.Join(dir, "gone"), "does not exist"},
		"not executable": {program("plain", "#!/bin/sh\n", 0o644), "is not executable"},
		"a directory":    {dir, "is a directory"},
		"empty":          {program("empty", "", 0o755), "is an empty file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, t.TempDir())
			o := s.refine("--pi", tt.pi).wait()
			if o.Code != 1 || strings.Count(o.Stderr, "\n") != 1 || !strings.Contains(o.Stderr, tt.reason) || !strings.Contains(o.Stderr, tt.pi) || !strings.Contains(o.Stderr, "--pi") {
				t.Errorf("ended with %d: %s", o.Code, o.Stderr)
			}
			if runs := s.runs(); len(runs) != 0 {
				t.Errorf("there are %d runs", len(runs))
			}
		})
	}
	for name, tt := range map[string]struct{ text, reason string }{
		"no interpreter": {"#!/no/such/interpreter\n", "/no/such/interpreter does not exist"},
		"no program":     {"\x7fELF and then nothing", "neither a program for this system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := program(strings.ReplaceAll(name, " ", "-"), tt.text, 0o755)
			lane := newScene(t, t.TempDir()).refine("--pi", path).wait().failed(pijson.ClassStartFailure, path, tt.reason)
			if lane.Attempts != 1 || lane.Exit.Code != nil {
				t.Errorf("%d attempts, exit %+v", lane.Attempts, lane.Exit)
			}
		})
	}
}

func TestFaultC38AChildThatDiesAtOnceLeavesItsWords(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	s.stub("--start-delay", "10ms", "--stderr-lines", s.file("words", "cannot open the ledger of 1897\n"), "--then", "exit 127")
	o := s.refine().wait()
	lane := o.failed(pijson.ClassStartFailure, "exit status 127", "cannot open the ledger of 1897")
	if lane.Exit.Code == nil || *lane.Exit.Code != 127 || lane.Stderr != "cannot open the ledger of 1897\n" {
		t.Errorf("exit %+v, stderr %q", lane.Exit, lane.Stderr)
	}
	_, _, record := s.recorded()
	kept := record.Lanes[0]
	if kept.Exit.Code == nil || *kept.Exit.Code != 127 || !strings.Contains(kept.Error.Message, "the ledger of 1897") || kept.Error.Class != "start_failure" {
		t.Errorf("record %+v", kept)
	}
}

func TestFaultC39ALaneIsOnRecordBeforeItsChildExists(t *testing.T) {
	t.Parallel()
	s := stubScene(t, "--then", "hang")
	j := s.refine("--reviewers", "3")
	s.started(1)
	_, cp, record := s.recorded() // fails when there is a child and no record of its lane
	if len(cp.ReviewRounds[0].Lanes) != 3 || len(record.Lanes) != 3 {
		t.Errorf("lanes %+v, record %+v", cp.ReviewRounds[0].Lanes, record.Lanes)
	}
	j.Signal(os.Kill)
	j.wait()
	s.stub(answers(t)...)
	o := s.refine("--resume-round", record.RoundID).wait()
	if o.Code != 0 || o.round().Complete() != 3 {
		t.Errorf("resuming ended with %d: %s", o.Code, o.Stderr)
	}
	for lane, status := range s.consistent() {
		if status != store.LaneStatusComplete {
			t.Errorf("lane %s is %s", lane, status)
		}
	}
}

func TestFaultC42TheEnvironmentReachesTheChildAndNoFile(t *testing.T) {
	t.Parallel()
	dump := filepath.Join(t.TempDir(), "env")
	s := stubScene(t, append(answers(t), "--env-dump", dump)...)
	s.setenv("SECRET_X", "sk-very-secret")
	s.setenv("PI_PLANS_REFINER", "0")
	o := s.refine("-v").wait()
	o.complete(report)
	environ := strings.Split(piharness.ReadFile(t, dump), "\n")
	names := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		names[name] = value
	}
	for name, want := range map[string]string{"SECRET_X": "sk-very-secret", "PI_PLANS_REFINER": "1", "PILOTHOUSE_DEPTH": "1", "GIT_TERMINAL_PROMPT": "0", "PWD": s.Dir} {
		if names[name] != want {
			t.Errorf("the child sees %s=%q, want %q", name, names[name], want)
		}
	}
	if strings.Contains(o.Stdout+o.Stderr, "sk-very-secret") {
		t.Error("the secret was printed")
	}
	home := ""
	for _, variable := range s.Env {
		if value, ok := strings.CutPrefix(variable, "HOME="); ok {
			home = value
		}
	}
	for _, dir := range []string{s.Dir, home} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && strings.Contains(piharness.ReadFile(t, path), "sk-very-secret") {
				t.Errorf("%s holds the secret", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFaultC43AChildThatStartsPilothouseAgainIsStoppedAtADepth(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	log := filepath.Join(t.TempDir(), "log")
	s.script(fmt.Sprintf(`cat >/dev/null
plan=%[1]s/PLAN$PILOTHOUSE_DEPTH.md
echo "# Bread $PILOTHOUSE_DEPTH" >$plan
echo "depth $PILOTHOUSE_DEPTH" >>%[2]s
exec %[3]s refine $plan --model sim/plain 2>>%[2]s
`, s.Dir, log, piharness.Binary(t)))
	s.refine().wait().failed(pijson.ClassStartFailure) // what the inner ones print is no event
	text := piharness.ReadFile(t, log)
	for depth := 1; depth <= 3; depth++ {
		if got := strings.Count(text, fmt.Sprintf("depth %d\n", depth)); got != 1 {
			t.Errorf("%d children of depth %d", got, depth)
		}
	}
	if strings.Contains(text, "depth 4") || !strings.Contains(text, "pilothouse runs inside itself too deep") {
		t.Errorf("the nesting was not refused:\n%s", text)
	}
}

func TestFaultC40AMachineWithoutResourcesFailsLanesAndDamagesNothing(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{8, 12, 18, 24, 30, 40} {
		t.Run(fmt.Sprintf("%d descriptors", limit), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, t.TempDir())
			s.stub(append(answers(t), "--start-delay", "300ms")...)
			j := s.refining("--reviewers", "3", "--attempts", "1")
			j.limited(fmt.Sprintf("ulimit -n %d", limit))
			o := j.start().wait()
			if o.Code != 0 && !strings.Contains(o.Stderr, "too many open files") {
				t.Errorf("ended with %d and does not tell why:\n%s", o.Code, o.Stderr)
			}
			t.Logf("ended with %d: %s", o.Code, lastLine(o.Stderr))
			args := []string{"--reviewers", "3"}
			if len(s.runs()) > 0 && strings.Contains(o.Stderr, "--resume-round") {
				s.consistent()
				args = append(args, "--resume-round", o.round().RoundID)
			}
			if o := s.refine(args...).wait(); o.Code != 0 || o.round().Complete() != 3 {
				t.Errorf("afterwards it ended with %d: %s", o.Code, o.Stderr)
			}
			s.noSurvivors()
		})
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// limited makes the job start below limits of a shell.
func (j *job) limited(limits string) {
	words := append(piharness.Command{"exec", j.Cmd.Path}, j.Cmd.Args[1:]...)
	j.Cmd.Path, j.Cmd.Args = "/bin/sh", []string{"/bin/sh", "-c", limits + " && " + words.String()}
}
