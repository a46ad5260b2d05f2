package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
)

// broken are the ways in which a file on disk can be no document any more.
var broken = map[string]string{
	"empty": "", "cut off": "{\n\t\"schema\": 1,\n\t\"runId", "NUL bytes": strings.Repeat("\x00", 1900), "a list": "[]\n", "null": "null\n",
}

func TestABrokenConfigIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	for name, bytes := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			w.must(0, "plans", "init")
			w.Write("PLAN.md", plan)
			config := filepath.Join(w.stateRoot(), "config.json")
			piharness.WriteFile(t, config, bytes)
			before := tree(t, w.Dir)
			for _, args := range [][]string{
				{"refine", "PLAN.md", "--model", "inherit"}, {"analyze-refs", "--ref", "a=docs", "--model", "inherit"},
				{"plans", "show"}, {"plans", "init"}, {"plans", "set-language", "--tag", "de", "--languageSource", "user"},
			} {
				w.run(args...).checkRefused(t, 1, config)
			}
			if names := changed(before, tree(t, w.Dir)); len(names) != 0 {
				t.Errorf("these files changed: %v", names)
			}
		})
	}
}

func TestABrokenCheckpointIsRefusedAndKeptAndHurtsNoOtherRun(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, on("Goal:", say(nothingFound)))
	path := w.Write("PLAN.md", plan)
	w.must(0, "plans", "start-run", "--topic", "One", "--skill", "x", "--requestText", "x")
	run := w.runs()[0]
	checkpoint := w.runFile(run, "checkpoint.json")
	for name, bytes := range broken {
		t.Run(name, func(t *testing.T) {
			piharness.WriteFile(t, checkpoint, bytes)
			before := tree(t, w.Dir)
			w.run("refine", path, "--run", run, "--model", "inherit").checkRefused(t, 1, checkpoint)
			w.run("plans", "record-checkpoint", "--checkpoint", `{"transition":"plan-written","planPath":"PLAN.md"}`).checkRefused(t, 1, checkpoint)
			for _, name := range changed(before, tree(t, w.Dir)) {
				// The change of an owner leaves its trace in our own folder.
				if !strings.Contains(name, "/pilothouse") {
					t.Errorf("%s changed", name)
				}
			}
		})
	}
	piharness.WriteFile(t, checkpoint, broken["cut off"])
	r := w.must(0, "refine", path, "--model", "inherit", "--json").round(t)
	if r.RunID == run {
		t.Error("the round went to the broken run")
	}
	if got := piharness.ReadFile(t, checkpoint); got != broken["cut off"] {
		t.Errorf("the broken checkpoint became %q", got)
	}
	if e := w.must(0, "runs"); !strings.Contains(e.Stdout, r.RunID) || !strings.Contains(e.Stdout+e.Stderr, run) {
		t.Errorf("the list lacks a run:\n%s%s", e.Stdout, e.Stderr)
	}
}

func TestAStateDirectoryThatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	path := w.Write("PLAN.md", plan)
	w.must(0, "plans", "init")
	j := w.startUnprivileged(func() {
		if err := filepath.WalkDir(w.stateRoot(), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				return os.Chmod(path, 0o500)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}, "refine", path, "--model", "inherit")
	t.Cleanup(func() {
		_ = filepath.WalkDir(w.stateRoot(), func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return err
		})
	})
	before := tree(t, w.Dir)
	j.wait().checkRefused(t, 1, w.stateRoot())
	for _, name := range changed(before, tree(t, w.Dir)) {
		if strings.HasPrefix(name, ".git/") {
			t.Errorf("%s changed", name)
		}
	}
	if w.Model.Stats().Requests != 0 {
		t.Error("the model was asked although nothing could be recorded")
	}
}
