package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func TestStartRunWritesTheFilesOfTheFormat(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	run, notices, err := store.StartRun(root, store.StartRunRequest{Topic: "Same Topic!", Skill: "plan-normal", RequestText: "a <b> & ü"}, pinned)
	if err != nil || len(notices) != 0 {
		t.Fatal(notices, err)
	}
	dir := runDir(t, root, "20260825T130000Z-same-topic")
	artifacts := filepath.Join(root.Workdir, "docs/pi-plans/2026-08-25-same-topic")
	want := fmt.Sprintf(`{
	"schema": 1,
	"run_id": "20260825T130000Z-same-topic",
	"skill": "plan-normal",
	"topic": "same-topic",
	"request_text": "a <b> & ü",
	"workdir": %q,
	"artifact_dir": %q,
	"language_tag": null,
	"status": "planning",
	"created_at": "2026-08-25T13:00:00Z",
	"updated_at": "2026-08-25T13:00:00Z"
}
`, root.Workdir, artifacts)
	if diff := cmp.Diff(want, read(t, filepath.Join(dir.Dir, "run.json"))); diff != "" {
		t.Error(diff)
	}
	want = fmt.Sprintf("{\n\t\"run_id\": %q,\n\t\"run_dir\": %q,\n\t\"artifact_dir\": %q\n}\n", dir.ID, dir.Dir, artifacts)
	if diff := cmp.Diff(want, read(t, filepath.Join(root.Dir, "active.json"))); diff != "" {
		t.Error(diff)
	}
	for _, ledger := range []string{"decisions.jsonl", "subagents.jsonl", "refs.jsonl"} {
		if content := read(t, filepath.Join(dir.Dir, ledger)); content != "" {
			t.Errorf("%s: %q", ledger, content)
		}
	}
	if info, err := os.Stat(artifacts); err != nil || !info.IsDir() {
		t.Error(err)
	}
	loaded, err := dir.Load()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run, loaded); diff != "" {
		t.Error(diff)
	}
	active, ok, err := root.Active()
	if err != nil || !ok || active != dir {
		t.Errorf("active %+v, %v, %v", active, ok, err)
	}
}

func TestRunsOfOneSecondGetNumberedIDsAndShareTheArtifacts(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	for i, want := range []string{"20260825T130000Z-same-topic", "20260825T130000Z-same-topic-2", "20260825T130000Z-same-topic-3"} {
		run, notices, err := store.StartRun(root, store.StartRunRequest{Topic: "same topic"}, pinned)
		if err != nil || run.RunID != want || (len(notices) == 1) != (i > 0) {
			t.Errorf("got %s, %q, %v", run.RunID, notices, err)
		}
	}
}

