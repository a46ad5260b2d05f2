package faults_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// Section E: files that a crash, a full disk or another program has spoiled, and what
// is left of a pilothouse that was killed. Owners and locks are in another file.

// spoiled are contents that a file has after a crash or a mistake.
var spoiled = map[string]string{
	"NULs": strings.Repeat("\x00", 1900), "no bytes": "", "a brace": "{", "a list": "[]", "null": "null", "a string": `"x"`,
}

// reviewed starts a run for each of the plans and returns their directories.
func (s *scene) reviewed(names ...string) []store.RunDir {
	s.t.Helper()
	for _, name := range names {
		piharness.WriteFile(s.t, filepath.Join(s.Dir, name+".md"), "# "+name+"\n\n- I-001 Bake.\n")
		if o := s.command("refine", name+".md", "--model", "sim/plain").start().wait(); o.Code != 0 {
			s.t.Fatal(o.Stderr)
		}
	}
	var dirs []store.RunDir
	for _, run := range s.runs() {
		dirs = append(dirs, run.Dir)
	}
	if len(dirs) != len(names) {
		s.t.Fatalf("there are %d runs", len(dirs))
	}
	return dirs
}

// listing is what `runs --json` prints.
func (s *scene) listing(args ...string) []supervisor.RunInfo {
	s.t.Helper()
	o := s.command(append([]string{"runs", "--json"}, args...)...).start().wait()
	var infos []supervisor.RunInfo
	if err := json.Unmarshal([]byte(o.Stdout), &infos); err != nil || o.Code != 0 {
		s.t.Fatalf("runs ended with %d: %v\n%s", o.Code, err, o.Stderr)
	}
	return infos
}

func (s *scene) shown(run string) supervisor.RunDetail {
	s.t.Helper()
	o := s.command("show", run, "--json").start().wait()
	var detail supervisor.RunDetail
	if err := json.Unmarshal([]byte(o.Stdout), &detail); err != nil || o.Code != 0 {
		s.t.Fatalf("show ended with %d: %v\n%s", o.Code, err, o.Stderr)
	}
	return detail
}

func TestFaultE61ASpoiledCheckpointRefusesItsRunOnlyAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	dirs := s.reviewed("one", "two")
	path := filepath.Join(dirs[0].Dir, "checkpoint.json")
	for name, content := range spoiled {
		piharness.WriteFile(t, path, content)
		o := s.command("refine", "one.md", "--run", dirs[0].ID, "--model", "sim/plain").start().wait()
		if o.Code != 1 || !strings.Contains(o.Stderr, path+" is corrupt") {
			t.Errorf("%s: ended with %d: %s", name, o.Code, o.Stderr)
		}
		if piharness.ReadFile(t, path) != content {
			t.Errorf("%s: the file was changed", name)
		}
		infos := s.listing()
		if len(infos) != 2 || !strings.Contains(infos[1].Problem, path) || infos[0].Problem != "" {
			t.Errorf("%s: listed %+v", name, infos)
		}
	}
	if o := s.command("refine", "two.md", "--model", "sim/plain").start().wait(); o.Code != 0 {
		t.Errorf("another run suffers: %s", o.Stderr)
	}
}

func TestFaultE65OneSpoiledRunOfFiveIsToldAndDisturbsNoOther(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	dirs := s.reviewed("one", "two", "three", "four", "five")
	rounds, err := filepath.Glob(filepath.Join(dirs[2].Dir, "pilothouse/rounds/*.json"))
	if err != nil || len(rounds) != 1 {
		t.Fatal(rounds, err)
	}
	broken := []string{rounds[0]}
	for _, name := range []string{"run.json", "checkpoint.json", "owner.json", "decisions.jsonl", "subagents.jsonl", "refs.jsonl"} {
		broken = append(broken, filepath.Join(dirs[2].Dir, name))
	}
	for _, path := range broken {
		piharness.WriteFile(t, path, "\x00\x01 no document")
	}
	for _, info := range s.listing() {
		if (info.Problem != "") != (info.RunID == dirs[2].ID) {
			t.Errorf("run %s: problem %q", info.RunID, info.Problem)
		}
	}
	for _, name := range []string{"one", "two", "four", "five"} {
		if o := s.command("refine", name+".md", "--model", "sim/plain").start().wait(); o.Code != 0 {
			t.Errorf("%s ended with %d: %s", name, o.Code, o.Stderr)
		}
	}
	for _, path := range broken {
		if piharness.ReadFile(t, path) != "\x00\x01 no document" {
			t.Errorf("%s was changed or moved", path)
		}
	}
	if detail := s.shown(dirs[2].ID); !strings.Contains(detail.Problem, "run.json") || !strings.Contains(detail.Problem, rounds[0]) {
		t.Errorf("its problem is %q", detail.Problem)
	}
}

