package store_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"pilothouse/store"
)

func TestOnlyLeftoversThatAreOldAreRemoved(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	const suffix = ".4711.0123456789ab.tmp"
	now := time.Now()
	type leftover struct {
		path string
		age  time.Duration
		goes bool
	}
	var all []leftover
	for _, name := range []string{
		".checkpoint.json", "reviews/.r1__a.md", "pilothouse/.owner.json", "pilothouse/rounds/.r1.json", "../../.config.json",
		"../../pilothouse/.x.json", "../../cache/pilothouse/adhoc/rounds/.r1.json", "../../cache/pilothouse/adhoc/reviews/.r1__a.md",
	} {
		all = append(all, leftover{name + suffix, 2 * time.Hour, true}, leftover{name + ".1" + suffix, time.Minute, false})
	}
	all = append(all,
		leftover{"../../tmp/lane-1/system-prompt.md", 25 * time.Hour, true},
		leftover{"../../tmp/lane-2/system-prompt.md", 23 * time.Hour, false},
		leftover{"../../tmp/notes-of-a-session.md", 999 * time.Hour, false},
		leftover{"reviews/r1__a.md", 999 * time.Hour, false},
		leftover{"checkpoint.json.tmp", 999 * time.Hour, false}, // of another program
		leftover{".tmp", 999 * time.Hour, false},
		leftover{".x.4711.0123456789abc.tmp", 999 * time.Hour, false},
		leftover{".x.pid.0123456789ab.tmp", 999 * time.Hour, false},
		leftover{"../../tmp/lane-of-mine/x", 999 * time.Hour, false},
	)
	for _, l := range all {
		path := filepath.Join(dir.Dir, l.path)
		write(t, path, "half of")
		then := now.Add(-l.age)
		for _, old := range []string{path, filepath.Dir(path)} {
			if err := os.Chtimes(old, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := read(t, checkpointFile(dir))
	for range 2 { // the second time there is nothing to do
		if err := dir.RemoveLeftovers(now); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range all {
		if _, err := os.Stat(filepath.Join(dir.Dir, l.path)); (err != nil) != l.goes {
			t.Errorf("%s of age %v: %v", l.path, l.age, err)
		}
	}
	if cp, err := dir.LoadCheckpoint(); err != nil || cp.Phase != store.PhasePlanning || read(t, checkpointFile(dir)) != before {
		t.Errorf("the checkpoint was touched: %v", err)
	}
}

func TestTheTemporaryFileOfAWriteThatWasCutOffIsALeftover(t *testing.T) {
	t.Parallel()
	dir := withCheckpoint(t)
	for found := false; !found; { // a killed writer shows the names that ours have
		writer := startProcess(t, "write on", dir, "k")
		for {
			if entries, err := filepath.Glob(filepath.Join(dir.Dir, ".*.tmp")); err == nil && len(entries) > 0 {
				break
			}
		}
		_ = writer.Process.Kill()
		_ = writer.Wait()
		left, err := filepath.Glob(filepath.Join(dir.Dir, ".*.tmp"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range left {
			found = true
			old := time.Now().Add(-2 * time.Hour)
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := dir.RemoveLeftovers(time.Now()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir.Dir, ".*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
