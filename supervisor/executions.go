package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"pilothouse/store"
	"pilothouse/supervisor/execution"
)

// executions are those that sessions of this process work on. All that counts is on
// disk; what is here is read from there when a session comes for it.
type executions struct {
	mu sync.Mutex
	of map[string]*seat // by session id
}

// seat is where a session has its execution. Its lock is held for a whole hook or change,
// so that what a session reports is taken into account one by one.
type seat struct {
	mu sync.Mutex
	at *running // nil for none
	// aside tells that the session stands at a point of its history where it carries no
	// plan out: it takes none up before one is handed to it.
	aside bool
}

// running is the execution of a plan in a session.
type running struct {
	run      store.RunDir
	planPath string
	plan     execution.Plan // as it was approved; the file may be ticked off meanwhile
	approval store.Approval
	scanner  execution.Scanner
	wait     execution.GoalWait
	// stale are checks that passed on another commit and have to pass again.
	stale []string
	// moved tells that another commit was checked out than at the approval when the
	// execution was taken up.
	moved bool
	// foreign tells that another session worked on it last, until this one has a snapshot.
	foreign bool
	// unsaved is what is not durable: what was not worth a write of its own, or could not
	// be written.
	unsaved unsavedTurn
	// saved is when the last report became durable.
	saved time.Time
	// last is the agent's last message.
	last TurnEndEvent
	// flush tells that the session does not have the latest snapshot.
	flush bool
	// compacting tells that the session is about to be compacted.
	compacting bool
	// lost tells that the run is another's now.
	lost bool
}

type unsavedTurn struct {
	markers  []execution.Marker
	evidence map[string]string // what was said with the marker of a check, by its id
	usage    store.TokenUsage
}

// seat locks that of a session.
func (e *executions) seat(session string) *seat {
	e.mu.Lock()
	if e.of == nil {
		e.of = map[string]*seat{}
	}
	taken := e.of[session]
	if taken == nil {
		taken = &seat{}
		e.of[session] = taken
	}
	e.mu.Unlock()
	taken.mu.Lock()
	return taken
}

// end forgets the execution of a session; what it has reached is on disk.
func (e *executions) end(session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.of, session)
}

// turnTo makes a session leave the execution of any other run than this, which it may take
// up from now on.
func (e *executions) turnTo(session string, run store.RunDir) {
	seat := e.seat(session)
	defer seat.mu.Unlock()
	seat.aside = false
	if seat.at != nil && seat.at.run.ID != run.ID {
		seat.at = nil
	}
}

// stepAside makes a session leave its execution and take none up by itself.
func (e *executions) stepAside(session string) {
	seat := e.seat(session)
	defer seat.mu.Unlock()
	seat.at, seat.aside = nil, true
}

// isAside tells whether a session has stepped aside.
func (e *executions) isAside(session string) bool {
	seat := e.seat(session)
	defer seat.mu.Unlock()
	return seat.aside
}

// sessions are the ids of those that have a seat.
func (e *executions) sessions() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.of))
}

// compacting notes that a session is about to be compacted, or that this is over: until
// then its agent is left alone.
func (e *executions) compacting(session string, atWork bool) {
	seat := e.seat(session)
	defer seat.mu.Unlock()
	if seat.at != nil {
		seat.at.compacting = atWork
	}
}

// executionOf is the execution that a session works on, with its checkpoint, nil for none.
// After a restart of the daemon, or in a session that has resumed the run, it is taken up
// again from the files. With one, the session's seat is locked until release.
func (s *System) executionOf(ctx context.Context, session Session) (_ *running, _ store.Checkpoint, release func(), _ error) {
	seat := s.executions.seat(session.ID)
	r, cp, err := seat.at, store.Checkpoint{}, error(nil)
	if r != nil {
		var record store.Run
		if record, err = r.run.Load(); err == nil {
			cp, err = r.run.LoadCheckpoint()
		}
		switch {
		case err != nil:
		case !r.current(record, cp):
			r = nil
		case s.bindings.elsewhere(session.ID, r.run):
			s.settle(ctx, session, r, cp, false)
			r = nil
		default:
			r.wait.Paused = cp.Execution.PausedReason // who has ended the run has paused it
		}
	}
	if r == nil && err == nil && !seat.aside {
		r, cp, err = s.takeUp(ctx, session)
	}
	if err == nil {
		seat.at = r
	}
	if err != nil || r == nil {
		seat.mu.Unlock()
		return nil, cp, nil, err
	}
	return r, cp, seat.mu.Unlock, nil
}

