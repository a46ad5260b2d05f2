package actors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/agents"
	"pilothouse/lanes"
)

func promptOf(t *testing.T, role actors.Role) string {
	t.Helper()
	prompt, err := agents.Prompt(string(role))
	if err != nil {
		t.Fatal(err)
	}
	return prompt
}

func TestAReviewerRoundIsPlanned(t *testing.T) {
	t.Parallel()
	for reviewers, ids := range map[int][]string{
		-1: {"general"}, 0: {"general"}, 1: {"general"}, 2: {"correctness", "ordering"},
		3: {"correctness", "ordering", "verification"}, 9: {"correctness", "ordering", "verification"},
	} {
		req := actors.ReviewRequest{
			Target: actors.TargetImplementation, PlanPath: "/w/PLAN_v1.md", PlanText: "# Plan\n- do it\n", Reviewers: reviewers,
			Focus: "the cache", Context: "a small team", Language: "de", NamePrefix: "pp", RunID: "run-7", Model: "sim/plain", Dir: "/w",
			Limits: lanes.Limits{Attempts: 2},
		}
		got, err := actors.PlanReview(req)
		if err != nil {
			t.Fatal(err)
		}
		var want []actors.Lane
		for _, id := range ids {
			lane := actors.Lane{Batch: 1, Spec: lanes.Spec{
				ID: id, Name: "pp-run-7-" + id, Dir: "/w", Model: "sim/plain", Tools: []string{"read", "grep", "find", "ls"},
				SystemPrompt: promptOf(t, actors.Reviewer), Limits: req.Limits,
				Task: actors.ReviewBrief{
					Role: "reviewer", Target: "implementation", PlanPath: req.PlanPath, PlanText: req.PlanText, Lens: actors.Lens(id),
					Focus: "the cache", Context: "a small team", LanguageTag: "de",
				}.Text(),
			}}
			if id != "general" {
				lane.Lens = id
			}
			want = append(want, lane)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d reviewers: %s", reviewers, diff)
		}
		for _, lane := range got {
			for _, part := range []string{req.PlanText, req.PlanPath, req.Focus, req.Context, actors.Lens(lane.Spec.ID)} {
				if !strings.Contains(lane.Spec.Task, part) {
					t.Errorf("the brief of %s lacks %q", lane.Spec.ID, part)
				}
			}
		}
	}
}

func TestACriticizerRoundIsPlanned(t *testing.T) {
	t.Parallel()
	req := actors.ReviewRequest{Target: actors.TargetPlan, PlanPath: "/w/P.md", PlanText: "# P\n", Reviewers: 3, NamePrefix: "pp", RunID: "run-7", Dir: "/w"}
	got, err := actors.PlanCriticism(req, time.UnixMilli(36*36*36+1))
	if err != nil {
		t.Fatal(err)
	}
	want := []actors.Lane{{Batch: 1, Spec: lanes.Spec{
		ID: "criticizer", Name: "pp-criticizer-1001", Dir: "/w", Tools: []string{"read", "grep", "find", "ls"},
		SystemPrompt: promptOf(t, actors.Criticizer),
		Task:         actors.ReviewBrief{Role: "criticizer", Target: "plan", PlanPath: "/w/P.md", PlanText: "# P\n"}.Text(),
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnalysisIsPlanned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refs := []actors.Reference{
		{ID: "a", LocalPath: dir, Title: "A", URL: "https://a.example", Kind: "repo"}, {ID: "b", LocalPath: dir + "/gone"},
		{ID: "c", LocalPath: dir}, {ID: "d", LocalPath: dir + "\x00"}, {ID: "e", LocalPath: dir},
	}
	got, err := actors.PlanAnalysis(actors.AnalysisRequest{Refs: refs, Context: "a Go daemon", Language: "fr", RunID: "adhoc", Model: "m/x"})
	if err != nil {
		t.Fatal(err)
	}
	var want []actors.Lane
	for i, ref := range refs {
		id := "ref-" + string(rune('1'+i))
		lane := actors.Lane{Batch: i/3 + 1, Ref: &ref, Spec: lanes.Spec{
			ID: id, Name: "pi-plans-refs-adhoc-" + id, Dir: ref.LocalPath, Model: "m/x", Tools: []string{"read", "grep", "find", "ls"},
			SystemPrompt: promptOf(t, actors.RefAnalyst),
			Task: actors.RefBrief{
				RefID: ref.ID, Title: ref.Title, URL: ref.URL, Kind: ref.Kind, LocalPath: ref.LocalPath, Context: "a Go daemon", LanguageTag: "fr",
			}.Text(),
		}}
		if ref.LocalPath != dir {
			lane.Refused = "reference directory not found: " + ref.LocalPath
		}
		want = append(want, lane)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
