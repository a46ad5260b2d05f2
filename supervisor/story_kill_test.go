package supervisor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
)

var (
	storyKills = flag.Int("storykills", 3, "at how many boundaries of each story to kill, 0 for all of them")
	storySeed  = flag.Uint64("storyseed", 1, "what the boundaries are drawn from")
)

// kill is one way to break a story off: at a boundary, to go on in the same session, whose
// daemon has died, or in another terminal.
type kill struct {
	at        string
	elsewhere bool
}

func (k kill) String() string {
	if k.elsewhere {
		return k.at + ", on in another terminal"
	}
	return k.at
}

// Each story is told once without a disturbance, which lists its boundaries. Then its
// process is killed exactly at one of them, and another one goes on from what it has left.
func TestAStoryThatIsKilledAtAnyMessageGoesOnToItsEnd(t *testing.T) {
	t.Parallel()
	for _, kind := range []storyKind{storyInSession, storyInOtherTree, storyHeadless} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newStory(t, kind)
			whole := s.tell(storyPart{List: true})
			s.end(whole)
			var all []kill
			for _, place := range whole.of(noteBoundary) {
				all = append(all, kill{at: place})
				if kind != storyHeadless {
					all = append(all, kill{place, true})
				}
			}
			chosen := all
			if *storyKills > 0 {
				random := rand.New(rand.NewPCG(*storySeed, 0))
				random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
				chosen = chosen[:min(*storyKills, len(chosen))]
			}
			t.Logf("seed %d: %d of %d kills", *storySeed, len(chosen), len(all))
			for _, k := range chosen {
				t.Run(k.String(), func(t *testing.T) {
					t.Parallel()
					newStory(t, kind).broken(k)
				})
			}
		})
	}
}

type storyKind string

const (
	storyInSession storyKind = "in a session"
	// storyInOtherTree begins where the first half was left in one work tree, when its user was
	// about to go on after a pause, and goes on in a linked one.
	storyInOtherTree storyKind = "in another work tree"
	storyHeadless    storyKind = "without a session"
)

// story is a workspace in which one is told.
type story struct {
	t          *testing.T
	kind       storyKind
	dir        string
	part       storyPart      // what all processes have in common
	beforePaid map[string]int // what children were started for before the part that is killed
}

func newStory(t *testing.T, kind storyKind) *story {
	t.Helper()
	dir := t.TempDir()
	s := &story{t: t, kind: kind, dir: dir, part: storyPart{
		Headless: kind == storyHeadless, Workdir: filepath.Join(dir, "work"), Children: filepath.Join(dir, "children"), Pi: filepath.Join(dir, "pi"),
	}}
	s.git("init", "--quiet", s.part.Workdir)
	s.git("-C", s.part.Workdir, "-c", "user.name=p", "-c", "user.email=p@example.org", "commit", "--quiet", "--allow-empty", "--message=first")
	for path, text := range map[string]string{s.part.Pi: storyPi, filepath.Join(s.part.Workdir, "PLAN.md"): storyPlan} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if kind == storyInOtherTree {
		s.tell(storyPart{At: "ask input #1", Session: "before"})
		s.noSurvivors()
		linked := filepath.Join(dir, "linked")
		s.git("-C", s.part.Workdir, "worktree", "add", "--quiet", "-b", "linked", linked)
		s.part.Workdir, s.part.Paused = linked, true
	}
	s.beforePaid = s.paid()
	return s
}

