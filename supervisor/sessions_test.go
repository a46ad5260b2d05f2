package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// as is the session with this id, in the workspace of the bundle.
func (b *bundle) as(id string) supervisor.Session {
	session := b.session
	session.ID = id
	return session
}

func decide(runID string) supervisor.PlansAction {
	return supervisor.PlansAction{
		Action: "record-decision", RunID: runID,
		Decision: &supervisor.DecisionParams{Question: "q", Options: []string{"a"}, Answer: "a", AnswerSource: "user"},
	}
}

// To every other process the sessions of one are the same owner, so the run has to
// tell them apart.
func TestOfTwoSessionsOfOneProcessTheSecondIsRefusedWhileTheFirstHoldsTheRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := newWatcher()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n")
	req.Session = b.as("first")
	done := make(chan error, 1)
	go func() {
		_, err := b.system.Refine(ctx, req, w.watch)
		done <- err
	}()
	<-w.working
	runID := w.started.RunID

	again := req
	again.RunID, again.PlanPath = runID, "OTHER.md"
	b.plan("OTHER.md", "# A plan\n")
	for name, ask := range map[string]func(supervisor.Session) error{
		"a change": func(s supervisor.Session) error {
			_, err := b.system.Plans(context.Background(), s, decide(runID))
			return err
		},
		"a round": func(s supervisor.Session) error {
			again := again
			again.Session = s
			_, err := b.system.Refine(context.Background(), again, nil)
			return err
		},
	} {
		for _, session := range []string{"second", ""} {
			var owned *store.OwnedError
			err := ask(b.as(session))
			if !errors.As(err, &owned) || owned.Reason != store.OwnedBySession || owned.SessionID != "first" || owned.PID != os.Getpid() {
				t.Errorf("%s of session %q: got %v, want it refused for session first", name, session, err)
			}
		}
		if err := ask(b.as("first")); err != nil {
			t.Errorf("%s of the session that holds the run: %v", name, err)
		}
	}
	if decisions, err := b.run(runID).Decisions(); err != nil || len(decisions) != 1 {
		t.Errorf("%d decisions, %v; want that of the first session", len(decisions), err)
	}
	if record, state, err := b.run(runID).Owner(); err != nil || state != store.OwnerAlive || record.Session() != "first" {
		t.Errorf("owner %+v, %s, %v", record, state, err)
	}

	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.refusesSecond(runID, "after the work of the first session")
	if err := b.system.EndSession(context.Background(), "first"); err != nil {
		t.Error(err)
	}
	if _, err := b.system.Plans(context.Background(), b.as("second"), decide(runID)); err != nil {
		t.Errorf("after the first session has ended: %v", err)
	}
}

// refusesSecond checks that a session named second is told that first has the run.
func (b *bundle) refusesSecond(runID, when string) {
	b.t.Helper()
	var owned *store.OwnedError
	_, err := b.system.Plans(context.Background(), b.as("second"), decide(runID))
	if !errors.As(err, &owned) || owned.Reason != store.OwnedBySession || owned.SessionID != "first" {
		b.t.Errorf("%s: got %v, want it refused for session first", when, err)
	}
}

// started is a run that a session has started and holds.
func (b *bundle) started(session string) string {
	b.t.Helper()
	value, err := b.system.Plans(context.Background(), b.as(session), supervisor.PlansAction{
		Action: "start-run", Topic: "t", Skill: "s", RequestText: "r",
	})
	result, ok := value.(supervisor.StartRunResult)
	if err != nil || !ok {
		b.t.Fatal(value, err)
	}
	return result.Run.RunID
}

func (b *bundle) owner(runID string) string {
	b.t.Helper()
	record, state, err := b.run(runID).Owner()
	if err != nil {
		b.t.Fatal(err)
	}
	if state != store.OwnerAlive {
		return string(state)
	}
	return record.Session()
}

