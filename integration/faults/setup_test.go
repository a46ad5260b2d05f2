package faults_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
	"pilothouse/lanes"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
	"pilothouse/supervisor"
)

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen { // more than a small machine has processors: these tests mostly wait
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		proctest.Clean()
		os.Exit(code)
	}))
}

// patience is for things that must happen; no test waits this long when all is well.
const patience = time.Minute

// report is what a well-behaved reviewer answers.
const report = "## Findings\n\nNo findings.\n\n## Checked\n\n- the order of the steps"

const planText = "# Bake more bread\n\n## Items\n- I-001 Bake forty loaves a day in the one oven.\n\n## Verification\n- VC-001 Forty loaves are on the shelf at noon.\n"

// scene is a place with a plan in which pilothouse works with some pi.
type scene struct {
	*piharness.Place
	t     *testing.T
	plan  string
	model *scriptedmodel.Server // nil with a stub
}

func newScene(t *testing.T, agentDir string) *scene {
	t.Helper()
	s := &scene{Place: piharness.NewPlace(t, agentDir), t: t}
	s.plan = s.Write("PLAN.md", planText)
	t.Cleanup(func() {
		for _, pid := range s.Survivors() {
			t.Errorf("process %d outlived the test", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL) // its marker proves that it is ours
		}
	})
	return s
}

// stubScene has a stub child in the place of pi.
func stubScene(t *testing.T, args ...string) *scene {
	t.Helper()
	s := newScene(t, t.TempDir())
	s.stub(args...)
	return s
}

// stub puts a stub child with these switches in the place of pi from now on.
func (s *scene) stub(args ...string) { s.program(proctest.Build(s.t), args...) }

func (s *scene) program(path string, args ...string) {
	words := append(piharness.Command{path, "--marker", s.Marker}, args...)
	s.setenv("PILOTHOUSE_PI", words.String())
}

// script puts a shell script in the place of pi.
func (s *scene) script(text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "pi.sh")
	piharness.WriteFile(s.t, path, "#!/bin/sh\n"+text)
	if err := os.Chmod(path, 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.setenv("PILOTHOUSE_PI", piharness.Command{path}.String())
	return path
}

// piScene has a real pi and a model that answers by the rules.
func piScene(t *testing.T, pi piharness.Command, rules ...scriptedmodel.Rule) *scene {
	t.Helper()
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	agentDir := filepath.Join(t.TempDir(), "agent")
	if err := scriptedmodel.AgentDir(agentDir, model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	s := newScene(t, agentDir)
	s.model = model
	s.setenv("PILOTHOUSE_PI", pi.String())
	return s
}

// generations runs a test with both generations of pi.
func generations(t *testing.T, test func(t *testing.T, pi piharness.Command)) {
	t.Helper()
	for name, pi := range map[string]func(testing.TB) piharness.Command{"new pi": piharness.NewPi, "old pi": piharness.OldPi} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, pi(t))
		})
	}
}

func (s *scene) setenv(name, value string) {
	s.Env = slices.DeleteFunc(s.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	s.Env = append(s.Env, name+"="+value)
}

// file writes a file outside of the repository and returns its path.
func (s *scene) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	piharness.WriteFile(s.t, path, text)
	return path
}

// prints are the switches of a stub that prints lines.
func prints(t *testing.T, lines ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lines")
	piharness.WriteFile(t, path, strings.Join(lines, "\n")+"\n")
	return []string{"--lines", path}
}

// job is a pilothouse at work.
type job struct {
	*piharness.Program
	s *scene
}

// command is a pilothouse that has not begun.
func (s *scene) command(args ...string) *job {
	s.t.Helper()
	return &job{s.Prepare(args...), s}
}

// refining is a refine of the scene's plan that is not started yet.
func (s *scene) refining(args ...string) *job {
	s.t.Helper()
	return s.command(append([]string{"refine", s.plan, "--model", "sim/plain", "--json"}, args...)...)
}

func (s *scene) refine(args ...string) *job {
	s.t.Helper()
	return s.refining(args...).start()
}

func (j *job) start() *job {
	j.s.t.Helper()
	j.Begin()
	return j
}

// outcome is what a program left behind.
type outcome struct {
	piharness.Ended
	t *testing.T
}

func (j *job) wait() outcome {
	j.s.t.Helper()
	return outcome{j.Wait(), j.s.t}
}

// round is the object that a round prints with --json.
func (o outcome) round() supervisor.RoundResult {
	o.t.Helper()
	var r supervisor.RoundResult
	if err := json.Unmarshal([]byte(o.Stdout), &r); err != nil {
		o.t.Fatalf("stdout is not the object of a round: %v\n%s\nstderr:\n%s", err, o.Stdout, o.Stderr)
	}
	return r
}

