package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkRefused checks that a command ended with the status, said why in one
// sentence with the word in it, and printed no result.
func (e ended) checkRefused(t *testing.T, code int, word string) {
	t.Helper()
	if e.Code != code {
		t.Errorf("ended with %d, want %d", e.Code, code)
	}
	if e.Stdout != "" {
		t.Errorf("printed %q", e.Stdout)
	}
	if lines := strings.Count(e.Stderr, "\n"); lines != 1 || !strings.HasPrefix(e.Stderr, "pilothouse: ") {
		t.Errorf("stderr is no single sentence:\n%s", e.Stderr)
	}
	if !strings.Contains(e.Stderr, word) {
		t.Errorf("stderr does not name %q:\n%s", word, e.Stderr)
	}
}

func TestWrongWordsAreRefusedAndNothingIsTouched(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	path, empty := w.Write("PLAN.md", plan), w.Write("EMPTY.md", " \n\t\r\n")
	blank := w.Write("bin/empty", "")
	if err := os.Chmod(blank, 0o755); err != nil {
		t.Fatal(err)
	}
	notExecutable := w.Write("bin/plain", "#!/bin/sh\n")
	refine := func(args ...string) []string { return append([]string{"refine", path, "--model", "inherit"}, args...) }
	for name, tt := range map[string]struct {
		args []string
		code int
		word string
	}{
		"no plan is named":           {[]string{"refine"}, 2, "takes one plan file"},
		"two plans are named":        {[]string{"refine", path, path}, 2, "takes one plan file"},
		"no such plan":               {[]string{"refine", "nowhere.md", "--model", "inherit"}, 2, "nowhere.md"},
		"the plan is a directory":    {[]string{"refine", "docs", "--model", "inherit"}, 2, "docs is a directory"},
		"the plan is empty":          {[]string{"refine", empty, "--model", "inherit"}, 2, empty + " is empty"},
		"no reviewers":               {refine("--reviewers", "0"), 2, "--reviewers 0"},
		"four reviewers":             {refine("--reviewers", "4"), 2, "--reviewers 4"},
		"minus one reviewer":         {refine("--reviewers", "-1"), 2, "--reviewers -1"},
		"reviewers are no number":    {refine("--reviewers", "x"), 2, "reviewers"},
		"an unknown role":            {refine("--role", "x"), 2, `--role "x"`},
		"an unknown target":          {refine("--target", "x"), 2, `--target "x"`},
		"a model without a provider": {[]string{"refine", path, "--model", "plain"}, 2, `--model "plain"`},
		"an empty model":             {[]string{"refine", path, "--model", ""}, 2, "--model"},
		"a model that is a flag":     {[]string{"refine", path, "--model", "--yolo/x"}, 2, "--model"},
		"a model with a space":       {[]string{"refine", path, "--model", "sim/pl ain"}, 2, "--model"},
		"a round id with a path":     {refine("--resume-round", "../x"), 2, "--resume-round"},
		"an unknown flag":            {refine("--frobnicate"), 2, "--frobnicate"},
		"an unknown command":         {[]string{"frobnicate"}, 2, "frobnicate"},
		"an unknown progress":        {refine("--progress", "loud"), 2, "--progress"},
		"no such workdir":            {refine("--workdir", "nowhere"), 2, "--workdir"},
		"no references":              {[]string{"analyze-refs", "--model", "inherit"}, 2, "--ref"},
		"a reference without id":     {[]string{"analyze-refs", "--ref", "docs"}, 2, "--ref"},
		"a reference named twice":    {[]string{"analyze-refs", "--ref", "a=docs", "--ref", "a=oven", "--model", "inherit"}, 2, `"a"`},
		"no such reference list":     {[]string{"analyze-refs", "--refs", "nowhere.json"}, 2, "nowhere.json"},
		"a reference list of text":   {[]string{"analyze-refs", "--refs", "README.md"}, 2, "README.md"},
		"an unknown action":          {[]string{"plans", "frobnicate"}, 2, "frobnicate"},
		"no action":                  {[]string{"plans"}, 2, "action"},
		"an action and an object":    {[]string{"plans", "show", "--json", "{}"}, 2, "not both"},
		"pi is missing":              {refine("--pi", "/nowhere/pi"), 1, "/nowhere/pi does not exist"},
		"pi is not on the PATH":      {refine("--pi", "pi-of-nobody"), 1, "pi-of-nobody"},
		"pi is a directory":          {refine("--pi", w.Dir), 1, "is a directory"},
		"pi is not executable":       {refine("--pi", notExecutable), 1, "is not executable"},
		"pi is an empty file":        {refine("--pi", blank), 1, "is an empty file"},
		"pi is missing for refs":     {[]string{"analyze-refs", "--ref", "a=docs", "--model", "inherit", "--pi", "/nowhere/pi"}, 1, "/nowhere/pi"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tree(t, w.Dir)
			w.run(tt.args...).checkRefused(t, tt.code, tt.word)
			if names := changed(before, tree(t, w.Dir)); len(names) != 0 {
				t.Errorf("these files changed: %v", names)
			}
		})
	}
	if got := w.Model.Stats().Requests; got != 0 {
		t.Errorf("the model got %d requests", got)
	}
}

func TestAWorkspaceThatCannotBeUsedIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(w *workspace) // may move w.Dir
		code    int
		word    string
	}{
		"git is missing": {func(w *workspace) { w.setenv("PATH", filepath.Join(w.Dir, "docs")) }, 1, "git"},
		"a bare repository": {func(w *workspace) {
			w.Dir = filepath.Join(w.Dir, "bare")
			w.git("init", "--quiet", "--bare", ".")
		}, 1, "bare"},
		"a broken .git file": {func(w *workspace) {
			w.Dir = filepath.Join(w.Dir, "clone")
			w.Write(".git", "gitdir: /nowhere\n")
		}, 1, "clone"},
		"the home directory": {func(w *workspace) {
			w.Dir = homeOf(w.Env)
			if err := os.MkdirAll(w.Dir, 0o755); err != nil {
				w.t.Fatal(err)
			}
		}, 1, "home"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			tt.prepare(w)
			w.Write("PLAN.md", plan)
			before := tree(t, w.Dir)
			for _, args := range [][]string{
				{"refine", "PLAN.md", "--model", "inherit"},
				{"analyze-refs", "--ref", "a=.", "--model", "inherit"},
				{"plans", "init"},
				{"plans", "start-run", "--topic", "x", "--skill", "x", "--requestText", "x"},
			} {
				w.run(args...).checkRefused(t, tt.code, tt.word)
			}
			for _, name := range changed(before, tree(t, w.Dir)) {
				if !strings.HasPrefix(name, ".local") { // the notes on children, in the home of every user
					t.Errorf("%s changed", name)
				}
			}
		})
	}
}

func TestAHomeThatCannotBeWrittenKeepsNobodyFromAReview(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", say(nothingFound)))
	path := w.Write("PLAN.md", plan)
	w.setenv("HOME", os.DevNull)
	w.must(0, "refine", path, "--model", "inherit")
}

// git runs git in the workspace, whose directory is made first.
func (w *workspace) git(args ...string) {
	w.t.Helper()
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.Dir, w.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func homeOf(env []string) string {
	home := ""
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "HOME="); ok {
			home = value
		}
	}
	return home
}
