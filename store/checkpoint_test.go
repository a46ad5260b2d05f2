package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func checkpointFile(dir store.RunDir) string { return filepath.Join(dir.Dir, "checkpoint.json") }

const sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

// fullCheckpoint has every key of the format.
const fullCheckpoint = `{
	"schema": 1,
	"runId": "20260825T130000Z-t",
	"revision": 7,
	"generation": 2,
	"updatedAt": "2026-08-25T13:00:00Z",
	"phase": "executing",
	"nextAction": "execute-items",
	"originWorkdir": "/w",
	"workdir": "/w",
	"worktreeRoot": "/w",
	"commonDir": "/w/.git",
	"plan": {
		"path": "/w/PLAN_v3.md",
		"version": 3,
		"sha256": "` + sha + `"
	},
	"pendingQuestion": {
		"questionId": "q1",
		"question": "",
		"options": [
			"<a>"
		],
		"purpose": "p",
		"allowOther": false,
		"autoComplete": true,
		"askedAt": "2026-08-25T13:00:00Z"
	},
	"answeredQuestions": [
		{
			"questionId": "q0",
			"answer": "",
			"source": "other",
			"answeredAt": "2026-08-25T13:00:00Z"
		}
	],
	"reviewRounds": [
		{
			"roundId": "r1",
			"role": "reviewer",
			"target": "plan",
			"planSha256": "` + sha + `",
			"focus": "f",
			"context": "",
			"reviewers": 2,
			"lanes": [
				{
					"laneId": "a",
					"lens": "correctness",
					"status": "complete",
					"resultFile": "reviews/r1__a.md",
					"startedAt": "2026-08-25T13:00:00Z",
					"completedAt": "2026-08-25T13:00:00Z"
				},
				{
					"laneId": "b",
					"status": "running"
				}
			],
			"consolidated": false,
			"dispositionArtifact": "d/x.md",
			"startedAt": "2026-08-25T13:00:00Z",
			"completedAt": "2026-08-25T13:00:00Z",
			"originWorktree": "/w"
		}
	],
	"implementationReview": {
		"terminationCondition": "1",
		"completedRounds": 0,
		"currentRoundId": "r1"
	},
	"execution": {
		"approval": {
			"plan": {
				"path": "/w/PLAN_v3.md",
				"version": 3,
				"sha256": "` + sha + `"
			},
			"worktree": "/w",
			"headAtApproval": null,
			"approvedAt": "2026-08-25T13:00:00Z"
		},
		"doneVcIds": [
			"VC-001"
		],
		"implStatus": {
			"I-2": "current",
			"I-1": "implemented"
		},
		"currentI": "I-2",
		"usage": {
			"inToks": 1,
			"outToks": 2
		},
		"pausedReason": "",
		"reverifyAll": false,
		"originWorktree": "/old"
	},
	"autoComplete": false,
	"owner": {
		"host": "h",
		"pid": 1,
		"sessionId": null,
		"processToken": "abc",
		"generation": 1,
		"acquiredAt": "2026-08-25T13:00:00Z"
	},
	"migration": {
		"fromWorktree": "/old",
		"migratedAt": "2026-08-25T13:00:00Z"
	}
}
`

func runWith(t testing.TB, checkpoint string) store.RunDir {
	t.Helper()
	dir := newRun(t)
	write(t, checkpointFile(dir), strings.Replace(checkpoint, "20260825T130000Z-t", dir.ID, 1))
	return dir
}