// A session that starts a run has it until the run is over, and no other can work on
// a plan that is being made (spec: ownership 3.4, no. 1).
func TestASessionHoldsTheRunItStartsUntilItIsOver(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *bundle, runID string) error{
		"abandoned": func(b *bundle, runID string) error {
			_, err := b.system.AbandonRun(context.Background(), b.as("first"), runID)
			return err
		},
		"the session ends": func(b *bundle, _ string) error { return b.system.EndSession(context.Background(), "first") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			runID := b.started("first")
			if owner := b.owner(runID); owner != "first" {
				t.Errorf("started and owned by %s", owner)
			}
			b.refusesSecond(runID, "started")
			if err := b.setStatus(runID, "accepted"); err != nil { // which is no end, as the next is not
				t.Fatal(err)
			}
			b.refusesSecond(runID, "accepted")
			if _, err := b.system.StopRun(context.Background(), b.as("first"), runID, "lunch"); err != nil {
				t.Fatal(err)
			}
			b.refusesSecond(runID, "stopped")
			if err := end(b, runID); err != nil {
				t.Fatal(err)
			}
			if owner := b.owner(runID); owner != string(store.OwnerNone) {
				t.Errorf("over and owned by %s", owner)
			}
			if _, err := b.system.Plans(context.Background(), b.as("second"), decide(runID)); err != nil {
				t.Errorf("over: %v", err)
			}
		})
	}
}

func (b *bundle) setStatus(runID, status string) error {
	_, err := b.system.Plans(context.Background(), b.as("first"), supervisor.PlansAction{Action: "set-status", RunID: runID, Status: status})
	return err
}

func TestACommandLineHoldsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	runID := b.started("")
	if owner := b.owner(runID); owner != string(store.OwnerNone) {
		t.Errorf("owned by %s", owner)
	}
}

func TestClosingTheSystemFreesWhatItsSessionsHold(t *testing.T) {
	t.Parallel()
	system, err := supervisor.New(supervisor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, system: system, session: newSession(t)}
	first, second := b.started("first"), b.started("second")
	if err := system.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for _, runID := range []string{first, second} {
		if owner := b.owner(runID); owner != string(store.OwnerNone) {
			t.Errorf("%s is owned by %s", runID, owner)
		}
	}
}

// A session may end while it has lanes at work: they go on to their end, and the run
// is free when EndSession returns.
func TestASessionThatEndsWithARoundAtWorkIsWaitedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := newWatcher()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := b.plan("PLAN.md", "# A plan\nSTUB-HOLD\n")
	req.Session = b.as("first")
	done, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := b.system.Refine(ctx, req, w.watch)
		done <- err
	}()
	<-w.working
	go func() { ended <- b.system.EndSession(context.Background(), "first") }()
	b.refusesSecond(w.started.RunID, "at work")
	cancel()
	if err := errors.Join(<-done, <-ended); err != nil {
		t.Error(err)
	}
	if owner := b.owner(w.started.RunID); owner != string(store.OwnerNone) {
		t.Errorf("owned by %s", owner)
	}
}

func TestARunThatIsTakenFromAnIdleSessionIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	runID := b.started("first")
	if _, err := b.run(runID).ReleaseOwner(context.Background(), true, time.Now()); err != nil {
		t.Fatal(err)
	}
	var lost *store.LostOwnerError
	if _, err := b.system.Plans(context.Background(), b.as("first"), decide(runID)); !errors.As(err, &lost) {
		t.Errorf("the next write of the session: got %v, want a LostOwnerError", err)
	}
	if _, err := b.system.Plans(context.Background(), b.as("second"), decide(runID)); err != nil {
		t.Errorf("another session: %v", err)
	}
}

