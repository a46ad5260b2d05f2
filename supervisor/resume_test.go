package supervisor_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
	"pilothouse/supervisor"
)

// recorded makes a run as an earlier process left it, minute by minute.
func (b *bundle) recorded(minute int, topic string, status store.RunStatus, changes ...store.Change) store.RunDir {
	b.t.Helper()
	now := time.Date(2026, 5, 1, 12, minute, 0, 0, time.UTC)
	root, _, err := store.Ensure(b.t.Context(), b.session.Workdir)
	if err != nil {
		b.t.Fatal(err)
	}
	run, _, err := store.StartRun(root, store.StartRunRequest{Topic: topic, Skill: "plan-normal", RequestText: "please plan " + topic}, now)
	if err != nil {
		b.t.Fatal(err)
	}
	dir := b.run(run.RunID)
	if _, err := dir.CreateCheckpoint(now); err != nil {
		b.t.Fatal(err)
	}
	if len(changes) > 0 {
		if _, err := dir.MutateCheckpoint(nil, nil, now, changes...); err != nil {
			b.t.Fatal(err)
		}
	}
	if _, err := dir.SetStatus(status, now); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// legacy takes away what an older writer did not write.
func (b *bundle) legacy(dir store.RunDir) store.RunDir {
	b.t.Helper()
	if err := os.Remove(filepath.Join(dir.Dir, "checkpoint.json")); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

func (b *bundle) corrupt(dir store.RunDir) string {
	b.t.Helper()
	path := filepath.Join(dir.Dir, "checkpoint.json")
	if err := os.WriteFile(path, []byte(`{"schema":1,`), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bundle) artifact(dir store.RunDir, name, text string) string {
	b.t.Helper()
	run, err := dir.Load()
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(run.ArtifactDir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// executing are the steps that make an execution of the plan at path, with one check done.
func executing(t *testing.T, path string, head *string, worktree string) []store.Change {
	t.Helper()
	plan, err := store.IdentifyPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	return []store.Change{
		store.PlanWritten(plan), store.HandoffOffered(),
		store.ExecutionApproved(store.Approval{Plan: plan, Worktree: worktree, HeadAtApproval: head, ApprovedAt: "2026-05-01T12:00:00Z"}),
		store.ExecutionProgressed(store.Progress{DoneVCIDs: []string{"VC-001"}}),
	}
}

const twoChecks = "# A plan\n\n## Verifier Checklist\n- [ ] `VC-001` covers I-1; it builds\n- [ ] `VC-002` covers I-2; it runs\n"

func (b *bundle) git(args ...string) string {
	b.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", b.session.Workdir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a commit and returns its name.
func (b *bundle) commit() *string {
	b.t.Helper()
	b.git("commit", "-q", "--allow-empty", "-m", "work")
	head := b.git("rev-parse", "HEAD")
	return &head
}

func (b *bundle) candidates() []supervisor.Candidate {
	b.t.Helper()
	candidates, err := b.system.Candidates(context.Background(), b.session)
	if err != nil {
		b.t.Fatal(err)
	}
	return candidates
}

func topics(candidates []supervisor.Candidate) []string {
	names := []string{}
	for _, c := range candidates {
		_, topic, _ := strings.Cut(c.RunID, "-")
		names = append(names, topic)
	}
	return names
}

func TestRunsAreResumableUntilTheyAreAbandonedOrDoneWithNothingToReview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.recorded(1, "planning", store.StatusPlanning)
	b.recorded(2, "stopped", store.StatusStopped)
	b.recorded(3, "accepted", store.StatusAccepted)
	b.recorded(4, "abandoned", store.StatusAbandoned)
	b.legacy(b.recorded(5, "plain-done", store.StatusDone))
	reviewed := b.legacy(b.recorded(6, "done-reviewed", store.StatusDone))
	b.artifact(reviewed, "x_reviewer_comments.md", "comments")
	b.legacy(b.recorded(7, "legacy", store.StatusExecuting))
	b.corrupt(b.recorded(8, "corrupt", store.StatusPlanning))
	plan := b.artifact(b.recorded(9, "elsewhere", store.StatusAbandoned), "PLAN_v3.md", twoChecks)
	b.recorded(10, "under-review", store.StatusDone, append(executing(t, plan, nil, b.session.Workdir), store.ExecutionCompleted())...)
	b.recorded(11, "completed", store.StatusDone, append(executing(t, plan, nil, b.session.Workdir),
		store.ExecutionCompleted(), store.ReviewConfigured("one round"), store.Completed("all seen"))...)

	candidates := b.candidates()
	want := []string{"under-review", "corrupt", "legacy", "done-reviewed", "accepted", "stopped", "planning"}
	if diff := cmp.Diff(want, topics(candidates)); diff != "" {
		t.Error(diff)
	}
	for _, c := range candidates {
		if corrupt := strings.HasSuffix(c.RunID, "-corrupt"); corrupt != (c.Corrupt != "") {
			t.Errorf("%s: corrupt is %q", c.RunID, c.Corrupt)
		}
		if c.From != "" || c.Active {
			t.Errorf("%s is of another work tree or active: %+v", c.RunID, c)
		}
	}
	for i, part := range map[int]string{0: " · implementation-review · plan v3 · ", 1: " · corrupt · ", 5: " · planning (stopped) · "} {
		if label := candidates[i].Label(); !strings.Contains(label, part) {
			t.Errorf("%q lacks %q", label, part)
		}
	}
}

func TestTheRunToResumeIsTheActiveOneElseTheOnlyOneElseAsked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statuses []store.RunStatus // the last one is active
		want     string
	}{
		"the only one":                    {[]store.RunStatus{store.StatusPlanning, store.StatusAbandoned}, "run-0"},
		"the active one":                  {[]store.RunStatus{store.StatusPlanning, store.StatusStopped, store.StatusPlanning}, "run-2"},
		"asked, for the active is over":   {[]store.RunStatus{store.StatusPlanning, store.StatusStopped, store.StatusAbandoned}, ""},
		"none, for there is no candidate": {[]store.RunStatus{store.StatusAbandoned}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for i, status := range test.statuses {
				b.recorded(i, "run "+string(rune('0'+i)), status)
			}
			last := b.run(lastRun(t, b))
			if err := os.WriteFile(filepath.Join(last.Root.Dir, "active.json"), []byte(`{"run_id":"`+last.ID+`","run_dir":"","artifact_dir":""}`), 0o600); err != nil {
				t.Fatal(err)
			}
			chosen, found := supervisor.DefaultCandidate(b.candidates())
			if found != (test.want != "") || found && !strings.HasSuffix(chosen.RunID, test.want) {
				t.Errorf("chose %+v, %t; want %q", chosen, found, test.want)
			}
		})
	}
}

func lastRun(t *testing.T, b *bundle) string {
	t.Helper()
	runs, err := b.system.Runs(context.Background(), b.session)
	if err != nil || len(runs) == 0 {
		t.Fatal(runs, err)
	}
	return runs[0].RunID
}

// resume takes up a run as the session of the bundle.
func (b *bundle) resume(dir store.RunDir) (supervisor.Resumption, error) {
	return b.system.Resume(context.Background(), supervisor.ResumeRequest{Session: b.as("resumer"), RunID: dir.ID})
}

func (b *bundle) mustResume(dir store.RunDir) supervisor.Resumption {
	b.t.Helper()
	resumed, err := b.resume(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	return resumed
}

func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in:\n%s", part, text)
		}
	}
}

