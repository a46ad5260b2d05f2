package bench_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/integration/piharness"
)

const (
	manyRuns = 5_000
	fewRuns  = 50
	// ledgerBytes makes the ledgers of all runs, three each, 2 GB together. They are
	// holes: whoever reads them takes the time, the disk does not have to hold them.
	ledgerBytes = 2_000_000_000 / manyRuns / 3
)

// BenchmarkRuns lists the runs of a workspace with a long history: 5,000 runs with
// ledgers of 2 GB. What a person is shown, the newest of them, is compared with the
// same in a workspace of 50 runs; all of them, as a script gets them, with a program
// that reads the same files one after the other and parses them.
//
//	x-fifty  the newest of 5,000 over the newest of 50
//	x-plain  all over the plain reading
//	runs/s   of the full list
//	ms       wall time of the newest of 5,000
func BenchmarkRuns(b *testing.B) {
	binary, env := piharness.Binary(b), piharness.Env(b, b.TempDir())
	many, few := history(b, manyRuns), history(b, fewRuns)
	for b.Loop() {
		times := map[string][]float64{}
		took := func(what string, work func()) {
			begin := time.Now()
			work()
			times[what] = append(times[what], time.Since(begin).Seconds())
		}
		list := func(dir string, args ...string) func() {
			return func() {
				g := ground{dir: dir, env: env}
				out, err := g.command(append([]string{binary, "runs"}, args...)...).Output()
				if err != nil || len(out) < 1000 {
					b.Fatalf("runs: %v, %d bytes", err, len(out))
				}
			}
		}
		for range pairs {
			took("newest of many", list(many))
			took("newest of few", list(few))
			took("all", list(many, "--json"))
			took("plain", func() { readPlainly(b, many) })
		}
		newest, all := median(times["newest of many"]), median(times["all"])
		b.ReportMetric(newest/median(times["newest of few"]), "x-fifty")
		b.ReportMetric(all/median(times["plain"]), "x-plain")
		b.ReportMetric(manyRuns/all, "runs/s")
		b.ReportMetric(newest*1000, "ms")
	}
}

// history is a repository with runs, all of them done.
func history(b *testing.B, runs int) string {
	b.Helper()
	dir := piharness.Repo(b)
	for n := range runs {
		at := time.Date(2025, 1, 1, 0, n, 0, 0, time.UTC)
		id, stamp := at.Format("20060102T150405Z")+"-bake-bread", at.Format("2006-01-02T15:04:05Z")
		run := filepath.Join(dir, ".git", "pi_plans", "runs", id)
		if err := os.MkdirAll(run, 0o700); err != nil {
			b.Fatal(err)
		}
		for name, text := range map[string]string{
			"run.json": fmt.Sprintf("{\n\t\"schema\": 1,\n\t\"run_id\": %q,\n\t\"skill\": \"plan-normal\",\n\t\"topic\": \"bake-bread\",\n\t\"request_text\": \"Bake more bread\",\n\t\"workdir\": %q,\n\t\"artifact_dir\": %q,\n\t\"language_tag\": null,\n\t\"status\": \"done\",\n\t\"created_at\": %q,\n\t\"updated_at\": %q\n}\n",
				id, dir, filepath.Join(dir, "docs"), stamp, stamp),
			"checkpoint.json": fmt.Sprintf("{\n\t\"schema\": 1,\n\t\"runId\": %q,\n\t\"revision\": 7,\n\t\"generation\": 1,\n\t\"updatedAt\": %q,\n\t\"phase\": \"completed\",\n\t\"nextAction\": \"none\",\n\t\"originWorkdir\": %[3]q,\n\t\"workdir\": %[3]q,\n\t\"worktreeRoot\": %[3]q,\n\t\"commonDir\": %[3]q,\n\t\"plan\": null,\n\t\"pendingQuestion\": null,\n\t\"answeredQuestions\": [],\n\t\"reviewRounds\": []\n}\n",
				id, stamp, dir),
		} {
			if err := os.WriteFile(filepath.Join(run, name), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		for _, ledger := range []string{"decisions.jsonl", "subagents.jsonl", "refs.jsonl"} {
			path := filepath.Join(run, ledger)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, ledgerBytes)); err != nil {
				b.Fatal(err)
			}
		}
	}
	return dir
}

// readPlainly reads what a list is made of.
func readPlainly(b *testing.B, dir string) {
	b.Helper()
	runs := filepath.Join(dir, ".git", "pi_plans", "runs")
	entries, err := os.ReadDir(runs)
	if err != nil {
		b.Fatal(err)
	}
	for _, entry := range entries {
		for _, name := range []string{"run.json", "checkpoint.json", "owner.json"} {
			data, err := os.ReadFile(filepath.Join(runs, entry.Name(), name))
			if errors.Is(err, fs.ErrNotExist) && name == "owner.json" {
				continue
			}
			var document map[string]any
			if err := errors.Join(err, json.Unmarshal(data, &document)); err != nil {
				b.Fatal(err)
			}
		}
	}
}
