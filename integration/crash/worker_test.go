package crash_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// worker does one thing after the other on one run. Two share a run: one moves the
// workflow on, the other does everything that may happen beside it.
type worker struct {
	*driver
	random   *rand.Rand
	run      store.RunDir
	count    int
	handOver chan store.RunDir // of the workflow: tells the one beside it of the run
}

// token is unique in the workspace.
func (w *worker) token(what string) string {
	w.count++
	return fmt.Sprintf("%s-%d-%x-%d", what, os.Getpid(), w.random.Uint32(), w.count)
}

// checked reports an error. It is true when the call was acknowledged.
func (w *worker) checked(what string, err error) bool {
	var state *store.StateError
	switch {
	case err == nil:
		return true
	case errors.As(err, &state):
		w.write(note{Kind: refused, Run: w.run.ID, Text: what + ": " + err.Error()})
	default:
		w.faultf("%s of run %s: %v", what, w.run.ID, err)
	}
	return false
}

// beside works until the process is killed, on the run that the workflow names.
func (w *worker) beside(runs <-chan store.RunDir) {
	w.run = <-runs
	for {
		select {
		case w.run = <-runs:
		default:
		}
		switch n := w.random.IntN(10); { // what takes longest is most often at work
		case n < 2:
			w.question(false)
		case n < 4:
			w.decide()
		default:
			w.round()
		}
	}
}

func (w *worker) decide() {
	id := w.token("decision")
	_, err := w.system.Plans(context.Background(), w.session(), supervisor.PlansAction{
		Action: "record-decision", RunID: w.run.ID,
		Decision: &supervisor.DecisionParams{Question: id, Options: []string{"a", "b"}, Answer: "a", AnswerSource: "user"},
	})
	if w.checked("record a decision", err) {
		w.write(note{Kind: decided, Run: w.run.ID, ID: id})
	}
}

// question answers or drops what is pending, else asks something.
func (w *worker) question(only bool) {
	cp, err := w.run.LoadCheckpoint()
	if !w.checked("read the checkpoint", err) {
		return
	}
	ctx := context.Background()
	switch pending := cp.PendingQuestion; {
	case pending == nil && only:
	case pending == nil:
		id := w.token("question")
		err := w.system.AskQuestion(ctx, w.session(), w.run.ID, store.PendingQuestion{QuestionID: id, Question: "Which " + id + "?", Options: []string{"a", "b"}})
		if w.checked("ask", err) {
			w.write(note{Kind: asked, Run: w.run.ID, ID: id})
		}
	case !only && w.random.IntN(5) == 0:
		w.write(note{Kind: dropping, Run: w.run.ID, ID: pending.QuestionID})
		if w.checked("drop a question", w.system.DropQuestion(ctx, w.session(), w.run.ID, pending.QuestionID)) {
			w.write(note{Kind: dropped, Run: w.run.ID, ID: pending.QuestionID})
		}
	default:
		given := store.AnsweredQuestion{QuestionID: pending.QuestionID, Answer: w.token("answer"), Source: store.AnswerUser}
		w.write(note{Kind: answering, Run: w.run.ID, ID: given.QuestionID, Text: given.Answer})
		got, err := w.system.AnswerQuestion(ctx, w.session(), w.run.ID, given)
		if w.checked("answer", err) {
			w.write(note{Kind: answered, Run: w.run.ID, ID: got.QuestionID, Text: got.Answer})
		}
	}
}

// round starts a review of the plan, or goes on with one that was broken off.
func (w *worker) round() {
	how := []conduct{calm, calm, slow, bad, family, family}[w.random.IntN(6)]
	rounds, err := brokenOff(w.run)
	if !w.checked("read the rounds", err) {
		return
	}
	for _, round := range rounds {
		if round.Target == store.TargetPlan && w.random.IntN(2) == 0 {
			w.resume(round, how)
			return
		}
	}
	cp, err := w.run.LoadCheckpoint()
	if !w.checked("read the checkpoint", err) {
		return
	}
	if cp.Phase != store.PhasePlanning {
		w.decide()
		return
	}
	role := []actors.Role{actors.Reviewer, actors.Criticizer}[w.random.IntN(2)]
	lanes := 1
	if role == actors.Reviewer {
		lanes += w.random.IntN(3)
	}
	result, ok := w.refine(how, supervisor.RefineRequest{PlanPath: cp.Plan.Path, Role: role, Reviewers: lanes})
	if ok && result.Complete() > 0 && w.random.IntN(2) == 0 {
		w.consolidate(result.RoundID)
	}
}