func (s *story) git(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// telling is what a process has told.
type telling struct {
	notes  []storyNote
	killed bool
	stderr string
}

// of are the texts of the notes of a kind.
func (t telling) of(kind string) []string {
	var texts []string
	for _, n := range t.notes {
		if n.Kind == kind {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// tell has a process tell its part.
func (s *story) tell(part storyPart) telling {
	s.t.Helper()
	part.Headless, part.Workdir, part.Children, part.Pi = s.part.Headless, s.part.Workdir, s.part.Children, s.part.Pi
	part.Paused = part.Paused || s.part.Paused
	text, err := json.Marshal(part)
	if err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	defer ours.Close()
	var result telling
	var stderr bytes.Buffer
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), StoryVariable+"="+string(text), "STORY="+s.dir)
	cmd.ExtraFiles, cmd.Stderr, cmd.WaitDelay = []*os.File{theirs}, &stderr, time.Minute
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	hung := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	lines := bufio.NewScanner(ours)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n storyNote
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			s.t.Errorf("note %q: %v", lines.Text(), err)
		}
		result.notes = append(result.notes, n)
	}
	_ = cmd.Wait()
	hung.Stop()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	result.killed, result.stderr = ok && status.Signaled() && status.Signal() == syscall.SIGKILL, stderr.String()
	for _, fault := range result.of(noteFault) {
		s.t.Error(fault)
	}
	if code := cmd.ProcessState.ExitCode(); !result.killed && code != 0 || strings.Contains(result.stderr, "DATA RACE") {
		s.t.Errorf("the process ended with %d:\n%s", code, result.stderr)
	}
	return result
}

// broken tells the story, has it killed, and lets another process go on.
func (s *story) broken(k kill) {
	s.t.Helper()
	first := s.tell(storyPart{At: k.at, Session: "first"})
	if !first.killed {
		// How messages interleave differs from time to time, and so does how many there are.
		s.t.Log("this boundary was not reached")
		s.end(first)
		return
	}
	s.noSurvivors()
	paid := s.paid()
	next := storyPart{Paused: len(first.of(notePaused)) > 0}
	if !k.elsewhere {
		next.Session, next.Entries = "first", []SessionEntry{}
		for _, n := range first.notes {
			if n.Kind == noteEntry {
				next.Entries = append(next.Entries, SessionEntry{CustomType: n.Text, Data: n.Data})
			}
		}
	}
	second := s.tell(next)
	s.keeps(first, second, paid)
	s.end(first, second)
	if s.t.Failed() {
		s.t.Logf("the first process told %s", tellingText(first))
		s.t.Logf("the second process told %s", tellingText(second))
	}
}

func tellingText(t telling) string {
	var text strings.Builder
	for _, n := range t.notes {
		if n.Kind != noteBoundary {
			fmt.Fprintf(&text, "\n%s %s", n.Kind, n.Text)
		}
	}
	return text.String() + "\n" + t.stderr
}

func (s *story) noSurvivors() {
	s.t.Helper()
	deadline, poll := time.After(time.Minute), time.NewTicker(5*time.Millisecond)
	defer poll.Stop()
	for {
		left := proctest.Survivors(s.part.Pi)
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline:
			s.t.Errorf("processes survived: %v", left)
			return
		case <-poll.C:
		}
	}
}

