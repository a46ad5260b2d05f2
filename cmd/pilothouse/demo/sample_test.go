package demo_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/cmd/pilothouse/demo"
	"pilothouse/integration/scriptedmodel"
)

// lane is one lane of the demo with the script that its brief calls up.
type lane struct {
	actors.Lane
	role  actors.Role
	calls []scriptedmodel.ToolCall
	text  string
}

// scriptedLanes plans the demo's rounds as the supervisor does.
func scriptedLanes(t *testing.T) map[string]lane {
	t.Helper()
	sample := writeSample(t)
	plan := filepath.Join(sample.Workspace, demo.Plan)
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	review := actors.ReviewRequest{
		Target: actors.TargetPlan, PlanPath: plan, PlanText: string(text), Reviewers: 3, Dir: sample.Workspace, NamePrefix: "p", RunID: "r",
	}
	found := map[string]lane{}
	add := func(role actors.Role, planned []actors.Lane, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range planned {
			if l.Refused != "" {
				t.Errorf("lane %s is refused: %s", l.Spec.ID, l.Refused)
			}
			calls, answer := scriptFor(t, l.Spec.Task)
			found[l.Spec.ID] = lane{l, role, calls, answer}
		}
	}
	reviews, err := actors.PlanReview(review)
	add(actors.Reviewer, reviews, err)
	criticism, err := actors.PlanCriticism(review, time.Now())
	add(actors.Criticizer, criticism, err)
	analyses, err := actors.PlanAnalysis(actors.AnalysisRequest{Refs: sample.References, Context: demo.Context, RunID: "r"})
	add(actors.RefAnalyst, analyses, err)
	return found
}

// scriptFor finds the rule that answers a brief. More than one would mean that
// the order of the rules decides.
func scriptFor(t *testing.T, brief string) (calls []scriptedmodel.ToolCall, answer string) {
	t.Helper()
	rules, err := demo.Rules()
	if err != nil {
		t.Fatal(err)
	}
	matching := 0
	for _, rule := range rules {
		if !regexp.MustCompile(rule.Match).MatchString(brief) {
			continue
		}
		matching++
		last := len(rule.Steps) - 1
		for _, step := range rule.Steps[:last] {
			calls = append(calls, step.Tools...)
		}
		answer = rule.Steps[last].Text
	}
	if matching != 1 {
		t.Fatalf("%d rules match this brief, want 1:\n%s", matching, brief)
	}
	return calls, answer
}

