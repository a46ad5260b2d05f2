package crash_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
)

const (
	sideBySide   = 2  // workspaces, for as many processors
	perWorkspace = 40 // kills, after which it is old and a new one is made
	guardless    = 8  // one of so many kills takes the guard with it
	orderlyAfter = 10 // at the latest after so many kills one driver ends by itself
)

func TestWhateverWasAcknowledgedSurvivesAKillAtAnyMoment(t *testing.T) {
	var all tally
	began := time.Now()
	jobs := make(chan job)
	var players sync.WaitGroup
	for range sideBySide {
		players.Go(func() {
			for j := range jobs {
				t.Run(fmt.Sprintf("workspace %d", j.number), func(t *testing.T) { newWorkspace(t, j, &all).play() })
			}
		})
	}
	for number, left := 0, *kills; left > 0; number++ {
		n := min(left, perWorkspace, (*kills+sideBySide-1)/sideBySide)
		jobs <- job{number, n}
		left -= n
	}
	close(jobs)
	players.Wait()
	all.report(t, time.Since(began))
}

// job is one workspace with the number of kills in it.
type job struct{ number, kills int }

// workspace is one repository and what is known of it.
type workspace struct {
	t        *testing.T
	job      job
	random   *rand.Rand
	dir      string
	root     store.Root
	template assignment
	runs     map[string]*known
	all      *tally
	counts   map[kind]int
	guarded  bool // no kill since the last look has taken a guard with it
	lastLook int
}

func newWorkspace(t *testing.T, j job, all *tally) *workspace {
	t.Helper()
	dir := t.TempDir()
	w := &workspace{
		t: t, job: j, random: rand.New(rand.NewPCG(*seed, uint64(j.number))), dir: dir,
		runs: map[string]*known{}, all: all, counts: map[kind]int{}, guarded: true,
	}
	w.template = assignment{
		Workdir: filepath.Join(dir, "repo"), Children: filepath.Join(dir, "children"), Scratch: filepath.Join(dir, "scratch"),
		Stub: proctest.Build(t), Marker: proctest.Marker(),
	}
	if err := os.Mkdir(w.template.Scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "--quiet", w.template.Workdir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	root, _, err := store.Ensure(t.Context(), w.template.Workdir)
	if err != nil {
		t.Fatal(err)
	}
	w.root = root
	t.Cleanup(func() {
		for _, pid := range proctest.Survivors(w.template.Marker) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // its marker proves that it is ours
		}
	})
	return w
}

// play kills one driver after the other.
func (w *workspace) play() {
	for n := range w.job.kills {
		w.round(n)
		if w.t.Failed() {
			w.t.Logf("at kill %d of workspace %d", n+1, w.job.number)
			return
		}
		if !w.guarded || n-w.lastLook >= orderlyAfter || n == w.job.kills-1 {
			w.orderly()
			w.lastLook = n
		}
	}
	w.all.add(w.counts)
}

// round starts a driver, kills it and looks at what it has left.
func (w *workspace) round(n int) {
	d := w.start(false)
	w.awaitMoment(d)
	if w.random.IntN(guardless) == 0 && d.killGuard(w.t) {
		w.guarded = false
		w.counts["guard killed"]++
	}
	d.kill(w.t)
	w.counts["kill"]++
	w.age()
	w.look(d)
	if w.guarded {
		w.awaitNoSurvivors()
	}
}

// awaitMoment returns at the moment of the kill: some time after the start, or soon
// after some note.
func (w *workspace) awaitMoment(d *process) {
	after, pause := 0, time.Duration(w.random.Int64N(int64(150*time.Millisecond)))
	if w.random.IntN(4) > 0 {
		after, pause = 1+w.random.IntN(100), time.Duration(w.random.Int64N(int64(10*time.Millisecond)))
	}
	late := time.NewTimer(slowDriver)
	defer late.Stop()
	for range after {
		select {
		case <-d.told:
		case <-d.ended:
			return
		case <-late.C:
			return
		}
	}
	moment := time.NewTimer(pause)
	defer moment.Stop()
	<-moment.C
}

// slowDriver is how long the moment of a kill waits for a driver that has nothing to
// tell.
const slowDriver = 3 * time.Second

// look takes in what a driver has told and holds the disk against it.
func (w *workspace) look(d *process) {
	w.t.Helper()
	touched := map[string]bool{}
	for _, n := range d.notes {
		w.counts[n.Kind]++
		if n.Run == "" {
			if n.Kind == fault {
				w.t.Error(n.Text)
			}
			continue
		}
		if w.runs[n.Run] == nil {
			w.runs[n.Run] = newKnown()
		}
		touched[n.Run] = true
		if err := w.runs[n.Run].learn(n); err != nil {
			w.t.Errorf("run %s: %v", n.Run, err)
		}
	}
	left, problems := inspect(w.root)
	for _, problem := range problems {
		w.t.Error(problem)
	}
	for _, id := range slices.Sorted(maps.Keys(touched)) {
		w.checkRun(id)
	}
	w.all.litter(left)
	if w.t.Failed() {
		w.t.Logf("the driver's log:\n%s", d.stderr.String())
	}
}