// paid counts what children were started for.
func (s *story) paid() map[string]int {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "journal"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// storyLanes are the lanes of the part of a story that is killed.
var storyLanes = map[storyKind]map[string]int{
	storyInSession:   {"reviewer plan": 3, "criticizer plan": 1, "reviewer implementation": 2},
	storyInOtherTree: {"reviewer plan": 0, "criticizer plan": 0, "reviewer implementation": 2},
	storyHeadless:    {"reviewer implementation": 2},
}

// keeps checks that nothing is asked, approved or paid twice, and nothing is lost.
func (s *story) keeps(first, second telling, paid map[string]int) {
	s.t.Helper()
	for _, id := range first.of(noteAnswered) {
		if slices.Contains(second.of(noteAnswered), id) && slices.ContainsFunc(second.of(noteShown), func(title string) bool { return strings.Contains(title, questionOf[id]) }) {
			s.t.Errorf("question %s is asked again although its answer was acknowledged", id)
		}
	}
	approved := append(first.of(noteApproved), second.of(noteApproved)...)
	if slices.ContainsFunc(approved, func(at string) bool { return at != approved[0] }) {
		s.t.Errorf("it was approved at %v", approved)
	}
	if len(first.of(noteApproved)) > 0 && slices.ContainsFunc(second.of(noteShown), func(title string) bool { return strings.Contains(title, "be executed") }) {
		s.t.Error("the approval is asked for again although it was acknowledged")
	}
	kept := map[string]int{}
	for _, lane := range first.of(noteReviewed) {
		kept[lane[:strings.LastIndexByte(lane, ' ')]]++
	}
	now := s.paid()
	for what, total := range storyLanes[s.kind] {
		if again := now[what] - paid[what]; again > total-kept[what] {
			s.t.Errorf("%d lanes of %q were run after the kill, although %d of %d were acknowledged", again, what, kept[what], total)
		}
	}
}

var questionOf = map[string]string{"oven": ovenQuestion, "termination-condition": endQuestion}

// end checks the end of a story that was told in one or two parts.
func (s *story) end(parts ...telling) {
	s.t.Helper()
	s.noSurvivors()
	last := parts[len(parts)-1]
	if len(last.of(noteOver)) != 1 || len(last.of(noteCompleted)) != 1 {
		s.t.Errorf("the story has no end: %s", tellingText(last))
		return
	}
	root, err := store.Find(s.t.Context(), s.part.Workdir)
	if err != nil {
		s.t.Fatal(err)
	}
	runs, err := root.Runs()
	if err != nil {
		s.t.Fatal(err)
	}
	if len(runs) != 1 && slices.Contains(parts[0].of(noteEntry), runStartEntry) {
		s.t.Errorf("there are %d runs", len(runs))
	}
	run := runs[len(runs)-1]
	cp, err := run.Dir.LoadCheckpoint()
	if err != nil {
		s.t.Fatal(err)
	}
	if run.Run.RunID != last.of(noteCompleted)[0] || run.Run.Status != store.StatusDone || cp.Phase != store.PhaseCompleted || cp.ImplementationReview.CompletedRounds != 2 {
		s.t.Errorf("run %s is %s in phase %s, %+v", run.Run.RunID, run.Run.Status, cp.Phase, cp.ImplementationReview)
	}
	if at := last.of(noteApproved); len(at) > 0 && at[0] != cp.Execution.Approval.ApprovedAt {
		s.t.Errorf("approved at %s, told was %v", cp.Execution.Approval.ApprovedAt, at)
	}
	if !slices.Equal(cp.Execution.DoneVCIDs, []string{"VC-001", "VC-002"}) || cp.PendingQuestion != nil || cp.WorktreeRoot != s.part.Workdir {
		s.t.Errorf("passed %v, pending %+v, in %s", cp.Execution.DoneVCIDs, cp.PendingQuestion, cp.WorktreeRoot)
	}
	switch _, state, err := run.Dir.Owner(); {
	case err == nil && state == store.OwnerNone:
	case err == nil && state == store.OwnerDead && last.of(noteBegun) == nil: // nothing was left to do for it
	default:
		s.t.Errorf("owner %s, %v", state, err)
	}
	for name, want := range map[string]string{"batch.txt": "45 minutes a batch\n", "oven.txt": "40\n", "early.txt": ""} {
		if text, err := os.ReadFile(filepath.Join(s.part.Workdir, name)); string(text) != want || want != "" && err != nil {
			s.t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if s.paid()["unapproved"] > 0 {
		s.t.Error("an executor was started without an approval on record")
	}
	if s.kind != storyHeadless {
		s.usage(cp, parts) // an approval begins it anew
	}
	if len(parts) == 1 {
		for what, lanes := range storyLanes[s.kind] {
			if n := s.paid()[what] - s.beforePaid[what]; n != lanes {
				s.t.Errorf("%d children were started for %q, want %d", n, what, lanes)
			}
		}
	}
}

// usage checks that each turn that was durable is counted, and none twice.
func (s *story) usage(cp store.Checkpoint, parts []telling) {
	s.t.Helper()
	spending, spent := 0, 0
	for _, part := range parts {
		spending, spent = spending+len(part.of(noteSpending)), spent+len(part.of(noteSpent))
	}
	if turns := cp.Execution.Usage.OutToks / storyUsage.Output; turns < spent || turns > spending {
		s.t.Errorf("%d turns are counted, %d of %d were durable", turns, spent, spending)
	}
}
