package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func TestAReviewIsKeptInTheRunAndReadBack(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	file, err := dir.WriteReview("r1", "lane-a", "first")
	if err != nil || file != "reviews/r1__lane-a.md" {
		t.Fatal(file, err)
	}
	if _, err := dir.WriteReview("r1", "lane-a", "second\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := dir.ReadReview(file); err != nil || text != "second\n" {
		t.Errorf("got %q, %v", text, err)
	}
	for path, mode := range map[string]os.FileMode{"reviews": 0o700, file: 0o600} {
		if info, err := os.Stat(filepath.Join(dir.Dir, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if _, err := dir.ReadReview("reviews/none.md"); !errors.Is(err, store.ErrNoReview) {
		t.Errorf("got %v", err)
	}
}

func TestReviewsCannotLeaveTheirDirectory(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	for _, ids := range [][2]string{{"../r", "a"}, {"r", "../lane"}, {"a/b", "l"}, {"", "l"}, {"r", ""}, {"r", "a..b"}} {
		if _, err := dir.WriteReview(ids[0], ids[1], "x"); !errors.Is(err, store.ErrBadReviewPath) {
			t.Errorf("%q: got %v", ids, err)
		}
	}
	if _, err := dir.WriteReview("r", "a", "x"); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(tempDir(t), "secret")
	write(t, secret, "secret")
	if err := os.Symlink(secret, filepath.Join(dir.Dir, "reviews/link.md")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"../decisions.jsonl", "decisions.jsonl", "reviews/../run.json", "/etc/passwd", "", "reviews"} {
		if _, err := dir.ReadReview(file); !errors.Is(err, store.ErrBadReviewPath) {
			t.Errorf("%q: got %v", file, err)
		}
	}
	if text, err := dir.ReadReview("reviews/link.md"); err == nil {
		t.Errorf("a link was followed to %q", text)
	}
}

func TestALinkedReviewsFolderIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	dir, elsewhere := newRun(t), tempDir(t)
	if err := os.Symlink(elsewhere, filepath.Join(dir.Dir, "reviews")); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.WriteReview("r", "a", "x"); err == nil {
		t.Error("no error")
	}
	if entries, _ := os.ReadDir(elsewhere); len(entries) != 0 {
		t.Errorf("written: %v", entries)
	}
}

func exampleRound(id string, at time.Time) store.RoundRecord {
	code, good := 1, true
	return store.RoundRecord{
		Schema: 1, RoundID: id, Role: "reviewer", Target: "plan", Model: "p/m", PlanPath: "/w/PLAN_v1.md", PlanSHA256: sha, StartedAt: at,
		Lanes: []store.LaneRecord{
			{LaneID: "a", Name: "n", Lens: "general", Batch: 1, Status: store.LaneStatusComplete, Attempts: 2, Model: "p/m",
				Usage: store.LaneUsage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 0.25}, Turns: 3, DurationMs: 1500,
				ResultFile: "reviews/r__a.md", WellFormed: &good, StartedAt: at, CompletedAt: at.Add(time.Second)},
			{LaneID: "b", Status: store.LaneStatusFailed, Exit: store.LaneExit{Code: &code}, Error: store.LaneError{Class: "auth", Message: "no <key>"}},
		},
	}
}

func TestRoundRecordsLiveInARunOrOnTheirOwn(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	for name, rounds := range map[string]store.RoundDir{"in a run": dir.RoundDir(), "on their own": dir.Root.AdHoc()} {
		if all, err := rounds.Rounds(); err != nil || len(all) != 0 {
			t.Errorf("%s: got %v, %v", name, all, err)
		}
		second, first := exampleRound("r1", pinned.Add(time.Hour)), exampleRound("r2", pinned)
		for _, record := range []store.RoundRecord{second, first} {
			if err := rounds.SaveRound(record); err != nil {
				t.Fatal(name, err)
			}
		}
		loaded, err := rounds.LoadRound("r1")
		if diff := cmp.Diff(second, loaded); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		write(t, filepath.Join(rounds.Dir, "rounds/broken.json"), "{")
		all, err := rounds.Rounds()
		var corrupt *store.CorruptError
		if diff := cmp.Diff([]store.RoundRecord{first, second}, all); !errors.As(err, &corrupt) || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if _, err := rounds.LoadRound("none"); !errors.Is(err, store.ErrNoRound) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := rounds.LoadRound("../x"); !errors.Is(err, store.ErrNoRound) {
			t.Errorf("%s: got %v", name, err)
		}
		file, err := rounds.WriteReview("r1", "a", "text")
		if err != nil {
			t.Fatal(name, err)
		}
		if text, err := rounds.ReadReview(file); err != nil || text != "text" {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
	if text, err := dir.ReadReview("reviews/r1__a.md"); err != nil || text != "text" {
		t.Errorf("the review of the run's round: %q, %v", text, err)
	}
	if want := filepath.Join(dir.Root.Dir, "cache/pilothouse/adhoc"); dir.Root.AdHoc().Dir != want {
		t.Errorf("got %s", dir.Root.AdHoc().Dir)
	}
}

func TestARoundRecordIsCheckedBeforeItIsSaved(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	for fragment, change := range map[string]func(*store.RoundRecord){
		"roundId":             func(r *store.RoundRecord) { r.RoundID = "../x" },
		"lanes[1].status":     func(r *store.RoundRecord) { r.Lanes[1].Status = "flying" },
		"lanes[0].resultFile": func(r *store.RoundRecord) { r.Lanes[0].ResultFile = "../x" },
	} {
		record := exampleRound("r1", pinned)
		change(&record)
		var invalid *store.InvalidError
		if err := dir.RoundDir().SaveRound(record); !errors.As(err, &invalid) || !strings.Contains(err.Error(), fragment) {
			t.Errorf("%s: got %v", fragment, err)
		}
	}
	if err := os.RemoveAll(dir.Dir); err != nil {
		t.Fatal(err)
	}
	if err := dir.RoundDir().SaveRound(exampleRound("r1", pinned)); !errors.Is(err, store.ErrNoRun) {
		t.Errorf("in a run that is gone: %v", err)
	}
	if _, err := os.Stat(dir.Dir); err == nil {
		t.Error("the run came back")
	}
}
