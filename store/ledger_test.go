package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/store"
)

func TestLedgerLinesHaveTheKeysOfTheFormatInOrder(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	model := "p/m"
	decision, err := dir.AppendDecision(store.Decision{Question: "q <>", Options: []string{"a", "b"}, Answer: "a", AnswerSource: "user", QuestionID: "q1"}, pinned)
	if err != nil || decision.RecordedAt != "2026-08-25T13:00:00Z" {
		t.Fatal(decision, err)
	}
	if _, err := dir.AppendRef(store.Reference{Title: "t", URL: "u", Kind: "k", Retrieval: "r", LocalPath: "/x"}, pinned); err != nil {
		t.Fatal(err)
	}
	for _, entry := range []store.Subagent{{Role: "reviewer", Name: "n"}, {Role: "ref-analyst", Name: "m", Model: &model}} {
		if _, err := dir.AppendSubagent(entry, pinned); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"decisions.jsonl": `{"question":"q <>","options":["a","b"],"answer":"a","answer_source":"user","questionId":"q1","recorded_at":"2026-08-25T13:00:00Z"}` + "\n",
		"refs.jsonl":      `{"title":"t","url":"u","kind":"k","retrieval":"r","localPath":"/x","recorded_at":"2026-08-25T13:00:00Z"}` + "\n",
		"subagents.jsonl": `{"role":"reviewer","name":"n","model":null,"recorded_at":"2026-08-25T13:00:00Z"}` + "\n" +
			`{"role":"ref-analyst","name":"m","model":"p/m","recorded_at":"2026-08-25T13:00:00Z"}` + "\n",
	} {
		if diff := cmp.Diff(want, read(t, filepath.Join(dir.Dir, name))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLedgersAreReadPastBadLinesAndInBothSpellings(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	write(t, filepath.Join(dir.Dir, "decisions.jsonl"), strings.Join([]string{
		`{"question":"one","options":[],"answer":"a","answerSource":"user","recorded_at":"x"}`,
		``, `   `, `not json`, `[]`, `null`, `"x"`, `{}`, "\x00\x00\x00", `{"question":7}`,
		`{"question":"two","answer_source":"auto-complete"}{"question":"three"}`,
		`{"question":"four","type":"new","schema":9}{"quest`,
		`{"question":"` + strings.Repeat("x", 3<<20) + `"}`,
		`{"question":"cut off`,
	}, "\n"))
	decisions, err := dir.Decisions()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, decision := range decisions {
		got = append(got, decision.Question[:min(5, len(decision.Question))]+"/"+decision.AnswerSource)
	}
	if diff := cmp.Diff([]string{"one/user", "two/auto-complete", "three/", "four/", "xxxxx/"}, got); diff != "" {
		t.Error(diff)
	}
	write(t, filepath.Join(dir.Dir, "refs.jsonl"), `{"title":"a","local_path":"/1"}`+"\n"+`{"title":"b","localPath":"/2"}`)
	refs, err := dir.Refs()
	if err != nil || len(refs) != 2 || refs[0].LocalPath != "/1" || refs[1].LocalPath != "/2" {
		t.Errorf("got %+v, %v", refs, err)
	}
	write(t, filepath.Join(dir.Dir, "subagents.jsonl"), `{"role":"a","name":"n","session_dir":"/1"}`+"\n"+`{"role":"b","name":"n","sessionDir":"/2"}`+"\n")
	subagents, err := dir.Subagents()
	if err != nil || len(subagents) != 2 || subagents[0].SessionDir != "/1" || subagents[1].SessionDir != "/2" {
		t.Errorf("got %+v, %v", subagents, err)
	}
}

func TestAMissingLedgerIsEmptyAndAMissingRunIsAnError(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	if err := os.Remove(filepath.Join(dir.Dir, "decisions.jsonl")); err != nil {
		t.Fatal(err)
	}
	if decisions, err := dir.Decisions(); err != nil || len(decisions) != 0 {
		t.Errorf("got %v, %v", decisions, err)
	}
	if _, err := dir.AppendDecision(store.Decision{Question: "q"}, pinned); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(dir.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.AppendDecision(store.Decision{Question: "q"}, pinned); !errors.Is(err, store.ErrNoRun) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(dir.Dir); err == nil {
		t.Error("the run came back")
	}
}

func TestWhatACrashLeftOfALineIsKeptAsideAndTheNextEntryStartsANewLine(t *testing.T) {
	t.Parallel()
	whole := `{"question":"first","options":[],"answer":"","answer_source":"","recorded_at":"x"}`
	next := `{"question":"next","options":[],"answer":"","answer_source":"","recorded_at":"2026-08-25T13:00:00Z"}` + "\n"
	long := `{"question":"` + strings.Repeat("y", 200<<10)
	for name, test := range map[string]struct{ before, after, aside string }{
		"an empty ledger":            {"", next, ""},
		"a good end":                 {whole + "\n", whole + "\n" + next, ""},
		"a line without its end":     {whole, whole + "\n" + next, ""},
		"half a line":                {whole + "\n" + whole[:20], whole + "\n" + next, whole[:20]},
		"half a line and no other":   {whole[:20], next, whole[:20]},
		"NULs":                       {whole + "\n\x00\x00\x00", whole + "\n" + next, "\x00\x00\x00"},
		"half of a very long line":   {whole + "\n" + long, whole + "\n" + next, long},
		"something that is no entry": {whole + "\n17", whole + "\n" + next, "17"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newRun(t)
			path := filepath.Join(dir.Dir, "decisions.jsonl")
			write(t, path, test.before)
			if _, err := dir.AppendDecision(store.Decision{Question: "next"}, pinned); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, read(t, path)); diff != "" {
				t.Error(diff)
			}
			kept, err := filepath.Glob(filepath.Join(dir.Dir, "pilothouse/torn-*-decisions.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			aside := ""
			for _, file := range kept {
				aside += read(t, file)
			}
			if aside != test.aside {
				t.Errorf("kept %q, want %q", aside, test.aside)
			}
		})
	}
}