func TestTheBriefOfAPlanningRunTellsWhatIsDecidedAndWhatIsPending(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	dir := b.recorded(1, "things", store.StatusStopped,
		store.QuestionAsked(store.PendingQuestion{QuestionID: "scope", Question: "Which scope?"}, now),
		store.QuestionAnswered("scope", "all of it", store.AnswerUser, now),
		store.QuestionAsked(store.PendingQuestion{QuestionID: "depth", Question: "Which depth?", Options: []string{"deep", "flat"}}, now),
	)
	resumed := b.mustResume(dir)
	holds(t, resumed.Brief, "PI-PLANS RESUME", dir.ID, "skills/plan-normal/SKILL.md", "please plan things",
		"scope: all of it (user)", "PENDING question depth", "Which depth?", "- deep", "do not re-run `plans start-run`")
	if resumed.Status != store.StatusPlanning || resumed.Phase != store.PhasePlanning {
		t.Errorf("resumed is %+v", resumed)
	}
	if run, err := dir.Load(); err != nil || run.Status != store.StatusPlanning {
		t.Errorf("status %s, %v; want a stopped run to be planning again", run.Status, err)
	}
	if owner := b.owner(dir.ID); owner != "resumer" {
		t.Errorf("owner is %q, want the session that resumed", owner)
	}
}

