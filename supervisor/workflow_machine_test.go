package supervisor_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// machine does what the model does with real daemons on a real workspace. Sessions of one
// daemon are told apart by the run, those of two by owner.json.
type machine struct {
	world
	dir     string
	root    store.Root
	session supervisor.Session
	heads   []string
	clock   *atomic.Int64
	daemons [2]*supervisor.System
	players []*player
	last    *player // that did something
	// approved are the plans, by run and digest, that a user has said yes to.
	approved map[string]bool
	seen     map[*modelRun]seen
}

// seen is what a run was when its files were last read.
type seen struct {
	files string
	shown shown
}

// player is a Pi session at a daemon.
type player struct {
	modelSession
	host    int          // its daemon
	history []object     // the entries that it was given, oldest first
	talk    *talk        // an open dialog, nil for none
	round   *roundAtWork // nil for none
}

// talk is an open dialog and what follows from an answer to it.
type talk struct {
	supervisor.Dialog
	finish func(t *rapid.T, d supervisor.Dialog)
}

type roundAtWork struct {
	run    *modelRun
	id     string
	cancel context.CancelFunc
	done   chan error
}

// commits is a workspace with two commits of which none is checked out.
func commits(t *testing.T) (dir string, heads []string) {
	t.Helper()
	dir = t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "--template=", "-b", "main")
	for range 2 {
		git("commit", "-q", "--allow-empty", "-m", "work")
		heads = append(heads, git("rev-parse", "HEAD"))
	}
	if err := os.Remove(filepath.Join(dir, ".git/refs/heads/main")); err != nil {
		t.Fatal(err)
	}
	return dir, heads
}