func (w *worker) consolidate(round string) bool {
	_, err := w.record(supervisor.CheckpointParams{Transition: "review-consolidated", RoundID: round})
	if !w.checked("consolidate a round", err) {
		return false
	}
	w.write(note{Kind: consolidate, Run: w.run.ID, ID: round})
	return true
}

// resume goes on with a round that a killed driver has left.
func (w *worker) resume(round store.RoundRecord, how conduct) {
	w.refine(how, supervisor.RefineRequest{PlanPath: round.PlanPath, ResumeRoundID: round.RoundID})
}

// sweep has the system start a round, if only one without lanes to run: then it looks
// for what others have left.
func (w *worker) sweep() {
	records, err := w.run.RoundDir().Rounds()
	if !w.checked("read the rounds", err) {
		return
	}
	cp, err := w.run.LoadCheckpoint()
	if !w.checked("read the checkpoint", err) {
		return
	}
	switch n := len(cp.ReviewRounds); {
	case n > 0:
		last := cp.ReviewRounds[n-1].RoundID
		i := slices.IndexFunc(records, func(r store.RoundRecord) bool { return r.RoundID == last })
		w.resume(records[i], calm)
	case cp.Phase == store.PhasePlanning:
		w.refine(calm, supervisor.RefineRequest{PlanPath: cp.Plan.Path, Reviewers: 1})
	}
}

func (w *worker) refine(how conduct, req supervisor.RefineRequest) (supervisor.RoundResult, bool) {
	switches, endless, err := w.prints.switches(how, report(w.token("answer")))
	if !w.checked("prepare a child", err) {
		return supervisor.RoundResult{}, false
	}
	ctx := context.Background()
	if endless {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(20+w.random.IntN(180))*time.Millisecond)
		defer cancel()
	}
	req.Session, req.RunID, req.Model = w.session(switches...), w.run.ID, supervisor.ModelAnswer{Answered: true}
	req.Limits = lanes.Limits{Attempts: 1, Drain: time.Second}
	round := ""
	result, err := w.system.Refine(ctx, req, func(event any) {
		switch m := event.(type) {
		case supervisor.RoundStarted:
			round = m.RoundID
			started := note{Kind: begun, Run: m.RunID, ID: m.RoundID}
			for _, lane := range m.Lanes {
				started.Lanes = append(started.Lanes, lane.Spec.ID)
			}
			w.write(started)
		case supervisor.LaneEnded:
			digest := sha256.Sum256([]byte(m.Lane.Output))
			w.write(note{
				Kind: laneEnded, Run: w.run.ID, ID: round, Lane: m.Lane.LaneID,
				Status: string(m.Lane.Status), Text: hex.EncodeToString(digest[:]),
			})
		}
	})
	var cancelled *supervisor.CancelledError
	if errors.As(err, &cancelled) && endless {
		return result, false // before it began
	}
	if !w.checked("refine", err) {
		return result, false
	}
	w.write(note{Kind: roundEnded, Run: w.run.ID, ID: result.RoundID})
	return result, true
}

// record crosses the boundary that a model may cross.
func (w *worker) record(p supervisor.CheckpointParams) (store.Checkpoint, error) {
	value, err := w.system.Plans(context.Background(), w.session(), supervisor.PlansAction{Action: "record-checkpoint", RunID: w.run.ID, Checkpoint: &p})
	cp, _ := value.(store.Checkpoint)
	return cp, err
}

// workflow takes one run after the other through its phases.
func (w *worker) workflow() {
	for {
		if w.run == (store.RunDir{}) && !w.start() {
			return
		}
		w.handOver <- w.run
		for w.run != (store.RunDir{}) {
			cp, err := w.run.LoadCheckpoint()
			if !w.checked("read the checkpoint", err) {
				return
			}
			w.step(cp)
		}
	}
}

// start starts a run with a plan.
func (w *worker) start() bool {
	value, err := w.system.Plans(context.Background(), w.session(), supervisor.PlansAction{
		Action: "start-run", Topic: w.token("topic"), Skill: "plan-small", RequestText: "do it",
	})
	if !w.checked("start a run", err) {
		return false
	}
	started, _ := value.(supervisor.StartRunResult)
	root, err := store.Find(context.Background(), w.Workdir)
	if !w.checked("find the state", err) {
		return false
	}
	if w.run, err = root.Run(started.Run.RunID); !w.checked("find the run", err) {
		return false
	}
	w.write(note{Kind: runStarted, Run: w.run.ID, Flow: &flow{Phase: store.PhasePlanning}})
	return w.writePlan(flow{Phase: store.PhasePlanning})
}