func writeSample(t *testing.T) demo.Sample {
	t.Helper()
	sample, err := demo.Write(t.Context(), t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

func TestEveryRuleAnswersOneLane(t *testing.T) {
	t.Parallel()
	rules, err := demo.Rules()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(scriptedLanes(t)); got != 8 || len(rules) != got {
		t.Errorf("there are %d rules for %d lanes, want 8 of each", len(rules), got)
	}
}

func TestEveryAnswerKeepsTheGrammarOfItsRole(t *testing.T) {
	t.Parallel()
	for id, lane := range scriptedLanes(t) {
		report := lane.role.Judge(lane.text)
		if !report.WellFormed {
			t.Errorf("%s: %v", id, report.Problems)
		}
		if report.Review != nil && len(report.Review.Findings) < 2 || report.Criticism != nil && len(report.Criticism.Questions) < 2 {
			t.Errorf("%s reports too little to be worth watching", id)
		}
	}
}

var (
	citation = regexp.MustCompile(`([\w./-]+\.\w+):(\d+)(?: — "(.*)")?`)
	absence  = regexp.MustCompile(`([\w./-]+) — no match for "(.*)"`)
)

func TestEveryCitationStandsInTheFileWhereTheAnswerSaysSo(t *testing.T) {
	t.Parallel()
	for id, lane := range scriptedLanes(t) {
		cited := citation.FindAllStringSubmatch(lane.text, -1)
		quotes := 0
		for _, m := range cited {
			checkCitation(t, id, lane, m[1], m[2], m[3])
			if m[3] != "" {
				quotes++
			}
		}
		if quotes == 0 {
			t.Errorf("%s quotes nothing", id)
		}
		for _, m := range absence.FindAllStringSubmatch(lane.text, -1) {
			if text := readLines(t, lane, m[1]); strings.Contains(strings.Join(text, "\n"), m[2]) || !opened(lane, m[1]) {
				t.Errorf("%s says that %s has no %q; it has, or the lane never opened it", id, m[1], m[2])
			}
		}
	}
}

func checkCitation(t *testing.T, id string, lane lane, path, number, quote string) {
	t.Helper()
	lines := readLines(t, lane, path)
	line, err := strconv.Atoi(number)
	if err != nil || line < 1 || line > len(lines) {
		t.Errorf("%s cites %s:%s, a file of %d lines", id, path, number, len(lines))
		return
	}
	// A sentence may begin in the middle of a line.
	if got := lines[line-1]; strings.TrimSpace(got) == "" || !strings.Contains(strings.ToLower(got), strings.ToLower(quote)) {
		t.Errorf("%s quotes %s:%d as %q, but there stands %q", id, path, line, quote, got)
	}
	if !opened(lane, path) {
		t.Errorf("%s cites %s without having read it", id, path)
	}
}

func readLines(t *testing.T, lane lane, path string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(lane.Spec.Dir, path))
	if err != nil {
		t.Error(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func opened(lane lane, path string) bool {
	return slices.ContainsFunc(lane.calls, func(c scriptedmodel.ToolCall) bool {
		return c.Name == "read" && argument(c, "path") == path
	})
}

func argument(call scriptedmodel.ToolCall, name string) string {
	args, _ := call.Args.(map[string]string) // nil has no arguments
	return args[name]
}

func TestWhatAReviewQuotesIsReadBackFromItByTheParser(t *testing.T) {
	t.Parallel()
	for id, lane := range scriptedLanes(t) {
		if lane.role != actors.Reviewer {
			continue
		}
		for _, finding := range actors.ParseReview(lane.text).Findings {
			for _, e := range finding.Evidence {
				if e.Line > 0 && !strings.Contains(readLines(t, lane, e.Path)[e.Line-1], e.Quote) || e.Line > 0 && e.Quote == "" {
					t.Errorf("%s %s: the parser reads %+v", id, finding.ID, e)
				}
			}
		}
	}
}

func TestEveryToolCallIsOfAToolThatTheLaneHasOnAPathThatIsThere(t *testing.T) {
	t.Parallel()
	for id, lane := range scriptedLanes(t) {
		if n := len(lane.calls); n < 2 || n > 4 {
			t.Errorf("%s makes %d calls, want 2 to 4", id, n)
		}
		for _, call := range lane.calls {
			path, pattern := argument(call, "path"), argument(call, "pattern")
			info, err := os.Stat(filepath.Join(lane.Spec.Dir, path))
			if path == "" || err != nil {
				t.Errorf("%s: %s %q: %v", id, call.Name, path, err)
				continue
			}
			if !slices.Contains(lane.Spec.Tools, call.Name) || (call.Name == "read") == info.IsDir() {
				t.Errorf("%s may not call %s on %s", id, call.Name, path)
			}
			if call.Name == "grep" && !foundBelow(t, filepath.Join(lane.Spec.Dir, path), pattern) {
				t.Errorf("%s searches %s for %q, which is not there", id, path, pattern)
			}
		}
	}
}

func foundBelow(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		found = found || strings.Contains(string(data), text)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

func TestTheWorkspaceIsARepositoryWithOneCommitAndTheReferencesLieOutside(t *testing.T) {
	t.Parallel()
	sample := writeSample(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"rev-list", "--count", "HEAD"}, "1"},
		{[]string{"status", "--porcelain"}, ""},
		{[]string{"ls-files", demo.Plan, "src/links.js"}, "docs/PLAN_v1.md\nsrc/links.js"},
	} {
		out, err := exec.Command("git", append([]string{"-C", sample.Workspace}, test.args...)...).Output()
		if diff := cmp.Diff(test.want, strings.TrimSpace(string(out))); diff != "" || err != nil {
			t.Errorf("git %v: %v %s", test.args, err, diff)
		}
	}
	for _, ref := range sample.References {
		if rel, err := filepath.Rel(sample.Workspace, ref.LocalPath); err != nil || filepath.IsLocal(rel) {
			t.Errorf("reference %s lies in the workspace: %s, %v", ref.ID, rel, err)
		}
	}
}

func TestTheCommitNeedsNothingOfThePersonsGit(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	hook := filepath.Join(home, "hooks", "pre-commit")
	for path, text := range map[string]string{
		filepath.Join(home, ".gitconfig"): "[core]\n\thooksPath = " + filepath.Dir(hook) + "\n[commit]\n\tgpgSign = true\n[user]\n\tuseConfigOnly = true\n",
		hook:                              "#!/bin/sh\nexit 1\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := demo.Write(t.Context(), t.TempDir(), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}); err != nil {
		t.Error(err)
	}
}

func TestWriteKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := filepath.Join(dir, "quaylink", "README.md")
	if err := os.Mkdir(filepath.Dir(mine), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.Write(t.Context(), dir, os.Environ()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	if data, err := os.ReadFile(mine); err != nil || string(data) != "mine" {
		t.Errorf("the file now holds %q, %v", data, err)
	}
}