func newMachine(t *rapid.T, parent, git string, heads []string) *machine {
	dir, err := os.MkdirTemp(parent, "workspace")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the workspace: %v", err)
		}
	})
	if err := os.CopyFS(dir, os.DirFS(git)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := store.Ensure(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{
		dir: dir, root: root, heads: heads, clock: &atomic.Int64{}, approved: map[string]bool{}, seen: map[*modelRun]seen{},
		session: supervisor.Session{Workdir: dir, Pi: self, Environ: append(os.Environ(), stubMarker)},
	}
	for host := range m.daemons {
		m.open(t, host)
	}
	t.Cleanup(func() {
		for host := range m.daemons {
			m.close(t, host)
		}
		for _, p := range m.players {
			if p.round != nil {
				p.round.cancel()
			}
		}
	})
	for i, id := range []string{"a1", "a2", "b1"} {
		m.players = append(m.players, &player{modelSession: modelSession{id: id}, host: i / 2})
	}
	return m
}

func (m *machine) open(t *rapid.T, host int) {
	daemon, err := supervisor.New(supervisor.Options{Now: func() time.Time {
		return time.Date(2026, 8, 25, 13, 0, 0, 0, time.UTC).Add(time.Duration(m.clock.Add(1)) * time.Second)
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.daemons[host] = daemon
}

func (m *machine) close(t *rapid.T, host int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := m.daemons[host].Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// as is the session as its daemon knows it.
func (m *machine) as(p *player) (*supervisor.System, supervisor.Session) {
	session := m.session
	session.ID = p.id
	return m.daemons[p.host], session
}

func (m *machine) hook(t *rapid.T, p *player, name string, event object) supervisor.Reply {
	daemon, session := m.as(p)
	reply, err := daemon.Hook(t.Context(), session, name, encoded(t, event))
	if err != nil {
		t.Fatalf("hook %s of %s: %v", name, p.id, err)
	}
	p.keep(reply)
	return reply
}

// keep adds the entries of a reply to the history of its session.
func (p *player) keep(reply supervisor.Reply) {
	for _, a := range reply.Actions {
		if a.Kind == supervisor.ActionEntry && a.CustomType != "pilothouse-denial" {
			p.history = append(p.history, object{"customType": a.CustomType, "data": a.Data})
		}
	}
}

// last is the last entry of one of the types, nil for none.
func (p *player) last(types ...string) object {
	for _, entry := range slices.Backward(p.history) {
		if slices.Contains(types, fmt.Sprint(entry["customType"])) {
			return entry
		}
	}
	return nil
}

func (m *machine) converse(t *rapid.T, p *player, kind, name string, args any) (supervisor.Reply, error) {
	daemon, session := m.as(p)
	reply, err := daemon.Converse(t.Context(), session, terminal, kind, name, encoded(t, args))
	p.keep(reply)
	return reply, err
}

func (m *machine) answers(t *rapid.T, p *player, d supervisor.Dialog, a supervisor.Answer) (supervisor.Reply, error) {
	daemon, _ := m.as(p)
	reply, err := daemon.Answer(t.Context(), p.id, d.Conversation, a)
	p.keep(reply)
	return reply, err
}

func (m *machine) plans(t *rapid.T, p *player, action supervisor.PlansAction) (any, error) {
	daemon, session := m.as(p)
	return daemon.Plans(t.Context(), session, action)
}

func encoded(t *rapid.T, value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// became checks what came of a wish.
func became(t *rapid.T, what outcome, err error) {
	var foreign *store.OwnedError
	var state *store.StateError
	var input *supervisor.InputError
	got := done
	switch {
	case errors.As(err, &foreign):
		got = owned
	case errors.As(err, &state), errors.As(err, &input):
		got = refused
	case err != nil:
		t.Fatalf("unexpected error %v", err)
	}
	if got != what {
		t.Fatalf("it is %s (%v), the model says: %s", got, err, what)
	}
}

func (m *machine) dirOf(t *rapid.T, r *modelRun) store.RunDir {
	dir, err := m.root.Run(r.id)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (m *machine) file(r *modelRun, name string) string {
	return filepath.Join(m.dir, ".git/pi_plans/runs", r.id, name)
}

func (m *machine) planFile(t *rapid.T, r *modelRun, version int) string {
	run, err := m.dirOf(t, r).Load()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(run.ArtifactDir, fmt.Sprintf("PLAN_v%d.md", version))
}

// shown is all that can be seen of a run.
type shown struct {
	Status, Phase, Next, Owner string
	Plan, Approved, Head       string
	Done                       []string
	Reverify                   bool
	Paused, Pending            string
	Answers                    map[string]string
	Rounds                     []string
	Condition, Current         string
	Completed                  int
}

func (r *modelRun) shown() shown {
	c := r.record
	s := shown{
		Status: r.status, Phase: c.phase, Next: c.next, Owner: r.owner, Plan: c.plan.text, Done: c.done, Reverify: c.reverify,
		Paused: c.paused, Pending: c.pending, Answers: c.answers, Condition: c.condition, Current: c.current, Completed: c.completed,
	}
	if c.approved != nil {
		s.Approved, s.Head = c.approved.plan.text, c.approved.head
	}
	for _, round := range c.rounds {
		s.Rounds = append(s.Rounds, fmt.Sprint(round.id, " ", round.target, " ", round.lane, " ", round.consolidated))
	}
	return s
}

// onDisk reads what can be seen. Texts are those of the digests.
func (m *machine) onDisk(t *rapid.T, r *modelRun) shown {
	dir := m.dirOf(t, r)
	run, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	cp, err := dir.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	owner, state, err := dir.Owner()
	if err != nil {
		t.Fatal(err)
	}
	s := shown{
		Status: string(run.Status), Phase: string(cp.Phase), Next: string(cp.NextAction), Owner: map[store.OwnerState]string{
			store.OwnerNone: "", store.OwnerDead: dead, store.OwnerAlive: owner.Session(),
		}[state], Answers: map[string]string{},
	}
	if cp.Plan != nil {
		s.Plan = textOf(cp.Plan.SHA256)
	}
	if e := cp.Execution; e != nil {
		s.Reverify, s.Paused = e.MustReverify(), e.PausedReason
		if len(e.DoneVCIDs) > 0 {
			s.Done = e.DoneVCIDs
		}
		if e.Approval != nil {
			s.Approved = textOf(e.Approval.Plan.SHA256)
			if e.Approval.HeadAtApproval != nil {
				s.Head = *e.Approval.HeadAtApproval
			}
			if !m.approved[r.id+e.Approval.Plan.SHA256] {
				t.Fatalf("nobody approved %s", e.Approval.Plan.Path)
			}
			if cp.Phase == store.PhaseExecuting && cp.Plan.SHA256 != e.Approval.Plan.SHA256 {
				t.Fatalf("%s is executed, and %s approved", cp.Plan.Path, e.Approval.Plan.Path)
			}
		}
	}
	if s.Status == "executing" && s.Approved == "" {
		t.Fatal("what is carried out is not approved")
	}
	if cp.PendingQuestion != nil {
		s.Pending = cp.PendingQuestion.QuestionID
	}
	for _, answer := range cp.AnsweredQuestions {
		if _, twice := s.Answers[answer.QuestionID]; twice {
			t.Fatalf("question %s is answered twice", answer.QuestionID)
		}
		s.Answers[answer.QuestionID] = answer.Answer
	}
	for _, round := range cp.ReviewRounds {
		s.Rounds = append(s.Rounds, fmt.Sprint(round.RoundID, " ", round.Target, " ", round.Lanes[0].Status, " ", round.Consolidated))
	}
	if review := cp.ImplementationReview; review != nil {
		s.Condition, s.Current, s.Completed = review.TerminationCondition, review.CurrentRoundID, review.CompletedRounds
	}
	return s
}

// look is onDisk that reads only what has changed.
func (m *machine) look(t *rapid.T, r *modelRun) shown {
	var files strings.Builder
	for _, name := range []string{"checkpoint.json", "run.json", "owner.json"} {
		data, err := os.ReadFile(m.file(r, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		files.Write(data)
	}
	if last, known := m.seen[r]; known && last.files == files.String() {
		return last.shown
	}
	now := m.onDisk(t, r)
	m.seen[r] = seen{files.String(), now}
	return now
}

// check compares all that can be seen with the model.
func (m *machine) check(t *rapid.T) {
	for _, r := range m.runs {
		if diff := cmp.Diff(r.shown(), m.look(t, r)); diff != "" {
			t.Fatalf("run %s, the model first: %s", r.id, diff)
		}
	}
	for _, p := range m.players {
		reply := m.hook(t, p, "tool_call", object{"toolName": "write", "toolCallId": "c", "input": object{"path": "main.go", "content": ""}})
		if guarded := reply.Block != nil; guarded != m.guarded(&p.modelSession) {
			t.Fatalf("the files of session %s are guarded: %v, the model says: %v", p.id, guarded, !guarded)
		}
	}
}

// planText is a version of a plan. No two versions are alike, and each has variants.
func planText(version int, variant string) string {
	return fmt.Sprintf("# Version %d, %s\n\n## Verifier Checklist\n- [ ] `VC-001` covers I-1; it builds\n- [ ] `VC-002` covers I-1; it runs\n", version, variant)
}

const planVersions = 3

var planVariants = []string{"as written", "as changed"}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// textOf is the text with a digest, the digest itself for one that is none of ours.
func textOf(sum string) string {
	for version := range planVersions {
		for _, variant := range planVariants {
			if text := planText(version+1, variant); digest(text) == sum {
				return text
			}
		}
	}
	return sum
}

// leastSteps and mostSteps are how many steps a sequence has, so that the checks that rapid
// makes by default take some seconds. -rapid.checks wants more of them.
const (
	leastSteps = 5
	mostSteps  = 12
)

// stages are how far a session is led before chance begins: few sequences come there by it.
var stages = []func(m *machine, t *rapid.T, p *player){
	func(*machine, *rapid.T, *player) {}, // executing
	func(m *machine, t *rapid.T, p *player) { // a check has passed at another commit
		m.tells(t, p, checks[:1])
		m.checkOut(t, m.heads[1])
	},
	func(m *machine, t *rapid.T, p *player) { m.tells(t, p, checks) }, // carried out
	func(m *machine, t *rapid.T, p *player) { // reviewed
		m.tells(t, p, checks)
		m.configures(t, p, rapid.SampledFrom(conditions).Draw(t, "condition"))
	},
}

// plan leads a session to a plan, and execute on to its execution.
func (m *machine) plan(t *rapid.T, p *player) {
	m.starts(t, p)
	m.writes(t, p, 1, planText(1, planVariants[0]))
}

func (m *machine) execute(t *rapid.T, p *player) {
	h, _ := m.offer(&p.modelSession, true)
	reply, err := m.converse(t, p, supervisor.KindTool, "execute_plan", object{})
	d := opened(t, reply, err)
	m.approved[h.run.id+digest(h.plan.text)] = true
	yes := 0
	_, err = m.answers(t, p, d, supervisor.Answer{Index: &yes})
	became(t, m.approve(&p.modelSession, h), err)
}

func TestWhateverSessionsDoToRunsIsWhatTheModelSays(t *testing.T) {
	t.Parallel()
	git, heads := commits(t)
	parent := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, parent, git, heads)
		if rapid.Bool().Draw(t, "with a commit") {
			m.checkOut(t, heads[0])
		}
		stage := rapid.IntRange(0, len(stages)+2).Draw(t, "stage")
		if p := m.players[0]; stage <= len(stages)+1 {
			m.plan(t, p)
			switch {
			case stage < len(stages):
				m.execute(t, p)
				stages[stage](m, t, p)
			case stage == len(stages):
				m.begins(t, p)
			}
		}
		m.check(t)
		for range rapid.IntRange(leastSteps, mostSteps).Draw(t, "steps") {
			m.step(t)
			m.check(t)
		}
	})
}
