package compaction_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/supervisor/compaction"
)

var update = flag.Bool("update", false, "write the summaries of the recorded sessions anew")

// The requests in testdata are those of a real Pi, recorded by integration/compaction
// (see its record_test.go): rpc mode with compactions by hand, json mode with such at
// the threshold, the later ones after an earlier compaction.
func TestTheSummariesOfRecordedSessionsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sessions: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := compaction.ParseRequest(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got := compaction.Compact(r)
		if got.Compaction == nil {
			t.Errorf("%s: %s (%s)", path, got.Action, got.Reason)
			continue
		}
		text := "kept from " + got.Compaction.FirstKeptEntryID + "\n\n" + got.Compaction.Summary + "\n"
		golden := strings.TrimSuffix(path, ".json") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		var doc struct{ BranchEntries []object }
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if problem := replay(plain(doc.BranchEntries), *got.Compaction).problem(); problem != "" {
			t.Errorf("%s: %s", path, problem)
		}
	}
}

// plain makes the parts of decoded messages what the builders of this package make them.
func plain(entries []object) []object {
	for _, e := range entries {
		m, _ := e["message"].(object)
		list, ok := m["content"].([]any)
		if !ok {
			continue
		}
		parts := make([]object, len(list))
		for i := range list {
			parts[i], _ = list[i].(object)
		}
		m["content"] = parts
	}
	return entries
}