// lane is the lane with this id.
func (o outcome) lane(id string) supervisor.LaneResult {
	o.t.Helper()
	for _, lane := range o.round().Lanes {
		if lane.LaneID == id {
			return lane
		}
	}
	o.t.Fatalf("there is no lane %s in %s", id, o.Stdout)
	return supervisor.LaneResult{}
}

// complete checks that the one lane of the round is complete with the text.
func (o outcome) complete(text string) supervisor.LaneResult {
	o.t.Helper()
	lane := o.lane("general")
	if lane.Status != lanes.Complete || lane.Output != text || lane.Error != nil || o.Code != 0 {
		o.t.Errorf("ended with %d, the lane is %s with %.200q (%+v), want complete with %.200q; stderr:\n%s",
			o.Code, lane.Status, lane.Output, lane.Error, text, o.Stderr)
	}
	return lane
}

// failed checks that the one lane of the round failed with the class and a message
// that holds the words.
func (o outcome) failed(class pijson.Class, words ...string) supervisor.LaneResult {
	o.t.Helper()
	lane := o.lane("general")
	checkFailed(o.t, lane, class, words...)
	if o.Code != 1 {
		o.t.Errorf("ended with %d, want 1", o.Code)
	}
	return lane
}

func checkFailed(t *testing.T, lane supervisor.LaneResult, class pijson.Class, words ...string) {
	t.Helper()
	if lane.Status != lanes.Failed || lane.Error == nil || lane.Error.Class != class {
		t.Errorf("lane %s is %s (%+v, notes %q), want failed with class %s", lane.LaneID, lane.Status, lane.Error, lane.Notes, class)
		return
	}
	for _, word := range words {
		if !strings.Contains(lane.Error.Message, word) {
			t.Errorf("the message %q lacks %q", lane.Error.Message, word)
		}
	}
}

// eventually fails the test when ok does not become true.
func (s *scene) eventually(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-deadline.C:
			s.t.Fatalf("did not happen in %v: %s", patience, what)
		}
	}
}

// started waits until n processes of stubs are alive. What pilothouse starts besides
// them, such as git, does not have the marker in its arguments.
func (s *scene) started(n int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d processes", n), func() bool { return len(proctest.Survivors(s.Marker)) >= n })
}

func (s *scene) noSurvivors() {
	s.t.Helper()
	if left := s.Survivors(); len(left) > 0 {
		s.t.Errorf("processes survived: %v", left)
	}
}

// runs are the runs on disk, newest last.
func (s *scene) runs() []store.RunSummary {
	s.t.Helper()
	root, err := store.Find(s.t.Context(), s.Dir)
	if err != nil {
		s.t.Fatal(err)
	}
	runs, err := root.Runs()
	if err != nil {
		s.t.Fatal(err)
	}
	return runs
}

// recorded is the only run with its checkpoint and the record of its only round.
func (s *scene) recorded() (store.RunDir, store.Checkpoint, store.RoundRecord) {
	s.t.Helper()
	runs := s.runs()
	if len(runs) != 1 {
		s.t.Fatalf("there are %d runs", len(runs))
	}
	run := runs[0].Dir
	cp, err := run.LoadCheckpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	if len(cp.ReviewRounds) != 1 {
		s.t.Fatalf("there are %d rounds", len(cp.ReviewRounds))
	}
	record, err := run.RoundDir().LoadRound(cp.ReviewRounds[0].RoundID)
	if err != nil {
		s.t.Fatal(err)
	}
	return run, cp, record
}

// consistent checks that every lane of the only round has its one terminal record,
// the same in the record and in the checkpoint, and returns the statuses by lane.
func (s *scene) consistent() map[string]store.LaneStatus {
	s.t.Helper()
	_, cp, record := s.recorded()
	statuses := map[string]store.LaneStatus{}
	if record.CompletedAt.IsZero() {
		s.t.Error("the record of the round is not closed")
	}
	for _, lane := range record.Lanes {
		statuses[lane.LaneID] = lane.Status
		if !lane.Status.Terminal() || lane.CompletedAt.IsZero() {
			s.t.Errorf("lane %s is %s in the record", lane.LaneID, lane.Status)
		}
		want := store.LaneFailed // the checkpoint has no word for a lane that was cancelled
		if lane.Status == store.LaneStatusComplete {
			want = store.LaneComplete
		}
		if got := cp.ReviewRounds[0].Lane(lane.LaneID); got == nil || got.Status != want {
			s.t.Errorf("lane %s is %s in the record and %+v in the checkpoint", lane.LaneID, lane.Status, got)
		}
	}
	return statuses
}