// step moves the workflow one step on from where it stands.
func (w *worker) step(cp store.Checkpoint) {
	now := flowOf(cp)
	n := w.random.IntN(100)
	switch {
	case now.Phase == store.PhasePlanning && n < 60:
		w.writePlan(now)
	case now.Phase == store.PhasePlanning:
		next := flow{Phase: store.PhaseExecuting, Plan: now.Plan, Approved: true}
		w.tried("approve", next, func(ctx context.Context) (store.Checkpoint, error) {
			return w.system.ApproveExecution(ctx, w.session(), w.run.ID, "")
		})
	case now.Phase == store.PhaseExecuting && n < 70:
		next := now
		next.Done, next.Tokens = now.Done+1, now.Tokens+1
		progress := store.Progress{DoneVCIDs: cp.Execution.DoneVCIDs, Usage: store.TokenUsage{InToks: 1}}
		progress.DoneVCIDs = append(slices.Clone(progress.DoneVCIDs), fmt.Sprintf("VC-%03d", next.Done))
		w.tried("progress", next, func(ctx context.Context) (store.Checkpoint, error) {
			return w.system.RecordProgress(ctx, w.session(), w.run.ID, progress)
		})
	case now.Phase == store.PhaseExecuting && n < 85:
		next := now
		next.Phase, next.Approved, next.Done = store.PhasePlanning, false, 0
		w.tried("return to planning", next, func(ctx context.Context) (store.Checkpoint, error) {
			return w.system.ReturnToPlanning(ctx, w.session(), w.run.ID)
		})
	case now.Phase == store.PhaseExecuting:
		next := now
		next.Phase = store.PhaseImplementationReview
		w.tried("complete the execution", next, func(ctx context.Context) (store.Checkpoint, error) {
			return w.system.CompleteExecution(ctx, w.session(), w.run.ID)
		})
	case !now.Condition:
		next := now
		next.Condition = true
		w.transition(next, supervisor.CheckpointParams{Transition: "implementation-review-configured", TerminationCondition: "1 round"})
	case now.Reviewed == 0:
		w.reviewImplementation(cp)
	default:
		next := now
		next.Phase = store.PhaseCompleted
		if w.transition(next, supervisor.CheckpointParams{Transition: "completed", Evidence: "all of it"}) {
			w.run = store.RunDir{}
		}
	}
}

// tried makes a step that leads to next, and tells before and after.
func (w *worker) tried(what string, next flow, step func(context.Context) (store.Checkpoint, error)) bool {
	w.write(note{Kind: stepping, Run: w.run.ID, Text: what, Flow: &next})
	cp, err := step(context.Background())
	if err != nil { // this worker alone moves the workflow, so nothing may refuse it
		w.faultf("%s in run %s: %v", what, w.run.ID, err)
		return false
	}
	got := flowOf(cp)
	w.write(note{Kind: stepped, Run: w.run.ID, Text: what, Flow: &got, Revision: cp.Revision})
	return true
}

func (w *worker) transition(next flow, p supervisor.CheckpointParams) bool {
	return w.tried(p.Transition, next, func(context.Context) (store.Checkpoint, error) { return w.record(p) })
}

// writePlan writes the next version of the plan and records it.
func (w *worker) writePlan(now flow) bool {
	next := now
	next.Plan++
	path := filepath.Join(w.Workdir, w.run.ID, fmt.Sprintf("PLAN_v%d.md", next.Plan))
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("# The plan\n\n"+w.token("text")+"\n"), 0o600))
	return w.checked("write a plan", err) && w.transition(next, supervisor.CheckpointParams{Transition: "plan-written", PlanPath: path})
}

// reviewImplementation makes one round of the implementation review, or goes on
// where a killed driver has left it.
func (w *worker) reviewImplementation(cp store.Checkpoint) {
	current := cp.ImplementationReview.CurrentRoundID
	if current == "" {
		w.refine(calm, supervisor.RefineRequest{PlanPath: cp.Plan.Path, Target: actors.TargetImplementation, Reviewers: 1})
		return // the next step finds the round
	}
	round := cp.Round(current)
	switch {
	case round.Lanes[0].Status != store.LaneComplete:
		record, err := w.run.RoundDir().LoadRound(current)
		if w.checked("read the record of a round", err) {
			w.resume(record, calm)
		}
	case !round.Consolidated:
		w.consolidate(current)
	default:
		next := flowOf(cp)
		next.Reviewed++
		w.transition(next, supervisor.CheckpointParams{Transition: "implementation-round-finished"})
	}
}
