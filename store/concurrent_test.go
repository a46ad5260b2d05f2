package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pilothouse/store"
)

func TestConcurrentWritersLoseNothing(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	const goroutines, processes = 3, 3
	var started []*process
	for i := range processes {
		started = append(started, startProcess(t, "write", dir, fmt.Sprint("p", i)))
	}
	done := make(chan struct{})
	var writers, reader sync.WaitGroup
	reader.Go(func() { readWhole(t, dir, done) })
	for i := range goroutines {
		writers.Go(func() {
			if err := writeEverything(dir, fmt.Sprint("g", i), writesEach); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	for _, p := range started {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	reader.Wait()

	const total = (goroutines + processes) * writesEach
	config, err := dir.Root.LoadConfig()
	if err != nil || config.RefsRoot == nil || *config.RefsRoot != fmt.Sprint(total) {
		t.Errorf("config: %v, %v", config.RefsRoot, err)
	}
	cp, err := dir.LoadCheckpoint()
	if err != nil || cp.Revision != total+1 || len(cp.AnsweredQuestions) != total {
		t.Errorf("checkpoint: revision %d, %d answers, %v", cp.Revision, len(cp.AnsweredQuestions), err)
	}
	decisions, err := dir.Decisions()
	seen := map[string]bool{}
	for _, decision := range decisions {
		seen[decision.Question] = true
	}
	if err != nil || len(decisions) != total || len(seen) != total {
		t.Errorf("ledger: %d lines, %d different, %v", len(decisions), len(seen), err)
	}
	entries, err := os.ReadDir(dir.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".tmp") {
			t.Errorf("left behind: %s", filepath.Join(dir.Dir, entry.Name()))
		}
	}
}

// readWhole checks that a reader without a lock only ever sees whole files.
func readWhole(t *testing.T, dir store.RunDir, done <-chan struct{}) {
	revision := 0
	for {
		cp, err := dir.LoadCheckpoint()
		if err != nil || cp.Revision < revision {
			t.Errorf("revision %d after %d, %v", cp.Revision, revision, err)
			return
		}
		revision = cp.Revision
		if _, err := dir.Root.LoadConfig(); err != nil {
			t.Error(err)
			return
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestAWriterKilledAtAnyMomentLeavesEveryFileWhole(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	answered := 0
	for round := range 8 {
		writer := startProcess(t, "write on", dir, fmt.Sprint("k", round))
		for {
			cp, err := dir.LoadCheckpoint()
			if err != nil {
				t.Fatal(err)
			}
			if len(cp.AnsweredQuestions) > answered+round {
				break
			}
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Wait()
		cp, err := dir.LoadCheckpoint()
		if err != nil || cp.Revision != len(cp.AnsweredQuestions)+1 {
			t.Fatalf("round %d: revision %d, %d answers, %v", round, cp.Revision, len(cp.AnsweredQuestions), err)
		}
		answered = len(cp.AnsweredQuestions)
		if _, err := dir.Root.LoadConfig(); err != nil {
			t.Fatal(err)
		}
		// A decision is recorded before its answer, so none is missing.
		decisions, err := dir.Decisions()
		if err != nil || len(decisions) < answered {
			t.Fatalf("round %d: %d decisions for %d answers, %v", round, len(decisions), answered, err)
		}
	}
	if err := writeEverything(dir, "after", 1); err != nil {
		t.Errorf("the locks of the dead: %v", err)
	}
}

func TestRunsStartedAtOnceAreAllDifferent(t *testing.T) {
	t.Parallel()
	root := ensure(t, newRepo(t))
	const starts = 12
	ids := make(chan string, starts)
	var group sync.WaitGroup
	for range starts {
		group.Go(func() {
			run, _, err := store.StartRun(root, store.StartRunRequest{Topic: "t"}, pinned)
			if err != nil {
				t.Error(err)
			}
			ids <- run.RunID
		})
	}
	group.Wait()
	close(ids)
	seen := map[string]bool{}
	for id := range ids {
		seen[id] = true
	}
	if runs, err := root.Runs(); len(seen) != starts || len(runs) != starts || err != nil {
		t.Errorf("%d ids, %d runs, %v", len(seen), len(runs), err)
	}
}

func TestAWorkspaceCanBeSetUpByManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, _, err := store.Ensure(t.Context(), dir); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if content := read(t, filepath.Join(dir, ".git/pi_plans/config.json")); content != defaultConfigFile {
		t.Errorf("got %s", content)
	}
}