func TestTheArtifactRootIsResolvedAgainstTheWorkdir(t *testing.T) {
	t.Parallel()
	elsewhere := tempDir(t)
	tests := map[string]struct {
		root string
		want func(root store.Root) string
	}{
		"relative":               {"plans/x", func(r store.Root) string { return filepath.Join(r.Workdir, "plans/x") }},
		"absolute":               {elsewhere, func(store.Root) string { return elsewhere }},
		"in the git directory":   {"./.git/pi_plans/plans", func(r store.Root) string { return filepath.Join(r.CommonDir, "pi_plans/plans") }},
		"like the git directory": {".github/plans", func(r store.Root) string { return filepath.Join(r.Workdir, ".github/plans") }},
	}
	repo := newRepo(t)
	gitIn(t, repo, "commit", "-q", "--allow-empty", "-m", "x")
	linked := filepath.Join(tempDir(t), "linked")
	gitIn(t, repo, "worktree", "add", "-q", linked)
	write(t, filepath.Join(repo, "sub/file"), "")
	for name, test := range tests {
		for _, workdir := range []string{repo, linked, filepath.Join(repo, "sub")} {
			root := ensure(t, workdir)
			if _, err := root.UpdateConfig(func(c *store.Config) error { c.ArtifactRoot = test.root; return nil }); err != nil {
				t.Fatal(err)
			}
			run, _, err := store.StartRun(root, store.StartRunRequest{Topic: "t"}, pinned)
			if want := filepath.Join(test.want(root), "2026-08-25-t"); err != nil || run.ArtifactDir != want {
				t.Errorf("%s from %s: got %s, %v, want %s", name, workdir, run.ArtifactDir, err, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(repo, "sub/.git")); err == nil {
		t.Error("a .git was made in a subdirectory")
	}
}

func TestSlugs(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]string{
		"Same Topic!":             "same-topic",
		"  a  -- b_c.d  ":         "a-b-c-d",
		"计划":                      "planning-run",
		"":                        "planning-run",
		"../../etc":               "etc",
		strings.Repeat("ab ", 40): strings.Repeat("ab-", 26) + "ab",
	} {
		if got := store.Slug(topic); got != want {
			t.Errorf("%q: got %q, want %q", topic, got, want)
		}
	}
}

func TestSetStatusPersistsAndKeepsUnknownKeys(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	path := filepath.Join(dir.Dir, "run.json")
	write(t, path, strings.Replace(read(t, path), "{\n", "{\n\t\"notices\": [\n\t\t1.0\n\t],\n", 1))
	run, err := dir.SetStatus(store.StatusAccepted, pinned.Add(time.Hour))
	if err != nil || run.Status != store.StatusAccepted || run.UpdatedAt != "2026-08-25T14:00:00Z" || run.CreatedAt != "2026-08-25T13:00:00Z" {
		t.Fatalf("got %+v, %v", run, err)
	}
	if content := read(t, path); !strings.HasPrefix(content, "{\n\t\"notices\": [\n\t\t1.0\n\t],\n\t\"schema\"") || !strings.Contains(content, `"status": "accepted"`) {
		t.Errorf("got %s", content)
	}
	before := read(t, path)
	if _, err := dir.SetStatus("bogus", pinned); !errors.Is(err, store.ErrBadStatus) || read(t, path) != before {
		t.Errorf("got %v", err)
	}
}

func TestAStatusOfANewerWriterIsReadButCannotBeSet(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	path := filepath.Join(dir.Dir, "run.json")
	write(t, path, strings.Replace(read(t, path), `"planning"`, `"verifying"`, 1))
	if run, err := dir.Load(); err != nil || run.Status != "verifying" || run.Status.Valid() {
		t.Errorf("got %+v, %v", run, err)
	}
}

func TestRunIDsThatLeaveTheirDirectoryAreRefused(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	for _, id := range []string{"../escape", "foo/bar", ".hidden", "a b", "", "20260825T130000Z-a..b", "20260825T130000Z-", "20260825T130000Z-a/b", "20260825T130000Z-a\n"} {
		if _, err := root.Run(id); !errors.Is(err, store.ErrBadRunID) {
			t.Errorf("%q: got %v", id, err)
		}
	}
	if _, err := root.Run("20260825T130000Z-none"); !errors.Is(err, store.ErrNoRun) || !strings.Contains(err.Error(), "run does not exist: 20260825T130000Z-none") {
		t.Errorf("got %v", err)
	}
}

func TestOneBrokenRunDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	if runs, err := root.Runs(); err != nil || len(runs) != 0 {
		t.Errorf("none: got %v, %v", runs, err)
	}
	var ids []string
	for range 5 {
		run, _, err := store.StartRun(root, store.StartRunRequest{Topic: "t"}, pinned)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, run.RunID)
	}
	write(t, filepath.Join(root.Dir, "runs", ids[2], "run.json"), "{")
	write(t, filepath.Join(root.Dir, "runs", "stray"), "")
	runs, err := root.Runs()
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, run := range runs {
		listed = append(listed, run.Dir.ID)
		var corrupt *store.CorruptError
		if broken := run.Dir.ID == ids[2]; broken != errors.As(run.Err, &corrupt) || !broken && run.Run.RunID != run.Dir.ID {
			t.Errorf("%s: %+v, %v", run.Dir.ID, run.Run, run.Err)
		}
	}
	if !slices.Equal(listed, ids) {
		t.Errorf("got %v, want %v", listed, ids)
	}
}

func TestARunThatClaimsToBeAnotherIsCorrupt(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	path := filepath.Join(dir.Dir, "run.json")
	write(t, path, strings.Replace(read(t, path), dir.ID, dir.ID+"-2", 1))
	var corrupt *store.CorruptError
	if _, err := dir.Load(); !errors.As(err, &corrupt) {
		t.Errorf("got %v", err)
	}
}