// current tells whether this is still the execution that the files have at work.
func (r *running) current(record store.Run, cp store.Checkpoint) bool {
	if r.lost || record.Status != store.StatusExecuting || cp.Phase != store.PhaseExecuting || cp.Execution == nil || cp.Execution.Approval == nil {
		return false
	}
	at := cp.Execution.Approval
	return at.ApprovedAt == r.approval.ApprovedAt && at.Plan.SHA256 == r.approval.Plan.SHA256 && samePlace(cp.WorktreeRoot, r.run.Root.Worktree)
}

// takeUp finds the execution of a session in the files: that of its own run, or one that
// it worked on when the daemon died. One whose plan has changed, or whose approval is to
// be given again, waits for that.
func (s *System) takeUp(ctx context.Context, session Session) (*running, store.Checkpoint, error) {
	none := store.Checkpoint{}
	m, err := s.meant(ctx, session)
	if err != nil || m.run == nil || m.run.Status != store.StatusExecuting {
		return nil, none, err
	}
	run, root := m.dir, *m.root
	cp, err := run.LoadCheckpoint()
	if errors.Is(err, store.ErrNoCheckpoint) {
		return nil, none, nil
	}
	if err != nil {
		return nil, none, err
	}
	notes := s.notesOf(run)
	if !m.bound && (notes.Execution == nil || notes.Execution.Session != session.ID) {
		return nil, none, nil
	}
	head, err := store.Head(ctx, root.Worktree)
	if err != nil {
		return nil, none, err
	}
	terms := termsOf(cp, head, notes)
	switch {
	case terms == nil || !samePlace(cp.WorktreeRoot, root.Worktree):
		return nil, none, nil
	case terms.handoff != "":
		return nil, none, s.withdraw(ctx, session, run)
	}
	plan, err := readExecutable(cp.Plan.Path)
	if err != nil {
		return nil, none, nil // its digest is right, so it was approved as something else
	}
	r, cp, err := s.attach(ctx, session, run, cp, plan, terms, notes)
	if notOurs(err) { // whoever has the run goes on with it
		return nil, none, nil
	}
	return r, cp, err
}

// notOurs tells whether an error says that somebody else has the run.
func notOurs(err error) bool {
	var lost *store.LostOwnerError
	var owned *store.OwnedError
	return errors.As(err, &lost) || errors.As(err, &owned)
}

// attach makes an execution that is on disk the session's. The run, whose owner the
// session becomes, learns of it.
func (s *System) attach(ctx context.Context, session Session, run store.RunDir, cp store.Checkpoint, plan execution.Plan, terms *terms, notes store.WorkflowNotes) (*running, store.Checkpoint, error) {
	r := &running{
		run: run, planPath: cp.Plan.Path, plan: plan, approval: *cp.Execution.Approval,
		stale: terms.stale, moved: terms.moved, flush: true, saved: s.now(),
	}
	kept := notes.Execution
	if !kept.Of(r.approval) {
		kept = &store.ExecutionNotes{}
	}
	r.foreign = kept.Session != session.ID
	if len(kept.GoalWait) > 0 {
		if err := json.Unmarshal(kept.GoalWait, &r.wait); err != nil {
			s.logger.Warn("how often an agent was woken up is forgotten", "run", run.ID, "error", err)
			r.wait = execution.GoalWait{}
		}
	}
	r.wait.Paused = cp.Execution.PausedReason
	r.wait.Restored(r.state(cp).Snapshot())
	reverify := len(r.stale) > 0
	cp, err := s.changeRun(ctx, session, "take-up-execution", run.ID, func(context.Context, store.RunDir) (*planChange, error) {
		return &planChange{
			files: func(f *files) (any, error) { return nil, f.noteExecution(session.ID, r, passedChecks{}) },
			step: func(time.Time) store.Change {
				if reverify {
					return store.HeadChanged()
				}
				return func(*store.Checkpoint) error { return store.ErrNoChange }
			},
		}, nil
	})
	if err != nil {
		return nil, store.Checkpoint{}, err
	}
	s.bindings.bind(session.ID, run) // whoever moves the pointer of the workspace does not take it away
	return r, cp, nil
}

// usage are the tokens that the execution has cost, also those of which the checkpoint does
// not know yet.
func (r *running) usage(cp store.Checkpoint) store.TokenUsage {
	total := cp.Execution.Usage
	total.InToks += r.unsaved.usage.InToks
	total.OutToks += r.unsaved.usage.OutToks
	return total
}