func TestANewCheckpointIsPlanningAtRevisionOne(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	if _, err := dir.LoadCheckpoint(); !errors.Is(err, store.ErrNoCheckpoint) {
		t.Errorf("got %v", err)
	}
	if _, err := dir.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered()); !errors.Is(err, store.ErrNoCheckpoint) {
		t.Errorf("got %v", err)
	}
	created, err := dir.CreateCheckpoint(pinned)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{
	"schema": 1,
	"runId": %q,
	"revision": 1,
	"generation": 1,
	"updatedAt": "2026-08-25T13:00:00Z",
	"phase": "planning",
	"nextAction": "continue-planning",
	"originWorkdir": %[2]q,
	"workdir": %[2]q,
	"worktreeRoot": %[2]q,
	"commonDir": %[3]q,
	"plan": null,
	"pendingQuestion": null,
	"answeredQuestions": [],
	"reviewRounds": []
}
`, dir.ID, dir.Root.Workdir, dir.Root.CommonDir)
	if diff := cmp.Diff(want, read(t, checkpointFile(dir))); diff != "" {
		t.Error(diff)
	}
	loaded, err := dir.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created, loaded); diff != "" {
		t.Error(diff)
	}
	if _, err := dir.CreateCheckpoint(pinned); !errors.Is(err, store.ErrCheckpointExists) || read(t, checkpointFile(dir)) != want {
		t.Errorf("got %v", err)
	}
}

func TestEveryKeyOfACheckpointSurvivesReadingAndWritingByteForByte(t *testing.T) {
	t.Parallel()
	later := strings.NewReplacer(
		`"migration": {`, `"huge": {"currentIndex": 0},`+"\n\t"+`"migration": {`,
		`"usage": {`, `"tasks": {"t": 1.0}, "usage": {`,
		`"version": 3,`, `"version": 3, "stream": "overall",`,
		`"nextAction": "execute-items"`, `"nextAction": "accept-overall"`,
		`"completedRounds": 0,`, `"completedRounds": 0, "reviewerCount": 2,`,
	).Replace(fullCheckpoint)
	for name, text := range map[string]string{"of the seed": fullCheckpoint, "of a newer writer": later} {
		dir := runWith(t, text)
		cp, err := dir.MutateCheckpoint(nil, nil, pinned.Add(time.Second), func(*store.Checkpoint) error { return nil })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var want, got any
		if err := json.Unmarshal([]byte(strings.NewReplacer("20260825T130000Z-t", dir.ID, `"revision": 7`, `"revision": 8`,
			`"updatedAt": "2026-08-25T13:00:00Z"`, `"updatedAt": "2026-08-25T13:00:01Z"`).Replace(text)), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(read(t, checkpointFile(dir))), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if name == "of the seed" {
			cp.Revision, cp.UpdatedAt = 7, "2026-08-25T13:00:00Z"
			compact, err := json.Marshal(cp)
			if err != nil {
				t.Fatal(err)
			}
			var wantCompact strings.Builder
			for line := range strings.Lines(strings.Replace(fullCheckpoint, "20260825T130000Z-t", dir.ID, 1)) {
				wantCompact.WriteString(strings.TrimSpace(strings.Replace(line, `": `, `":`, 1)))
			}
			if diff := cmp.Diff(wantCompact.String(), strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(compact))); diff != "" {
				t.Error(diff)
			}
		}
	}
}

func TestAKeyThatBreaksARuleIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ old, with, key string }{
		"newer schema":        {`"schema": 1`, `"schema": 99`, "schema has the unsupported version 99"},
		"no schema":           {`"schema": 1,`, ``, "schema is missing"},
		"another case":        {`"phase"`, `"Phase"`, "Phase is not a known key"},
		"extra key":           {`"phase"`, `"foo": 1, "phase"`, "foo is not a known key"},
		"extra key in a lane": {`"lens": "correctness"`, `"lens": "c", "why": 1`, "reviewRounds[0].lanes[0].why is not a known key"},
		"bogus phase":         {`"executing"`, `"flying"`, "phase is not one of"},
		"bogus action":        {`"execute-items"`, `"fly"`, "nextAction is not one of"},
		"done with an action": {`"executing"`, `"completed"`, "nextAction must be none"},
		"revision zero":       {`"revision": 7`, `"revision": 0`, "revision must be at least 1"},
		"revision too big":    {`"revision": 7`, `"revision": 9007199254740992`, "revision must be an integer"},
		"revision of halves":  {`"revision": 7`, `"revision": 7.5`, "revision must be an integer"},
		"revision as text":    {`"revision": 7`, `"revision": "7"`, "revision must be an integer"},
		"time":                {`"updatedAt": "2026-08-25T13:00:00Z"`, `"updatedAt": "2026-08-25T13:00:00.1Z"`, "updatedAt is not a UTC time"},
		"run id":              {`"runId": "2`, `"runId": "../2`, "runId is not a run id"},
		"null phase":          {`"executing"`, `null`, "phase must be a string"},
		"null execution":      {`"execution": {`, `"execution": null, "x": {`, "x is not a known key"},
		"number as directory": {`"workdir": "/w"`, `"workdir": 1`, "workdir must be a string"},
		"relative plan":       {`"path": "/w/PLAN_v3.md"`, `"path": "PLAN_v3.md"`, "plan.path must be absolute"},
		"version as text":     {`"version": 3`, `"version": "3"`, "plan.version must be an integer"},
		"short hash":          {`"sha256": "` + sha + `"`, `"sha256": "abc"`, "plan.sha256 is not a SHA-256"},
		"question id":         {`"questionId": "q1"`, `"questionId": "a..b"`, "pendingQuestion.questionId is not an id"},
		"no options": {`"options": [
			"<a>"
		],`, ``, "pendingQuestion.options is missing"},
		"options of numbers":   {`"<a>"`, `7`, "pendingQuestion.options[0] must be a string"},
		"source":               {`"other"`, `"nobody"`, "answeredQuestions[0].source is not one of"},
		"role":                 {`"role": "reviewer"`, `"role": "ref-analyst"`, "reviewRounds[0].role is not one of"},
		"no reviewers":         {`"reviewers": 2`, `"reviewers": 0`, "reviewRounds[0].reviewers must be at least 1"},
		"lane status":          {`"running"`, `"flying"`, "reviewRounds[0].lanes[1].status is not one of"},
		"result while running": {`"status": "complete"`, `"status": "failed"`, "reviewRounds[0].lanes[0].resultFile is only allowed"},
		"result outside":       {`reviews/r1__a.md`, `a/../../b`, "reviewRounds[0].lanes[0].resultFile is not a contained relative path"},
		"absolute disposition": {`d/x.md`, `/d/x.md`, "reviewRounds[0].dispositionArtifact is not"},
		"forged approval time": {`"approvedAt": "2026-08-25T13:00:00Z"`, `"approvedAt": "soon"`, "execution.approval.approvedAt is not a UTC time"},
		"negative usage":       {`"inToks": 1`, `"inToks": -1`, "execution.usage.inToks must be at least 0"},
		"status of a number":   {`"I-2": "current"`, `"I-2": 1`, "execution.implStatus.I-2 must be a string"},
		"owner pid":            {`"pid": 1`, `"pid": 0`, "owner.pid must be at least 1"},
		"migration time":       {`"migratedAt": "2026-08-25T13:00:00Z"`, `"migratedAt": ""`, "migration.migratedAt is not a UTC time"},
		"lane as text":         {`"lanes": [`, `"lanes": ["x",`, "reviewRounds[0].lanes[0] must be an object"},
		"empty hash":           {`"planSha256": "` + sha + `"`, `"planSha256": ""`, "reviewRounds[0].planSha256 is empty"},
		"empty result":         {`reviews/r1__a.md`, ``, "reviewRounds[0].lanes[0].resultFile is empty"},
		"null round flag":      {`"consolidated": false`, `"consolidated": null`, "reviewRounds[0].consolidated must be true or false"},
	} {
		text := strings.Replace(fullCheckpoint, test.old, test.with, 1)
		if text == fullCheckpoint {
			t.Errorf("%s: nothing replaced", name)
		}
		var cp store.Checkpoint
		err := json.Unmarshal([]byte(text), &cp)
		var invalid *store.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.key) {
			t.Errorf("%s: got %v, want %s", name, err, test.key)
		}
	}
}

func TestAForgedApprovalIsRefused(t *testing.T) {
	t.Parallel()
	before, approval, _ := strings.Cut(fullCheckpoint, `"approval": {`)
	for name, test := range map[string]struct{ old, with, key string }{
		"version as text": {`"version": 3`, `"version": "3"`, "execution.approval.plan.version must be an integer"},
		"short hash":      {sha, "abc", "execution.approval.plan.sha256 is not a SHA-256"},
		"relative plan":   {"/w/PLAN_v3.md", "PLAN_v3.md", "execution.approval.plan.path must be absolute"},
		"time":            {"2026-08-25T13:00:00Z", "yesterday", "execution.approval.approvedAt is not a UTC time"},
		"HEAD as number":  {`"headAtApproval": null`, `"headAtApproval": 7`, "execution.approval.headAtApproval must be a string"},
		"extra key":       {`"headAtApproval"`, `"by": "me", "headAtApproval"`, "execution.approval.by is not a known key"},
		"no work tree":    {`"worktree": "/w",`, ``, "execution.approval.worktree is missing"},
	} {
		var cp store.Checkpoint
		err := json.Unmarshal([]byte(before+`"approval": {`+strings.Replace(approval, test.old, test.with, 1)), &cp)
		var invalid *store.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.key) {
			t.Errorf("%s: got %v, want %s", name, err, test.key)
		}
	}
}

func TestListsOfTheWrongTypeAreEmptyAndMissingOnesToo(t *testing.T) {
	t.Parallel()
	for _, lists := range []string{`"answeredQuestions": 7, "reviewRounds": null`, `"plan": null`} {
		text := fullCheckpoint[:strings.Index(fullCheckpoint, `"plan"`)] + lists + "}"
		var cp store.Checkpoint
		if err := json.Unmarshal([]byte(text), &cp); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(cp)
		if err != nil || !strings.Contains(string(out), `"answeredQuestions":[]`) || !strings.Contains(string(out), `"reviewRounds":[]`) {
			t.Errorf("%s: got %s, %v", lists, out, err)
		}
	}
}

func TestOnlyContainedRelativePathsAreClean(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"reviews/a__b.md": "reviews/a__b.md", `reviews\a.md`: "reviews/a.md", "..a/b..": "..a/b..",
		"../x": "", "a/../../b": "", "/a": "", "": "", "a//b": "", "a/": "", "./a": "", "a\x00b": "", `\a`: "", `C:\a`: "",
	} {
		got, err := store.CleanRelative(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", path, got, err)
		}
	}
}

func TestAMutationRaisesTheRevisionAndTheTimeOnce(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	question := store.PendingQuestion{QuestionID: "q1", Question: "?", Options: []string{"a"}}
	cp, err := dir.MutateCheckpoint(nil, nil, pinned.Add(time.Minute),
		store.QuestionAsked(question, pinned), store.QuestionAnswered("q1", "a", store.AnswerUser, pinned))
	if err != nil || cp.Revision != 2 || cp.UpdatedAt != "2026-08-25T13:01:00Z" || !cp.Answered("q1") {
		t.Fatalf("got %+v, %v", cp, err)
	}
	loaded, err := dir.LoadCheckpoint()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cp, loaded); diff != "" {
		t.Error(diff)
	}
}

func TestAMutationIsAllOrNothing(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	before := read(t, checkpointFile(dir))
	var state *store.StateError
	_, err := dir.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered(), store.Completed("x"))
	if !errors.As(err, &state) || read(t, checkpointFile(dir)) != before {
		t.Errorf("got %v", err)
	}
	var invalid *store.InvalidError
	_, err = dir.MutateCheckpoint(nil, nil, pinned, func(cp *store.Checkpoint) error { cp.Phase = "x"; return nil })
	if !errors.As(err, &invalid) || read(t, checkpointFile(dir)) != before {
		t.Errorf("got %v", err)
	}
	cp, err := dir.MutateCheckpoint(nil, nil, pinned.Add(time.Hour), store.QuestionDropped("none"))
	if err != nil || cp.Revision != 1 || read(t, checkpointFile(dir)) != before {
		t.Errorf("got %+v, %v", cp, err)
	}
}

func TestAnIsolatedChangeThatFailsDoesNotHurtTheOthers(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	var reports []error
	report := func(err error) { reports = append(reports, err) }
	cp, err := dir.MutateCheckpoint(nil, nil, pinned,
		store.Isolate(store.Completed("x"), report),
		store.Isolate(func(cp *store.Checkpoint) error { cp.Phase = "x"; return nil }, report),
		store.Isolate(store.HandoffOffered(), report))
	if err != nil || cp.Revision != 2 || cp.NextAction != store.ActionAcceptExecute || cp.Phase != store.PhasePlanning {
		t.Fatalf("got %+v, %v", cp, err)
	}
	var state *store.StateError
	var invalid *store.InvalidError
	if len(reports) != 3 || !errors.As(reports[0], &state) || !errors.As(reports[1], &invalid) || reports[2] != nil {
		t.Errorf("got %v", reports)
	}
}

func TestAnExpectedRevisionThatIsOldIsStale(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	one := 1
	if _, err := dir.MutateCheckpoint(nil, &one, pinned, store.HandoffOffered()); err != nil {
		t.Fatal(err)
	}
	before := read(t, checkpointFile(dir))
	if _, err := dir.MutateCheckpoint(nil, &one, pinned, store.HandoffOffered()); !errors.Is(err, store.ErrStale) || read(t, checkpointFile(dir)) != before {
		t.Errorf("got %v", err)
	}
}

func TestTheGenerationFollowsTheLeaseAndNeverFalls(t *testing.T) {
	t.Parallel()
	dir := runWith(t, fullCheckpoint) // generation 2
	lease, err := dir.Acquire(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	cp, err := dir.MutateCheckpoint(lease, nil, pinned, store.ExecutionStopped("x"))
	if err != nil || cp.Generation != 2 {
		t.Errorf("got %d, %v", cp.Generation, err)
	}
	for want := 2; want <= 3; want++ {
		if lease, err = dir.TakeOver(t.Context(), fmt.Sprint("s", want)); err != nil {
			t.Fatal(err)
		}
	}
	cp, err = dir.MutateCheckpoint(lease, nil, pinned, store.ExecutionStopped("y"))
	if err != nil || cp.Generation != 3 {
		t.Errorf("got %d, %v", cp.Generation, err)
	}
	if _, err := lease.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestACheckpointOfAnotherRunIsCorrupt(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	write(t, checkpointFile(dir), fullCheckpoint)
	var corrupt *store.CorruptError
	if _, err := dir.LoadCheckpoint(); !errors.As(err, &corrupt) {
		t.Errorf("got %v", err)
	}
}

func TestAFailedWriteLeavesTheOldCheckpoint(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("permissions do not bind root")
	}
	dir := withCheckpoint(t)
	if _, err := dir.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered()); err != nil {
		t.Fatal(err)
	}
	before := read(t, checkpointFile(dir))
	if err := os.Chmod(dir.Dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir.Dir, 0o700) }()
	if _, err := dir.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered()); err == nil || read(t, checkpointFile(dir)) != before {
		t.Errorf("got %v", err)
	}
}