func TestTheBriefRepeatsTheLastTwelveAnswersAndNamesTheSkillThatExists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var answers []store.Change
	for i := range 14 {
		id := "q" + string(rune('a'+i))
		answers = append(answers, store.QuestionAsked(store.PendingQuestion{QuestionID: id, Question: "?"}, time.Now()),
			store.QuestionAnswered(id, "yes", store.AnswerAutoComplete, time.Now()))
	}
	dir := b.recorded(1, "things", store.StatusPlanning, answers...)
	run := b.startRun() // of a skill of its own name
	brief := b.mustResume(dir).Brief
	holds(t, brief, "- 2 earlier ones", "- qc: yes (auto-complete)", "- qn: yes")
	lacks(t, brief, "- qa:", "- qb:")
	holds(t, b.mustResume(run).Brief, "skills/plan-small/SKILL.md")
}

func TestAnAnswerOfTheLedgerSettlesAPendingQuestion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.recorded(1, "things", store.StatusPlanning, store.QuestionAsked(store.PendingQuestion{QuestionID: "depth", Question: "Which depth?"}, time.Now()))
	if _, err := dir.AppendDecision(store.Decision{Question: "Which depth?", Answer: "deep", AnswerSource: "user", QuestionID: "depth"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	brief := b.mustResume(dir).Brief
	lacks(t, brief, "PENDING")
	holds(t, brief, "depth: deep (user)")
	if cp := b.checkpoint(dir); cp.PendingQuestion != nil || !cp.Answered("depth") {
		t.Errorf("on disk: pending %+v, answered %+v", cp.PendingQuestion, cp.AnsweredQuestions)
	}
}

func TestAnExecutionGoesOnByItsPlanAndTheCommitThatIsCheckedOut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		head     func(b *bundle) *string // at the approval
		disturb  func(b *bundle, plan string)
		handoff  string
		reverify []string
		in, out  []string
	}{
		"nothing changed": {
			head: (*bundle).commit,
			in:   []string{"The approval stands", "still valid: VC-001", "- VC-002: ", "paused: by the user"}, out: []string{"- VC-001: ", "execute_plan"},
		},
		"another commit": {
			head: (*bundle).commit, disturb: func(b *bundle, _ string) { b.commit() }, reverify: []string{"VC-001"},
			in: []string{"The approval stands", "Verify these again first", "- VC-001: ", "- VC-002: "}, out: []string{"execute_plan"},
		},
		"no commit at the approval": {
			head: func(*bundle) *string { return nil }, reverify: []string{"VC-001"}, in: []string{"The approval stands", "Verify these again first"},
		},
		"another plan": {
			head: (*bundle).commit, handoff: "changed since the approval",
			disturb: func(b *bundle, plan string) { writeText(b.t, plan, twoChecks+"- [ ] `VC-003` more\n") },
			in:      []string{"execute_plan", "changed since the approval", "Nothing counts as verified"}, out: []string{"The approval stands", "- VC-002: "},
		},
		"no plan": {
			head: (*bundle).commit, handoff: "cannot be read",
			disturb: func(b *bundle, plan string) { removeFile(b.t, plan) },
			in:      []string{"execute_plan", "cannot be read"}, out: []string{"The approval stands"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			head := test.head(b)
			dir := b.recorded(1, "things", store.StatusPlanning)
			plan := b.artifact(dir, "PLAN_v1.md", twoChecks)
			steps := append(executing(t, plan, head, dir.Root.Worktree), store.ExecutionStopped("by the user"))
			if _, err := dir.MutateCheckpoint(nil, nil, time.Now(), steps...); err != nil {
				t.Fatal(err)
			}
			if _, err := dir.SetStatus(store.StatusStopped, time.Now()); err != nil {
				t.Fatal(err)
			}
			if test.disturb != nil {
				test.disturb(b, plan)
			}
			resumed := b.mustResume(dir)
			if !strings.Contains(resumed.Handoff, test.handoff) || (test.handoff == "") != (resumed.Handoff == "") {
				t.Errorf("handoff is %q, want %q", resumed.Handoff, test.handoff)
			}
			if diff := cmp.Diff(test.reverify, resumed.Reverify); diff != "" {
				t.Error(diff)
			}
			holds(t, resumed.Brief, test.in...)
			lacks(t, resumed.Brief, test.out...)
			want := store.StatusExecuting
			if test.handoff != "" { // which closes the gate before its tools
				want = store.StatusAccepted
			}
			execution := b.checkpoint(dir).Execution
			if run, err := dir.Load(); err != nil || run.Status != want || resumed.Status != want {
				t.Errorf("status %s, %v; want %s", run.Status, err, want)
			}
			if execution.MustReverify() != (test.reverify != nil) || execution.Approval == nil {
				t.Errorf("on disk: %+v", execution)
			}
		})
	}
}

