package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pilothouse/integration/piharness"
)

func (w *workspace) stateRoot() string { return filepath.Join(w.Dir, ".git", "pi_plans") }

func (w *workspace) runFile(runID, name string) string {
	return filepath.Join(w.stateRoot(), "runs", runID, filepath.FromSlash(name))
}

// runs are the ids of all runs.
func (w *workspace) runs() []string {
	w.t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.stateRoot(), "runs"))
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids
}

// ledger reads a ledger, an object a line.
func (w *workspace) ledger(runID, name string) []map[string]any {
	w.t.Helper()
	text := piharness.ReadFile(w.t, w.runFile(runID, name))
	if text != "" && !strings.HasSuffix(text, "\n") {
		w.t.Errorf("%s does not end with a newline", name)
	}
	var entries []map[string]any
	for line := range strings.Lines(text) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			w.t.Fatalf("%s: %v in %q", name, err, line)
		}
		entries = append(entries, entry)
	}
	return entries
}

// sidecar is what the tests read of the private record of a round.
type sidecar struct {
	RoundID, CompletedAt string
	Lanes                []struct {
		LaneID, Status, CompletedAt string
		Attempts                    int
		Error                       struct{ Class, Message string }
	}
}

func (w *workspace) sidecar(runID, roundID string) sidecar {
	w.t.Helper()
	var record sidecar
	if err := json.Unmarshal([]byte(piharness.ReadFile(w.t, w.runFile(runID, "pilothouse/rounds/"+roundID+".json"))), &record); err != nil {
		w.t.Fatal(err)
	}
	return record
}

// checkTabs checks that text is JSON as the other program writes it: indented
// with tabs, one newline at its end.
func checkTabs(t *testing.T, name, text string) {
	t.Helper()
	var want bytes.Buffer
	if err := json.Indent(&want, []byte(text), "", "\t"); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got := strings.TrimRight(text, "\n"); got != strings.TrimRight(want.String(), "\n") || text != got+"\n" {
		t.Errorf("%s is not indented with tabs and ended with one newline:\n%s", name, text)
	}
}

// keysOf are the keys of a JSON object in the order in which they stand.
func keysOf(t *testing.T, text string) []string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, name.(string)) //nolint:errcheck // the tokens of an object alternate between key and value
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// tree is everything below a directory: what it is, its mode and its content. In a
// directory at work files come and go; one that is gone when its turn comes is
// left out.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			var content string
			if content, err = contentOf(path, entry); err == nil {
				var name string
				name, err = filepath.Rel(dir, path)
				all[filepath.ToSlash(name)] = content
			}
		}
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// contentOf is the mode of a file and, if it is a regular one, what it holds.
func contentOf(path string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return info.Mode().String(), nil
	}
	data, err := os.ReadFile(path)
	return info.Mode().String() + " " + string(data), err
}

// changed names the files that differ between two trees.
func changed(before, after map[string]string) []string {
	var names []string
	for name, content := range after {
		if earlier, there := before[name]; !there || earlier != content {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			names = append(names, name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// checkPrivate checks that nothing in the state root can be read by others and
// that nothing unfinished lies about.
func (w *workspace) checkPrivate() {
	w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(tree(w.t, w.stateRoot()))) {
		info, err := os.Lstat(filepath.Join(w.stateRoot(), name))
		if err != nil {
			w.t.Fatal(err)
		}
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = fs.ModeDir | 0o700
		}
		if info.Mode() != want {
			w.t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
		if strings.HasSuffix(name, ".tmp") || strings.HasPrefix(name, "tmp/") || strings.HasSuffix(name, "/owner.json") && !strings.HasSuffix(name, "pilothouse/owner.json") || strings.Contains(name, "alive-") {
			w.t.Errorf("%s was left behind", name)
		}
	}
	notes, err := os.ReadDir(filepath.Join(homeOf(w.Env), ".local", "state", "pilothouse", "children"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(notes) != 0 {
		w.t.Errorf("notes on children that are gone: %v, %v", notes, err)
	}
}
