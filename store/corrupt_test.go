package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"pilothouse/store"
)

var brokenBytes = map[string]string{
	"no bytes":        "",
	"NULs":            strings.Repeat("\x00", 1900),
	"a brace":         "{",
	"a list":          "[]",
	"null":            "null",
	"a string":        `"x"`,
	"an empty object": "{}",
	"trailing text":   "{} {}",
}

func TestAFileThatCannotBeUnderstoodIsReportedAndItsBytesStay(t *testing.T) {
	t.Parallel()
	files := map[string]struct {
		name string
		uses func(dir store.RunDir) map[string]error
	}{
		"config": {"../../config.json", func(dir store.RunDir) map[string]error {
			_, load := dir.Root.LoadConfig()
			_, update := dir.Root.UpdateConfig(func(c *store.Config) error { c.ArtifactRoot = "x"; return nil })
			_, _, start := store.StartRun(dir.Root, store.StartRunRequest{Topic: "t"}, pinned)
			_, _, ensure := store.Ensure(t.Context(), dir.Root.Workdir)
			return map[string]error{"load": load, "update": update, "start": start, "ensure": ensure}
		}},
		"run": {"run.json", func(dir store.RunDir) map[string]error {
			_, load := dir.Load()
			_, set := dir.SetStatus(store.StatusDone, pinned)
			return map[string]error{"load": load, "set status": set}
		}},
		"checkpoint": {"checkpoint.json", func(dir store.RunDir) map[string]error {
			_, load := dir.LoadCheckpoint()
			_, mutate := dir.MutateCheckpoint(nil, nil, pinned, store.HandoffOffered())
			return map[string]error{"load": load, "mutate": mutate}
		}},
		"owner": {"owner.json", func(dir store.RunDir) map[string]error {
			_, acquire := dir.Acquire(t.Context(), "s")
			_, _, owner := dir.Owner()
			return map[string]error{"acquire": acquire, "owner": owner}
		}},
		"round": {"pilothouse/rounds/r1.json", func(dir store.RunDir) map[string]error {
			_, load := dir.RoundDir().LoadRound("r1")
			_, all := dir.RoundDir().Rounds()
			return map[string]error{"load": load, "all": all}
		}},
		"compaction config": {"../../pi-vcc-config.json", func(dir store.RunDir) map[string]error {
			_, load := dir.Root.LoadCompactionConfig()
			return map[string]error{"load": load, "scaffold": dir.Root.ScaffoldCompactionConfig(t.Context())}
		}},
	}
	for file, test := range files {
		for kind, content := range brokenBytes {
			if kind == "an empty object" && strings.HasSuffix(file, "config") {
				continue // is completed, see the tests of the config
			}
			t.Run(file+" of "+kind, func(t *testing.T) {
				t.Parallel()
				dir := newRun(t)
				path := filepath.Join(dir.Dir, test.name)
				write(t, path, content)
				for use, err := range test.uses(dir) {
					var corrupt *store.CorruptError
					if !errors.As(err, &corrupt) {
						t.Errorf("%s: got %v", use, err)
						continue
					}
					if corrupt.Path != path || !strings.Contains(err.Error(), "corrupt") {
						t.Errorf("%s: got %v, want path %s", use, err, path)
					}
					if kind == "a brace" && !strings.HasPrefix(corrupt.Reason, "invalid JSON") {
						t.Errorf("%s: got reason %s", use, corrupt.Reason)
					}
				}
				if read(t, path) != content {
					t.Errorf("the bytes changed to %q", read(t, path))
				}
			})
		}
	}
}

func TestABrokenPointerMeansThatNoRunIsActive(t *testing.T) {
	t.Parallel()
	dir := newRun(t)
	for kind, content := range brokenBytes {
		path := filepath.Join(dir.Root.Dir, "active.json")
		write(t, path, content)
		if _, ok, err := dir.Root.Active(); ok || err != nil {
			t.Errorf("%s: got %v, %v", kind, ok, err)
		}
		if read(t, path) != content {
			t.Errorf("%s: the bytes changed", kind)
		}
	}
}

func TestRestoringTheBytesRestoresTheCheckpoint(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	path := filepath.Join(dir.Dir, "checkpoint.json")
	good := read(t, path)
	write(t, path, good[:len(good)/2])
	if _, err := dir.LoadCheckpoint(); err == nil {
		t.Error("half a checkpoint was accepted")
	}
	write(t, path, good)
	if cp, err := dir.LoadCheckpoint(); err != nil || cp.Revision != 1 {
		t.Errorf("got %+v, %v", cp, err)
	}
}
