package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pilothouse/store"
)

// unfinished is a workspace with runs of these topics, one a minute.
func unfinished(t *testing.T, topics ...string) (dir string, runs []store.RunDir) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	root, _, err := store.Ensure(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, topic := range topics {
		now := time.Date(2026, 5, 1, 12, i, 0, 0, time.UTC)
		run, _, err := store.StartRun(root, store.StartRunRequest{Topic: topic, Skill: "plan-small", RequestText: "plan " + topic}, now)
		if err != nil {
			t.Fatal(err)
		}
		started, err := root.Run(run.RunID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := started.CreateCheckpoint(now); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, started)
	}
	// The active run is over, so that nobody has chosen one.
	if _, err := runs[len(runs)-1].SetStatus(store.StatusAbandoned, time.Now()); err != nil {
		t.Fatal(err)
	}
	return dir, runs
}

// typing runs pilothouse with a person at the terminal who types this.
func typing(dir, typed string, args ...string) (status int, stdout, stderr string) {
	var out, message bytes.Buffer
	status = run(append(args, "--workdir", dir), streams{in: strings.NewReader(typed), out: &out, err: &message, terminal: true})
	return status, out.String(), message.String()
}

func TestResumeAsksWhichRunIsMeantAndPrintsItsBrief(t *testing.T) {
	t.Parallel()
	dir, runs := unfinished(t, "one", "two", "over")
	status, out, message := typing(dir, "2\n", "resume")
	if status != exitDone || !strings.HasPrefix(out, "PI-PLANS RESUME: run "+runs[0].ID) {
		t.Errorf("%d, %q, %q", status, out, message)
	}
	if first, second := strings.Index(message, runs[1].ID), strings.Index(message, runs[0].ID); first < 0 || second < first || strings.Contains(message, runs[2].ID) {
		t.Errorf("it offered %q", message)
	}
	if status, _, message := typing(dir, "3\n", "resume"); status != exitUsage || !strings.Contains(message, `"3" is none of 1 to 2`) {
		t.Errorf("%d, %q", status, message)
	}
	var out2, message2 bytes.Buffer // nobody at a terminal
	status = run([]string{"resume", "--workdir", dir}, streams{in: strings.NewReader(""), out: &out2, err: &message2})
	if status != exitUsage || !strings.Contains(message2.String(), runs[1].ID+", "+runs[0].ID) {
		t.Errorf("%d, %q", status, message2.String())
	}
}

func TestOnlyAClearYesAbandonsARun(t *testing.T) {
	t.Parallel()
	dir, runs := unfinished(t, "one", "over")
	for _, typed := range []string{"\n", "no\n", "maybe\n"} {
		if status, _, message := typing(dir, typed, "abandon", runs[0].ID); status != exitRefused || !strings.Contains(message, "nothing was changed") {
			t.Errorf("%q: %d, %q", typed, status, message)
		}
	}
	if run, err := runs[0].Load(); err != nil || run.Status != store.StatusPlanning {
		t.Errorf("status %s, %v", run.Status, err)
	}
	if status, out, message := typing(dir, "Yes\n", "abandon", runs[0].ID); status != exitDone || !strings.Contains(out, "is abandoned") {
		t.Errorf("%d, %q, %q", status, out, message)
	}
}

func TestAReviewEndsByOneOfTheKnownWords(t *testing.T) {
	t.Parallel()
	for word, part := range map[string]string{"": "", "goal": "Goal wait", "high": "high severity", "1": "1 round", "3": "3 rounds"} {
		if got, err := terminationOf(word); err != nil || !strings.Contains(got, part) || (part == "") != (got == "") {
			t.Errorf("%q: %q, %v", word, got, err)
		}
	}
	if got, err := terminationOf("4"); err == nil {
		t.Errorf("4 rounds became %q", got)
	}
}
