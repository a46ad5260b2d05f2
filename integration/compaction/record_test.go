package compaction_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// keep writes the requests of real sessions where the golden tests of the compiler find
// them, when PILOTHOUSE_RECORD names that folder. What only makes them long is left out.
func keep(t *testing.T, mode string, requests []object) {
	t.Helper()
	dir := os.Getenv("PILOTHOUSE_RECORD")
	if dir == "" {
		return
	}
	for i, request := range requests {
		preparation, _ := request["preparation"].(object)
		delete(preparation, "messagesToSummarize")
		delete(preparation, "turnPrefixMessages")
		entries, _ := request["branchEntries"].([]any)
		for _, e := range entries {
			entry, _ := e.(object)
			delete(entry, "systemMessage")
			if message, _ := entry["message"].(object); message["role"] == "system" {
				entry["message"] = object{"role": "system", "content": "prompt"}
			}
		}
		path := filepath.Join(dir, fmt.Sprintf("pi-1.6.0-%s-%d.json", mode, i+1))
		if err := os.WriteFile(path, append(encode(t, request), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
