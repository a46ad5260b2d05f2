package store_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func TestNotesAreEmptyAtFirstAndReadBackAsWritten(t *testing.T) {
	t.Parallel()
	run := newRun(t)
	if notes, err := run.LoadNotes(); err != nil || !cmp.Equal(notes, store.WorkflowNotes{}) {
		t.Fatalf("%+v, %v", notes, err)
	}
	if _, err := os.Stat(filepath.Join(run.Dir, "pilothouse", "workflow.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error("reading them has made the file")
	}
	want := store.WorkflowNotes{
		Schema: 1, AutoComplete: "s1",
		Execution: &store.ExecutionNotes{Session: "s1", ApprovedAt: "2026-05-01T12:00:00Z", Verified: map[string]string{"VC-1": "abc"}, GoalWait: json.RawMessage(`{"waiting":2}`)},
	}
	for _, change := range []func(*store.WorkflowNotes){
		func(n *store.WorkflowNotes) { n.AutoComplete = "s1" },
		func(n *store.WorkflowNotes) { n.Execution = want.Execution },
	} {
		if err := run.UpdateNotes(time.Now(), change); err != nil {
			t.Fatal(err)
		}
	}
	got, err := run.LoadNotes()
	compact := cmp.Transformer("compact", func(raw json.RawMessage) string { return strings.Join(strings.Fields(string(raw)), "") })
	if diff := cmp.Diff(want, got, compact); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestCorruptNotesAreToldAndPutAside(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, text := range map[string]string{"empty": "", "NUL": "\x00\x00", "cut": "{", "another type": "[]", "a later schema": `{"schema":2}`, "no schema": "{}"} {
		run := newRun(t)
		if err := run.UpdateNotes(now, func(*store.WorkflowNotes) {}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(run.Dir, "pilothouse", "workflow.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *store.CorruptError
		if _, err := run.LoadNotes(); !errors.As(err, &corrupt) || corrupt.Path != path {
			t.Errorf("%s: %v", name, err)
		}
		if err := run.UpdateNotes(now, func(n *store.WorkflowNotes) { n.AutoComplete = "s1" }); err != nil {
			t.Fatal(err)
		}
		if notes, err := run.LoadNotes(); err != nil || notes.AutoComplete != "s1" {
			t.Errorf("%s: %+v, %v", name, notes, err)
		}
		if kept, err := os.ReadFile(path + ".damaged-20260501T120000Z"); err != nil || string(kept) != text {
			t.Errorf("%s: kept %q, %v", name, kept, err)
		}
	}
}

func TestNotesOfARunThatIsGoneAreNotWritten(t *testing.T) {
	t.Parallel()
	gone := newRun(t)
	if err := os.RemoveAll(gone.Dir); err != nil {
		t.Fatal(err)
	}
	if err := gone.UpdateNotes(time.Now(), func(*store.WorkflowNotes) {}); !errors.Is(err, store.ErrNoRun) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(gone.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the run was made again")
	}
}
