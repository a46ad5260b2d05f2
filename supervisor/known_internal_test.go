package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAFileIsReadAgainWhenItMayHaveChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, missing := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	old := time.Now().Add(-time.Hour)
	put := func(path, text string, at time.Time) {
		t.Helper()
		temp := path + ".tmp"
		if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chtimes(temp, at, at), os.Rename(temp, path)); err != nil {
			t.Fatal(err)
		}
	}
	var all known[string]
	reads := 0
	get := func() string {
		t.Helper()
		text, err := all.get("key", []string{path, missing}, func() (string, error) {
			reads++
			data, err := os.ReadFile(path)
			return string(data), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, step := range []struct {
		name   string
		change func()
		want   string
		reads  int // of three looks
	}{
		{"the first look", func() { put(path, "one", old) }, "one", 1},
		{"nothing changed", func() {}, "one", 0},
		{"another of the same size", func() { put(path, "two", old.Add(time.Millisecond)) }, "two", 1},
		{"one of the same size and time", func() { put(path, "six", old.Add(time.Millisecond)) }, "six", 1},
		{"one that was missing", func() { put(missing, "", old) }, "six", 1},
		{"one that is missing", func() { _ = os.Remove(missing) }, "six", 1},
		{"one that may change again within its time", func() { put(path, "new", time.Now().Add(time.Hour)) }, "new", 3},
	} {
		step.change()
		reads = 0
		for range 3 {
			if got := get(); got != step.want {
				t.Errorf("%s: %q, want %q", step.name, got, step.want)
			}
		}
		if reads != step.reads {
			t.Errorf("%s: read %d times, want %d", step.name, reads, step.reads)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := all.get("key", []string{path, missing}, func() (string, error) { return "", os.ErrNotExist }); err == nil {
		t.Error("a file that is gone is still known")
	}
}

func TestWhatIsKnownIsBounded(t *testing.T) {
	t.Parallel()
	var all known[int]
	for n := range 3 * maxKnown {
		all.keep(string(rune('a'+n)), n, nil)
		if len(all.values) > maxKnown {
			t.Fatalf("%d values are kept", len(all.values))
		}
	}
}