// state is how far the execution is by its checkpoint.
func (r *running) state(cp store.Checkpoint) *execution.State {
	done := slices.DeleteFunc(slices.Clone(cp.Execution.DoneVCIDs), func(id string) bool { return slices.Contains(r.stale, id) })
	return execution.NewState(r.plan, done, cp.Execution.ImplStatus, cp.Execution.CurrentI)
}

// notesOf are the notes of a run, empty ones when they cannot be read: then more is asked
// and verified than need be.
func (s *services) notesOf(run store.RunDir) store.WorkflowNotes {
	notes, err := run.LoadNotes()
	if err != nil {
		s.logger.Warn("notes of a run not read", "run", run.ID, "error", err)
		return store.WorkflowNotes{}
	}
	return notes
}

// passedChecks is what is noted of checks that have passed: the commit that was checked
// out, and what was said of it, by their id.
type passedChecks struct{ commits, evidence map[string]string }

// noteExecution keeps what the checkpoint has no room for, with the checks that have just
// passed.
func (f *files) noteExecution(session string, r *running, passed passedChecks) error {
	wait, err := json.Marshal(r.wait)
	if err != nil {
		return fmt.Errorf("encode the notes of an execution: %w", err)
	}
	return f.run.UpdateNotes(f.now(), func(notes *store.WorkflowNotes) {
		kept := notes.Execution
		if !kept.Of(r.approval) {
			kept = &store.ExecutionNotes{ApprovedAt: r.approval.ApprovedAt, PlanSHA256: r.approval.Plan.SHA256}
		}
		kept.Session, kept.GoalWait = session, wait
		if kept.Verified == nil {
			kept.Verified = map[string]string{}
		}
		if kept.Evidence == nil {
			kept.Evidence = map[string]string{}
		}
		maps.Copy(kept.Verified, passed.commits)
		maps.Copy(kept.Evidence, passed.evidence)
		notes.Execution = kept
	})
}

// snapshot is the entry that keeps an execution in its session, as other programs on the
// same session read it (spec: execution 5.2).
func (r *running) snapshot(cp store.Checkpoint) Action {
	type check struct {
		ID   string `json:"id"`
		Text string `json:"text"`
		Done bool   `json:"done"`
	}
	type item struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	data := struct {
		PlanPath   string             `json:"planPath"`
		Items      []check            `json:"items"`
		StartedAt  string             `json:"startedAt"`
		Usage      map[string]int     `json:"usage"`
		ImplItems  []item             `json:"implItems"`
		ImplStatus map[string]string  `json:"implStatus"`
		CurrentI   string             `json:"currentI,omitempty"`
		GoalWait   execution.GoalWait `json:"goalWait"`
	}{
		PlanPath: r.planPath, StartedAt: r.approval.ApprovedAt, GoalWait: r.wait, Items: []check{}, ImplItems: []item{},
	}
	usage := r.usage(cp)
	data.Usage = map[string]int{"inToks": usage.InToks, "outToks": usage.OutToks}
	state := r.state(cp)
	for _, c := range r.plan.Checks {
		data.Items = append(data.Items, check{c.ID, c.Text, state.IsDone(c.ID)})
	}
	for _, i := range r.plan.Items {
		data.ImplItems = append(data.ImplItems, item{i.ID, i.Text})
	}
	data.ImplStatus, data.CurrentI = state.Implementation(), state.Current()
	return entry(executionEntry, data)
}

// The entries of a session that tell whether it carries a plan out; the names are
// pi-plans' (spec: execution 5.2, 5.3).
const (
	executionEntry        = "pi-plans-exec" // a snapshot
	executionClearedEntry = "pi-plans-exec-cleared"
)

// entry keeps data in a session.
func entry(customType string, data any) Action {
	encoded, err := json.Marshal(data)
	if err != nil { // a defect: entries are made of strings and numbers
		panic(fmt.Errorf("encode the entry %s: %w", customType, err))
	}
	return Action{Kind: ActionEntry, CustomType: customType, Data: encoded}
}

// drain is the snapshot that the session does not have yet. Entries are written only
// when the agent is at rest or about to begin, never in its stream.
func (r *running) drain(cp store.Checkpoint) []Action {
	if !r.flush {
		return nil
	}
	r.flush, r.foreign = false, false
	return []Action{r.snapshot(cp)}
}
