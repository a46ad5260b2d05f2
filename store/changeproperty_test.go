package store_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/store"
)

// exportedReducers are the functions of the package that return a Change.
func exportedReducers(t *testing.T) []string {
	t.Helper()
	sources, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, source := range sources {
		if !strings.HasSuffix(source.Name(), ".go") || strings.HasSuffix(source.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || !function.Name.IsExported() || function.Recv != nil || function.Type.Results == nil {
				continue
			}
			result, ok := function.Type.Results.List[0].Type.(*ast.Ident)
			if ok && result.Name == "Change" && function.Name.Name != "Isolate" { // which is none by itself
				names = append(names, function.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// anyStep draws a reducer, those that lead further more often, and its arguments.
func anyStep(t *rapid.T) step {
	names := slices.Concat(slices.Sorted(maps.Keys(reducers)), []string{
		"PlanWritten", "HandoffOffered", "ExecutionApproved", "ExecutionCompleted", "ReviewConfigured",
		"RoundStartedOrResumed", "LaneCompleted", "LaneCompleted", "LaneEndedWithoutResult", "ReviewConsolidated", "ReviewConsolidated", "ReviewRoundFinished", "ReviewRoundFinished",
	})
	return reducers[rapid.SampledFrom(names).Draw(t, "reducer")](t)
}

// anyStart draws a checkpoint to start from: a new one, one that is being executed
// although nothing says what, one of a later writer, or one deep in the review of the
// implementation, where few steps in a row lead by chance.
func anyStart(t *rapid.T) string {
	fresh, err := json.Marshal(planning())
	if err != nil {
		t.Fatal(err)
	}
	switch rapid.IntRange(0, 4).Draw(t, "start") {
	case 0:
		return strings.Replace(string(fresh), `"phase":"planning"`, `"phase":"executing"`, 1)
	case 1:
		return strings.NewReplacer(
			`"plan":null`, `"plan":{"path":"/w/PLAN_v1.md","version":1,"sha256":"`+sha+`","stream":"overall"}`,
			`"phase":"planning"`, `"phase":"executing"`, `"nextAction":"continue-planning"`, `"nextAction":"accept-overall"`,
			`"reviewRounds":[]`, `"reviewRounds":[],"implementationReview":{"completedRounds":1,"reviewerCount":2},`+
				`"execution":{"approval":null,"doneVcIds":["VC-1"],"implStatus":{},"usage":{"inToks":1,"outToks":2},"reverifyAll":false,`+
				`"tasks":{"Task-1":{"status":"complete"}}},"huge":{"currentIndex":0},"pendingQuestions":[]`,
		).Replace(string(fresh))
	case 2:
		second := rapid.SampledFrom([]string{"running", "failed"}).Draw(t, "second lane")
		return strings.NewReplacer(
			`"plan":null`, `"plan":{"path":"/w/PLAN_v1.md","version":1,"sha256":"`+sha+`"}`,
			`"phase":"planning"`, `"phase":"implementation-review"`, `"nextAction":"continue-planning"`, `"nextAction":"run-review"`,
			`"reviewRounds":[]`, `"reviewRounds":[{"roundId":"a","role":"reviewer","target":"implementation","reviewers":2,`+
				`"lanes":[{"laneId":"a","status":"complete","resultFile":"x.md"},{"laneId":"b","status":"`+second+`"}],`+
				`"consolidated":false,"startedAt":"2026-08-25T13:00:00Z"}],`+
				`"implementationReview":{"terminationCondition":"1","completedRounds":0,"currentRoundId":"a"}`,
		).Replace(string(fresh))
	default:
		return string(fresh)
	}
}

func outcomeOf(t *rapid.T, err error) outcome {
	var state *store.StateError
	var invalid *store.InvalidError
	switch {
	case err == nil:
		return done
	case errors.Is(err, store.ErrNoChange):
		return unchanged
	case errors.As(err, &state):
		return refusal
	case errors.As(err, &invalid):
		return breaks
	}
	t.Fatalf("unexpected error %v", err)
	return ""
}

// copied is a copy of a view that a step may change.
func copied(t *rapid.T, v view) (c view) {
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// predicted is what the model says of a step.
func predicted(t *rapid.T, v view, s step) (view, outcome) {
	trial := copied(t, v)
	if what := s.model(&trial); what != done {
		return v, what
	}
	return trial, done
}

func TestEveryStepDoesWhatTheModelSaysWhateverCameBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var cp store.Checkpoint
		if err := json.Unmarshal([]byte(anyStart(t)), &cp); err != nil {
			t.Fatal(err)
		}
		model := viewOf(t, cp)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			s := anyStep(t)
			want, what := predicted(t, model, s)
			before := cp.Clone()
			var got error
			err := store.Isolate(s.change, func(err error) { got = err })(&cp)
			if outcomeOf(t, got) != what || (err == nil) != (what == done) {
				t.Fatalf("got %v, the model says: %s", got, what)
			}
			if what == refusal || what == unchanged { // not only behind Isolate
				alone := before.Clone()
				_ = s.change(&alone)
				if diff := cmp.Diff(before, alone); diff != "" {
					t.Fatalf("%v changed %s", got, diff)
				}
			}
			model = want
			if diff := cmp.Diff(model, viewOf(t, cp)); diff != "" {
				t.Fatalf("after %s: %s", what, diff)
			}
			checkLegal(t, before, cp)
		}
		checkEncoding(t, cp)
	})
}

// A group is what the checkpoint actor writes at once: the changes of several askers,
// of which some fail.
func TestAGroupOfStepsIsWrittenAsTheModelSaysAndLosesNone(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	rapid.Check(t, func(t *rapid.T) {
		first := strings.Replace(anyStart(t), "20260825T130000Z-t", dir.ID, 1)
		if err := os.WriteFile(checkpointFile(dir), []byte(first), 0o600); err != nil {
			t.Fatal(err)
		}
		cp, err := dir.LoadCheckpoint()
		if err != nil {
			t.Fatal(err)
		}
		model := viewOf(t, cp)
		for range rapid.IntRange(1, 6).Draw(t, "groups") {
			cp, model = writeGroup(t, dir, cp, model)
		}
	})
}

// writeGroup writes a group of steps, each of them isolated but perhaps for one, and
// checks what came of it. One that is not isolated and fails fails them all.
func writeGroup(t *rapid.T, dir store.RunDir, before store.Checkpoint, model view) (store.Checkpoint, view) {
	bytesBefore, err := os.ReadFile(checkpointFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	size := rapid.IntRange(1, 6).Draw(t, "size")
	bare := rapid.IntRange(0, 3*size).Draw(t, "not isolated")
	want, expected, reports := model, make([]outcome, size), make([]error, size)
	var changes []store.Change
	changed, fails := false, false
	for i := range size {
		s := anyStep(t)
		next, what := predicted(t, want, s)
		if i == bare && (what == refusal || what == breaks) {
			fails = true
		}
		want, expected[i] = next, what
		changed = changed || what == done
		change := s.change
		if i != bare {
			change = store.Isolate(change, func(err error) { reports[i] = err })
		}
		changes = append(changes, change)
		if fails {
			break
		}
	}
	after, err := dir.MutateCheckpoint(nil, nil, pinned.Add(time.Minute), changes...)
	if fails {
		if err == nil {
			t.Fatal("a change that is not isolated failed and the others were written")
		}
		after, want, changed = before, model, false
	} else if err != nil {
		t.Fatal(err)
	}
	for i, report := range reports[:len(changes)] {
		if i != bare && outcomeOf(t, report) != expected[i] {
			t.Fatalf("change %d reports %v, the model says: %s", i, report, expected[i])
		}
	}
	revision := before.Revision
	if changed {
		revision++
	}
	onDisk, err := dir.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	if onDisk.Revision != revision || after.Revision != revision {
		t.Fatalf("revision %d after %d, returned %d; changed: %v", onDisk.Revision, before.Revision, after.Revision, changed)
	}
	if diff := cmp.Diff(viewOf(t, after), viewOf(t, onDisk)); diff != "" {
		t.Fatalf("what is on disk differs from what was returned: %s", diff)
	}
	if diff := cmp.Diff(want, viewOf(t, onDisk)); diff != "" {
		t.Fatalf("after %v: %s", expected, diff)
	}
	if bytesAfter, err := os.ReadFile(checkpointFile(dir)); err != nil || !changed && string(bytesAfter) != string(bytesBefore) {
		t.Fatalf("a group that changes nothing was written: %v", err)
	}
	return onDisk, want
}
func checkLegal(t *rapid.T, before, after store.Checkpoint) {
	if err := after.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(after.AnsweredQuestions) < len(before.AnsweredQuestions) || len(after.ReviewRounds) < len(before.ReviewRounds) {
		t.Fatal("history was lost")
	}
	if before.Phase == store.PhaseCompleted && after.Phase != store.PhaseCompleted {
		t.Fatal("a completed workflow went on")
	}
	if pending := after.PendingQuestion; pending != nil && after.Answered(pending.QuestionID) {
		t.Fatal("a question is pending and answered")
	}
	for _, round := range after.ReviewRounds {
		complete, pending := 0, 0
		for _, lane := range round.Lanes {
			if lane.Status == store.LaneComplete {
				complete++
				if lane.ResultFile == "" {
					t.Fatal("a complete lane without a result")
				}
			}
			if lane.Status == store.LanePending {
				pending++
			}
		}
		if round.Consolidated && (pending > 0 || round.Role == "reviewer" && complete == 0) {
			t.Fatalf("consolidated too early: %+v", round)
		}
	}
	nothing := before.Phase == store.PhaseExecuting && before.Execution == nil // so it was in the file
	if after.Phase == store.PhaseExecuting && after.Execution == nil && !nothing {
		t.Fatal("executing nothing")
	}
	if e := after.Execution; after.Phase == store.PhaseExecuting && e != nil && e.Approval != nil && after.Plan.SHA256 != e.Approval.Plan.SHA256 {
		t.Fatal("executing another plan than the approved one")
	}
}

// checkEncoding checks that what is written reads as the same.
func checkEncoding(t *rapid.T, cp store.Checkpoint) {
	encoded, err := json.Marshal(cp)
	if err != nil {
		t.Fatal(err)
	}
	var decoded store.Checkpoint
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(encoded), string(again)); diff != "" {
		t.Fatal(diff)
	}
}