func TestFaultE66AnEmptyObjectInAnyFileStopsNothingElse(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	dirs := s.reviewed("one", "two")
	rounds, err := filepath.Glob(filepath.Join(dirs[0].Dir, "pilothouse/rounds/*.json"))
	if err != nil || len(rounds) != 1 {
		t.Fatal(rounds, err)
	}
	root := dirs[0].Root.Dir
	files := []string{filepath.Join(root, "config.json"), filepath.Join(root, "active.json"), filepath.Join(root, "pi-vcc-config.json"), rounds[0]}
	for _, name := range []string{"run.json", "checkpoint.json", "owner.json", "decisions.jsonl"} {
		files = append(files, filepath.Join(dirs[0].Dir, name))
	}
	for _, path := range files {
		earlier, err := os.ReadFile(path)
		piharness.WriteFile(t, path, "{}")
		if infos := s.listing(); len(infos) != 2 {
			t.Errorf("%s: listed %+v", path, infos)
		}
		if o := s.command("refine", "two.md", "--model", "sim/plain").start().wait(); o.Code != 0 {
			t.Errorf("%s: another run ended with %d: %s", path, o.Code, o.Stderr)
		}
		if strings.HasPrefix(path, dirs[0].Dir) && piharness.ReadFile(t, path) != "{}" {
			t.Errorf("%s was changed", path)
		}
		if err == nil {
			piharness.WriteFile(t, path, string(earlier))
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFaultE67ASpoiledLedgerKeepsItsEntriesAndGoesOnWithALineOfItsOwn(t *testing.T) {
	t.Parallel()
	s := stubScene(t)
	start := s.command("plans", "start-run", "--topic", "x", "--skill", "x", "--requestText", "x").start().wait()
	if start.Code != 0 {
		t.Fatal(start.Stderr)
	}
	run := s.runs()[0].Dir
	path := filepath.Join(run.Dir, "decisions.jsonl")
	entry := func(question string) string {
		return fmt.Sprintf(`{"question":%q,"options":[],"answer":"a","answerSource":"user","recorded_at":"2026-01-01T00:00:00Z"}`, question)
	}
	long := strings.Repeat("x", 10<<20)
	for name, tt := range map[string]struct {
		ledger string
		want   []string // questions that are read afterwards
		aside  string
	}{
		"cut in the middle":       {entry("one") + "\n" + entry("two")[:30], []string{"one", "next"}, entry("two")[:30]},
		"NULs":                    {entry("one") + "\n\x00\x00\x00", []string{"one", "next"}, "\x00\x00\x00"},
		"no newline at its end":   {entry("one"), []string{"one", "next"}, ""},
		"two lines in one":        {entry("one") + entry("two") + "\n", []string{"one", "two", "next"}, ""},
		"a line of 10 MB":         {entry(long) + "\n" + entry("two") + "\n", []string{long, "two", "next"}, ""},
		"a record of a new kind":  {`{"type":"verdict","schema":7}` + "\n" + entry("two") + "\n", []string{"two", "next"}, ""},
		"a newer schema's record": {strings.Replace(entry("one"), `{`, `{"schema":2,"more":{"a":1},`, 1) + "\n", []string{"one", "next"}, ""},
	} {
		piharness.WriteFile(t, path, tt.ledger)
		o := s.command("plans", "record-decision", "--runId", run.ID, "--decision", `{"question":"next","options":["a"],"answer":"a","answerSource":"user"}`).start().wait()
		if o.Code != 0 {
			t.Errorf("%s: ended with %d: %s", name, o.Code, o.Stderr)
		}
		decisions, err := run.Decisions()
		if err != nil {
			t.Error(err)
		}
		var questions []string
		for _, decision := range decisions {
			questions = append(questions, decision.Question)
		}
		if !slices.Equal(questions, tt.want) {
			t.Errorf("%s: read %.100q", name, questions)
		}
		text := piharness.ReadFile(t, path)
		last := text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:]
		if !strings.HasPrefix(text, strings.TrimSuffix(tt.ledger, tt.aside)) || !strings.HasPrefix(last, `{"question":"next"`) || !strings.HasSuffix(last, "}\n") {
			t.Errorf("%s: the ledger ends with %.200q", name, last)
		}
		torn, err := filepath.Glob(filepath.Join(run.Dir, "pilothouse/torn-*"))
		if err != nil {
			t.Fatal(err)
		}
		kept := ""
		for _, file := range torn {
			kept += piharness.ReadFile(t, file)
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}
		if kept != tt.aside {
			t.Errorf("%s: kept %q, want %q", name, kept, tt.aside)
		}
	}
}

func TestFaultE76WhatAKilledPilothouseLeftIsToldAsLostAndCanBeResumed(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(prints(t, lanestest.Opening()...), "--then", "hang")...)
	j := s.refine("--reviewers", "3")
	s.started(3)
	run, _, record := s.recorded()
	resume := "pilothouse refine " + s.plan + " --resume-round " + record.RoundID
	if detail := s.shown(run.ID); detail.Lost != nil || detail.Owner == "" || detail.Rounds[0].Lanes[0].Status != store.LaneStatusQueued {
		t.Errorf("while it lives: owner %q, lost %+v, lane %s", detail.Owner, detail.Lost, detail.Rounds[0].Lanes[0].Status)
	}
	j.Signal(os.Kill)
	j.wait()
	for what, args := range map[string][]string{"runs": {"runs"}, "show": {"show", run.ID}} {
		o := s.command(args...).start().wait()
		if o.Code != 0 || !strings.Contains(o.Stdout, "pilothouse ended") || !strings.Contains(o.Stdout, resume) {
			t.Errorf("%s ended with %d and says\n%s%s", what, o.Code, o.Stdout, o.Stderr)
		}
	}
	for _, lane := range s.shown(run.ID).Rounds[0].Lanes {
		if lane.Status != store.LaneStatusFailed || lane.Error.Class != string(pijson.ClassOrchestratorLost) || !strings.Contains(lane.Error.Message, resume) {
			t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
		}
	}
	// The next command that writes to the run writes it down.
	if o := s.command("plans", "set-status", "--runId", run.ID, "--status", "planning").start().wait(); o.Code != 0 {
		t.Error(o.Stderr)
	}
	for lane, status := range s.consistent() {
		if status != store.LaneStatusFailed {
			t.Errorf("lane %s is %s on record", lane, status)
		}
	}
	s.stub(answers(t)...)
	o := s.refine("--resume-round", record.RoundID).wait()
	if o.Code != 0 || o.round().Complete() != 3 {
		t.Errorf("resuming ended with %d: %s", o.Code, o.Stderr)
	}
	if infos := s.listing(); infos[0].Lost != nil {
		t.Errorf("still lost: %+v", infos[0].Lost)
	}
	s.noSurvivors()
}

func TestFaultE76ReferencesOfNoRunThatAKilledPilothouseLeftAreToldAsLost(t *testing.T) {
	t.Parallel()
	s := stubScene(t, append(prints(t, lanestest.Opening()...), "--then", "hang")...)
	j := s.command("analyze-refs", "--ref", "bread="+s.Dir, "--model", "sim/plain").start()
	s.started(1)
	lane := func() store.LaneRecord { return s.shown("adhoc").Rounds[0].Lanes[0] }
	if got := lane(); got.Status != store.LaneStatusQueued {
		t.Errorf("while it lives: %s, %+v", got.Status, got.Error)
	}
	j.Signal(os.Kill)
	j.wait()
	if got := lane(); got.Status != store.LaneStatusFailed || got.Error.Class != string(pijson.ClassOrchestratorLost) {
		t.Errorf("afterwards: %s, %+v", got.Status, got.Error)
	}
	s.eventually("its child ends", func() bool { return len(proctest.Survivors(s.Marker)) == 0 })
}

func TestFaultE78AWriteThatFailsBesideTheAnswersFailsNoLane(t *testing.T) {
	t.Parallel()
	s := stubScene(t, answers(t)...)
	run := s.reviewed("one")[0]
	ledger := filepath.Join(run.Dir, "subagents.jsonl")
	if err := os.Remove(ledger); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ledger, 0o700); err != nil { // no line can be added to it
		t.Fatal(err)
	}
	o := s.command("refine", "one.md", "--reviewers", "3", "--model", "sim/plain", "--json").start().wait()
	if o.Code != 0 || o.round().Complete() != 3 {
		t.Errorf("ended with %d: %s", o.Code, o.Stderr)
	}
}