// Whichever of many sessions is first, a refused one has left no trace.
func TestOfManySessionsThatAskAtOnceEachIsEitherServedWholeOrRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.system.Refine(context.Background(), b.plan("PLAN.md", "# A plan\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	const sessions = 12
	answers := make(chan error, sessions)
	for i := range sessions {
		go func() {
			_, err := b.system.Plans(context.Background(), b.as(string(rune('a'+i))), decide(first.RunID))
			answers <- err
		}()
	}
	served := 0
	for range sessions {
		var owned *store.OwnedError
		switch err := <-answers; {
		case err == nil:
			served++
		case !errors.As(err, &owned) || owned.Reason != store.OwnedBySession:
			t.Error(err)
		}
	}
	decisions, err := b.run(first.RunID).Decisions()
	if err != nil || len(decisions) != served || served == 0 {
		t.Errorf("%d sessions were served, %d decisions are on record, %v", served, len(decisions), err)
	}
}

func TestSessionsWorkOnRunsOfTheirOwnSideBySide(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done := make(chan supervisor.RoundResult, 2)
	var watchers [2]*watcher
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i, id := range []string{"first", "second"} {
		watchers[i] = newWatcher()
		req := b.plan(id+".md", "# The plan of "+id+"\nSTUB-HOLD\n")
		req.Session = b.as(id)
		go func() {
			result, err := b.system.Refine(ctx, req, watchers[i].watch)
			if err != nil {
				t.Error(err)
			}
			done <- result
		}()
	}
	for _, w := range watchers {
		<-w.working // both at once
	}
	cancel()
	seen := map[string]bool{}
	for range watchers {
		result := <-done
		seen[result.RunID] = true
		for id, status := range statuses(result) {
			if status != lanes.Cancelled {
				t.Errorf("lane %s is %s", id, status)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("the sessions worked on %v", seen)
	}
}

// startRunAs starts a run as a session and returns its id.
func (b *bundle) startRunAs(session supervisor.Session) string {
	b.t.Helper()
	return (&bundle{t: b.t, system: b.system, session: session}).startRun().ID
}

// meant is the run that a session means when it names none, also when another has it.
func (b *bundle) meant(session supervisor.Session) string {
	b.t.Helper()
	value, err := b.system.Plans(context.Background(), session, supervisor.PlansAction{
		Action: "record-checkpoint", Checkpoint: &supervisor.CheckpointParams{Transition: "plan-written", PlanPath: "PLAN.md"},
	})
	var owned *store.OwnedError
	if errors.As(err, &owned) {
		return owned.RunID
	}
	if err != nil {
		b.t.Fatal(err)
	}
	cp, ok := value.(store.Checkpoint)
	if !ok {
		b.t.Fatalf("record-checkpoint gave %T", value)
	}
	return cp.RunID
}

func TestARunThatASessionStartedBeatsThePointerOfTheWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plan("PLAN.md", "# A plan\n")
	first := b.startRunAs(b.as("first"))
	second := b.startRunAs(b.as("second")) // active.json points here now
	for session, want := range map[string]string{"first": first, "second": second, "unbound": second, "": second} {
		if got := b.meant(b.as(session)); got != want {
			t.Errorf("session %q means %s, want %s", session, got, want)
		}
	}
	result, err := b.system.AnalyzeRefs(context.Background(), supervisor.AnalyzeRequest{
		Session: b.as("first"), Model: supervisor.ModelAnswer{Answered: true}, Refs: []actors.Reference{{ID: "a", LocalPath: "."}},
	}, nil)
	if err != nil || result.RunID != first {
		t.Errorf("references went to %s, want %s; %v", result.RunID, first, err)
	}

	t.Log("a later start of the same session counts")
	third := b.startRunAs(b.as("first"))
	if got := b.meant(b.as("first")); got != third {
		t.Errorf("session first means %s, want %s", got, third)
	}

	t.Log("a run that is gone is no session's any more")
	if err := os.RemoveAll(b.run(third).Dir); err != nil {
		t.Fatal(err)
	}
	root := b.run(first).Root.Dir
	pointer := fmt.Sprintf(`{"run_id":%q,"run_dir":"","artifact_dir":""}`, second)
	if err := os.WriteFile(filepath.Join(root, "active.json"), []byte(pointer), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.meant(b.as("first")); got != second {
		t.Errorf("session first means %s, want %s", got, second)
	}
}

// A command line is no session: the next one must not find its run by it.
func TestACommandLineAndASessionInAnotherWorkspaceAreNotBound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.plan("PLAN.md", "# A plan\n")
	b.startRunAs(b.as(""))
	later := b.startRunAs(b.as("s"))
	if got := b.meant(b.as("")); got != later {
		t.Errorf("the command line means %s, want %s", got, later)
	}
	elsewhere := &bundle{t: t, system: b.system, session: newSession(t)}
	elsewhere.plan("PLAN.md", "# A plan\n")
	here := elsewhere.startRunAs(elsewhere.as("other"))
	if got := elsewhere.meant(elsewhere.as("s")); got != here {
		t.Errorf("in another workspace session s means %s, want %s", got, here)
	}
	if got := b.meant(b.as("s")); got != later {
		t.Errorf("back in the first workspace it means %s, want %s", got, later)
	}
}

// A plan of its own that a review started belongs to the session, too.
func TestAReviewThatStartsARunBindsItsSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	req := b.plan("PLAN.md", "# A plan\n")
	req.Session = b.as("first")
	result, err := b.system.Refine(context.Background(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.startRunAs(b.as("second"))
	if got := b.meant(b.as("first")); got != result.RunID {
		t.Errorf("session first means %s, want %s", got, result.RunID)
	}
}