func TestAFailedStartLeavesNoRun(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	if err := os.Mkdir(filepath.Join(root.Dir, "active.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.StartRun(root, store.StartRunRequest{Topic: "t"}, pinned); err == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(filepath.Join(root.Dir, "runs")); err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestThePointerToARunThatIsGonePointsToNone(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	if err := os.RemoveAll(dir.Dir); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := dir.Root.Active(); ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	if _, err := dir.Load(); !errors.Is(err, store.ErrNoRun) {
		t.Errorf("got %v", err)
	}
	if _, err := dir.SetStatus(store.StatusDone, pinned); !errors.Is(err, store.ErrNoRun) {
		t.Errorf("got %v", err)
	}
}

func TestPlansAreFoundByTheirNumber(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	if _, _, err := store.LatestPlan(filepath.Join(dir, "missing")); !errors.Is(err, store.ErrNoPlan) {
		t.Errorf("got %v", err)
	}
	if path, version, err := store.NextPlan(dir); err != nil || version != 1 || path != filepath.Join(dir, "PLAN_v1.md") {
		t.Errorf("got %s, %d, %v", path, version, err)
	}
	for _, name := range []string{"PLAN_v2.md", "plan_V10.markdown", "PLAN_v11.txt", "PLAN_vx.md"} {
		write(t, filepath.Join(dir, name), "hello")
	}
	if path, version, err := store.LatestPlan(dir); err != nil || version != 10 || filepath.Base(path) != "plan_V10.markdown" {
		t.Errorf("got %s, %d, %v", path, version, err)
	}
	if path, version, err := store.NextPlan(dir); err != nil || version != 11 || filepath.Base(path) != "PLAN_v11.md" {
		t.Errorf("got %s, %d, %v", path, version, err)
	}
	plan, err := store.IdentifyPlan(filepath.Join(dir, "PLAN_v2.md"))
	want := store.PlanIdentity{Path: filepath.Join(dir, "PLAN_v2.md"), Version: 2, SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}
	if diff := cmp.Diff(want, plan); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if _, err := store.IdentifyPlan(filepath.Join(dir, "none.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestArtifactsAreCopiedToAnotherWorkTreeWithoutOverwriting(t *testing.T) {
	t.Parallel()
	repo := newRepo(t)
	gitIn(t, repo, "commit", "-q", "--allow-empty", "-m", "x")
	linked := filepath.Join(tempDir(t), "linked")
	gitIn(t, repo, "worktree", "add", "-q", linked)
	from := filepath.Join(repo, "docs/pi-plans/2026-08-25-t")
	write(t, filepath.Join(from, "PLAN_v1.md"), "one")
	write(t, filepath.Join(from, "NOTES.md"), "notes")
	write(t, filepath.Join(from, "sub/deep.md"), "deep")
	root := ensure(t, linked)
	to := filepath.Join(linked, "docs/pi-plans/2026-08-25-t")

	write(t, filepath.Join(to, "PLAN_v1.md"), "other")
	if _, err := root.CopyArtifacts(from); !errors.Is(err, store.ErrArtifactConflict) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(to); len(entries) != 1 || read(t, filepath.Join(to, "PLAN_v1.md")) != "other" {
		t.Errorf("a conflict changed the target: %v", entries)
	}
	write(t, filepath.Join(to, "PLAN_v1.md"), "one")
	if got, err := root.CopyArtifacts(from); err != nil || got != to {
		t.Errorf("got %s, %v", got, err)
	}
	if read(t, filepath.Join(to, "NOTES.md")) != "notes" || read(t, filepath.Join(from, "NOTES.md")) != "notes" {
		t.Error("the notes were not copied")
	}
	if _, err := os.Stat(filepath.Join(to, "sub")); err == nil {
		t.Error("a folder was copied")
	}
	if _, err := root.CopyArtifacts(filepath.Join(repo, "none")); !errors.Is(err, store.ErrNoArtifacts) {
		t.Errorf("got %v", err)
	}
	shared := filepath.Join(root.Dir, "plans/x")
	write(t, filepath.Join(shared, "PLAN_v1.md"), "one")
	if got, err := root.CopyArtifacts(shared); err != nil || got != shared {
		t.Errorf("got %s, %v", got, err)
	}
}