func TestTheBriefOfAnImplementationReviewTellsWhenItEndsAndWhichRoundIsAtWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.recorded(1, "things", store.StatusPlanning)
	plan := b.artifact(dir, "PLAN_v1.md", twoChecks)
	if _, err := dir.MutateCheckpoint(nil, nil, time.Now(), append(executing(t, plan, b.commit(), dir.Root.Worktree), store.ExecutionCompleted())...); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.SetStatus(store.StatusDone, time.Now()); err != nil {
		t.Fatal(err)
	}
	undecided := b.mustResume(dir)
	holds(t, undecided.Brief, "termination-condition", "implementation-review-configured")
	if undecided.Status != store.StatusDone {
		t.Errorf("status became %s", undecided.Status)
	}
	if _, err := dir.MutateCheckpoint(nil, nil, time.Now(), store.ReviewConfigured("2 rounds")); err != nil {
		t.Fatal(err)
	}
	holds(t, b.mustResume(dir).Brief, "It ends: 2 rounds. Rounds completed: 0, at most 5.")
}

func TestAResumeThatIsRefusedChangesNothingAndKeepsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.commit()
	over := b.recorded(1, "over", store.StatusAbandoned)
	corrupt := b.recorded(2, "corrupt", store.StatusPlanning)
	path := b.corrupt(corrupt)
	legacy := b.legacy(b.recorded(3, "legacy", store.StatusExecuting))
	held := b.started("first")
	for dir, words := range map[store.RunDir]string{
		over: "it is over", corrupt: "is corrupt", legacy: "was not confirmed", b.run(held): "actively owned",
	} {
		if resumed, err := b.resume(dir); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %+v, %v; want an error with %q", dir.ID, resumed, err, words)
		}
		if _, state, err := dir.Owner(); dir.ID != held && (err != nil || state != store.OwnerNone) {
			t.Errorf("%s: owner is %s, %v; want none", dir.ID, state, err)
		}
	}
	if _, err := b.system.Resume(context.Background(), supervisor.ResumeRequest{Session: b.as("resumer"), RunID: "20260501T120000Z-none"}); err == nil {
		t.Error("a run that does not exist was resumed")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != `{"schema":1,` {
		t.Errorf("the corrupt checkpoint is %q now, %v", text, err)
	}
}

func TestALegacyExecutionIsResumedWithAFreshHandoff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := b.legacy(b.recorded(1, "legacy", store.StatusExecuting))
	if _, err := dir.AppendDecision(store.Decision{Question: "Which depth?", Answer: "deep", AnswerSource: "user"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	b.artifact(dir, "PLAN_v2.md", twoChecks)
	resumed, err := b.system.Resume(context.Background(), supervisor.ResumeRequest{Session: b.as("resumer"), RunID: dir.ID, Legacy: true})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, resumed.Brief, "PI-PLANS RESUME", "Which depth?: deep (user)", "PLAN_v2.md", "Run the handoff again with execute_plan", "unverified")
	if resumed.Handoff == "" || resumed.Status != store.StatusAccepted {
		t.Errorf("resumed is %+v", resumed)
	}
	if _, err := dir.LoadCheckpoint(); err == nil {
		t.Error("a checkpoint was invented")
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// details decodes what an action keeps in its session.
func details(t *testing.T, action supervisor.Action) map[string]string {
	t.Helper()
	var data map[string]string
	if err := json.Unmarshal(action.Data, &data); err != nil {
		t.Fatal(err)
	}
	return data
}