func TestFaultE78AnAnswerThatCannotBeStoredFailsItsLaneAndNoSibling(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	s.stub(append(answers(t), "--start-delay", "500ms")...)
	j := s.refine("--reviewers", "3")
	s.started(3)
	run, _, record := s.recorded()
	blocked := filepath.Join(run.Dir, "reviews", record.RoundID+"__"+record.Lanes[1].LaneID+".md")
	if err := os.MkdirAll(filepath.Join(blocked, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := j.wait()
	if o.Code != 0 || o.round().Complete() != 2 {
		t.Errorf("ended with %d: %s", o.Code, o.Stderr)
	}
	checkFailed(t, o.lane(record.Lanes[1].LaneID), pijson.ClassInternal, "could not be stored")
	s.consistent() // the end of the round has closed its record, too
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	o = s.refine("--resume-round", record.RoundID).wait()
	for i, lane := range o.round().Lanes {
		if lane.Status != lanes.Complete || lane.Reused != (i != 1) {
			t.Errorf("resumed: lane %s is %s, reused %v", lane.LaneID, lane.Status, lane.Reused)
		}
	}
}

func TestFaultE80StartsThatFailedDoNotCountAgainstTheNext(t *testing.T) {
	t.Parallel()
	s := newScene(t, t.TempDir())
	tries := filepath.Join(t.TempDir(), "tries")
	s.script(fmt.Sprintf(`cat >/dev/null
echo >>%[1]s
if [ $(wc -l <%[1]s) -le 3 ]; then echo "Session is currently running" >&2; exit 1; fi
cat %[2]s
`, tries, s.file("lines", strings.Join(lanestest.Answer(report), "\n")+"\n")))
	args := []string{"--attempts", "1"}
	for range 3 {
		o := s.refine(args...).wait()
		lane := o.failed(o.lane("general").Error.Class, "Session is currently running")
		if lane.Attempts != 1 {
			t.Errorf("%d attempts", lane.Attempts)
		}
		args = []string{"--attempts", "1", "--resume-round", o.round().RoundID}
	}
	s.refine(args...).wait().complete(report)
}

func TestFaultE83AListingReadsOnlyWhatItLists(t *testing.T) {
	t.Parallel()
	s := stubScene(t)
	if o := s.command("plans", "init").start().wait(); o.Code != 0 {
		t.Fatal(o.Stderr)
	}
	const old, recent = 60, 20
	pipe := func(path string) { // whoever opens it for reading waits for ever
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs := filepath.Join(s.Dir, ".git", "pi_plans", "runs")
	var ids []string
	for n := range old + recent {
		id := fmt.Sprintf("%sZ-run", time.Date(2025, 1, 1, 0, n, 0, 0, time.UTC).Format("20060102T150405"))
		ids = append(ids, id)
		dir := filepath.Join(runs, id)
		piharness.WriteFile(t, filepath.Join(dir, "run.json"), fmt.Sprintf(`{"schema":1,"run_id":%q,"skill":"x","topic":"run","request_text":"x","workdir":"/w","artifact_dir":"/w/a","language_tag":null,"status":"done","created_at":"2025-01-01T00:00:00Z","updated_at":"2025-01-01T00:00:00Z"}`, id))
		for _, ledger := range []string{"decisions.jsonl", "subagents.jsonl", "refs.jsonl"} {
			pipe(filepath.Join(dir, ledger))
		}
		if n < old {
			pipe(filepath.Join(dir, "checkpoint.json"))
		}
	}
	o := s.command("runs").start().wait()
	if o.Code != 0 || strings.Count(o.Stdout, "Z-run") != recent || !strings.Contains(o.Stdout, fmt.Sprintf("%d older runs are not shown; `pilothouse runs --all`", old)) {
		t.Errorf("ended with %d:\n%s%s", o.Code, o.Stdout, o.Stderr)
	}
	if infos := s.listing("--limit", "3"); len(infos) != 3 || infos[0].RunID != ids[old+recent-1] {
		t.Errorf("the newest three are %+v", infos)
	}
	const left = 5
	for n, id := range ids {
		gone := filepath.Join(runs, id, "checkpoint.json")
		if n >= left {
			gone = filepath.Join(runs, id)
		}
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	if infos := s.listing(); len(infos) != left { // of scripts nothing is held back
		t.Errorf("listed %d", len(infos))
	}
	if o := s.command("runs", "--prune", "30d").start().wait(); o.Code != 0 || strings.Count(o.Stdout, "Z-run") != left || len(s.runs()) != left {
		t.Errorf("asking for what would go ended with %d, %d are left: %s", o.Code, len(s.runs()), o.Stderr)
	}
	if o := s.command("runs", "--prune", "30d", "--yes").start().wait(); o.Code != 0 || len(s.runs()) != 0 {
		t.Errorf("removing ended with %d, %d are left: %s", o.Code, len(s.runs()), o.Stderr)
	}
}