func (w *workspace) checkRun(id string) {
	run, err := w.root.Run(id)
	if err != nil {
		w.t.Error(err)
		return
	}
	for _, problem := range w.runs[id].check(run) {
		w.t.Errorf("run %s: %v", id, problem)
	}
}

// orderly lets a driver take over everything and end by itself. After it nothing is
// open and nothing is left, of any driver before it.
func (w *workspace) orderly() {
	d := w.start(true)
	select {
	case <-d.ended:
	case <-time.After(2 * patience):
		d.kill(w.t)
		w.t.Fatalf("the driver does not end:\n%s", d.stderr.String())
	}
	d.kill(w.t)
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		w.t.Errorf("the driver ended with %d:\n%s", code, d.stderr.String())
	}
	w.counts["orderly"]++
	w.look(d)
	for _, id := range slices.Sorted(maps.Keys(w.runs)) {
		w.checkRun(id)
		w.checkFinished(id)
	}
	if left := proctest.Survivors(w.template.Marker); len(left) > 0 {
		w.t.Errorf("%d processes survived the next start: %v", len(left), left)
	}
	if notes, err := filepath.Glob(filepath.Join(w.template.Children, "*.json")); err != nil || len(notes) > 0 {
		w.t.Errorf("notes on children are left: %v, %v", notes, err)
	}
	w.guarded = true
	w.checkTidy()
}

// checkTidy checks that what killed drivers have left is gone, but for runs that
// nobody has touched since.
func (w *workspace) checkTidy() {
	found, _ := inspect(w.root)
	untouched := func(path string) bool {
		id := strings.Split(path, "/")[1]
		run, err := w.root.Run(id)
		if err != nil {
			return false
		}
		cp, err := run.LoadCheckpoint()
		return err != nil || cp.Phase == store.PhaseCompleted || cp.Plan == nil
	}
	for _, path := range slices.Concat(found.temporary, found.scratch, found.alive) {
		if !strings.HasPrefix(path, "runs/") || !untouched(path) {
			w.t.Errorf("%s is left behind", path)
		}
	}
}

// checkFinished checks that a run that was taken over has nothing open and is free.
func (w *workspace) checkFinished(id string) {
	run, err := w.root.Run(id)
	if err != nil {
		w.t.Error(err)
		return
	}
	cp, err := run.LoadCheckpoint()
	if err != nil {
		w.t.Error(err)
		return
	}
	if cp.Phase == store.PhaseCompleted || cp.Plan == nil { // nobody needs it any more, or yet
		return
	}
	if _, state, err := run.Owner(); err != nil || state != store.OwnerNone {
		w.t.Errorf("run %s is owned after its last driver has ended: %s, %v", id, state, err)
	}
	if cp.PendingQuestion != nil {
		w.t.Errorf("run %s: question %s is pending", id, cp.PendingQuestion.QuestionID)
	}
	if rounds, err := brokenOff(run); err != nil || len(rounds) > 0 {
		w.t.Errorf("run %s: not resumed: %+v, %v", id, rounds, err)
	}
}

func (w *workspace) awaitNoSurvivors() {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := proctest.Survivors(w.template.Marker)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Errorf("%d processes survived: %v", len(left), left)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// age makes what was left behind old, as if days had passed since the kill.
func (w *workspace) age() {
	old := time.Now().Add(-72 * time.Hour)
	err := filepath.WalkDir(w.root.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.root.Dir, path)
		if err == nil && (temporary.MatchString(filepath.ToSlash(name)) || scratch.MatchString(filepath.ToSlash(name))) {
			err = os.Chtimes(path, old, old)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

// process is a driver at work.
type process struct {
	cmd    *exec.Cmd
	stderr *tail
	notes  []note
	told   chan struct{} // one for each note
	ended  chan struct{} // closed when all notes are read
	broken error
}

func (w *workspace) start(orderly bool) *process {
	w.t.Helper()
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	a := w.template
	a.Seed, a.Orderly = w.random.Uint64(), orderly
	text, err := json.Marshal(a)
	if err != nil {
		w.t.Fatal(err)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	d := &process{cmd: exec.Command(self), stderr: &tail{}, told: make(chan struct{}, 10_000), ended: make(chan struct{})}
	d.cmd.Env = append(os.Environ(), driverVariable+"="+string(text))
	d.cmd.ExtraFiles = []*os.File{theirs}
	d.cmd.Stderr = d.stderr
	d.cmd.WaitDelay = patience // a survivor may hold its standard error
	err = d.cmd.Start()
	_ = theirs.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	go d.read(ours)
	return d
}

func (d *process) read(pipe *os.File) {
	defer close(d.ended)
	defer pipe.Close()
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n note
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			d.broken = fmt.Errorf("note %q: %w", lines.Text(), err)
			return
		}
		d.notes = append(d.notes, n)
		select {
		case d.told <- struct{}{}:
		default:
		}
	}
	d.broken = lines.Err()
}

// kill kills the driver, if it lives, and takes in what it has told to the last.
func (d *process) kill(t *testing.T) {
	t.Helper()
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
	<-d.ended
	if d.broken != nil {
		t.Error(d.broken)
	}
	if text := d.stderr.String(); d.stderr.defect() {
		t.Errorf("the driver reports:\n%s", text)
	}
}
