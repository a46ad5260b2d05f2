package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// logged is a bounded log in a directory of its own.
func logged(t *testing.T, limit int64) (*boundedLog, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state", "daemon.log")
	file, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &boundedLog{file: file, limit: limit}, path
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tell writes numbered lines of ten bytes.
func tellLines(t *testing.T, log *boundedLog, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := fmt.Fprintf(log, "line %04d\n", i); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALogThatIsFullBecomesTheOldOneAndNoLineIsLost(t *testing.T) {
	t.Parallel()
	log, path := logged(t, 100)
	tellLines(t, log, 0, 10)
	if _, err := os.Stat(path + ".1"); !os.IsNotExist(err) || len(contents(t, path)) != 100 {
		t.Fatalf("a log that is just full was begun anew (%v)", err)
	}
	tellLines(t, log, 10, 25)
	if old, now := contents(t, path+".1"), contents(t, path); !strings.HasPrefix(old, "line 0010\n") || !strings.HasSuffix(old, "line 0019\n") || now != "line 0020\nline 0021\nline 0022\nline 0023\nline 0024\n" {
		t.Errorf("the old log is\n%sthe log\n%s", old, now)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v", entries, err)
	}
	for _, p := range []string{path, path + ".1"} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
}

func TestALogOfAnEarlierDaemonIsBoundedFromTheFirstLine(t *testing.T) {
	t.Parallel()
	log, path := logged(t, 100)
	if err := os.WriteFile(path, []byte(strings.Repeat("a", 900)+strings.Repeat("b", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	tellLines(t, log, 0, 1)
	if old := contents(t, path+".1"); old != strings.Repeat("b", 100) || contents(t, path) != "line 0000\n" {
		t.Errorf("of the old log was kept %q", old)
	}
}

// A crash is written to the streams of the process, which a detached daemon has had
// from the beginning.
func TestWhoHoldsTheLogOpenGoesOnInIt(t *testing.T) {
	t.Parallel()
	log, path := logged(t, 100)
	stderr, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	tellLines(t, log, 0, 11)
	if _, err := stderr.WriteString("panic: it crashed\n"); err != nil {
		t.Fatal(err)
	}
	if now := contents(t, path); now != "line 0010\npanic: it crashed\n" {
		t.Errorf("the log is %q", now)
	}
}

func TestALogWhoseOldOneCannotBeKeptIsBoundedAllTheSameAndTellsSo(t *testing.T) {
	t.Parallel()
	log, path := logged(t, 100)
	if err := os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	tellLines(t, log, 0, 11)
	now := contents(t, path)
	told, rest, _ := strings.Cut(now, "\n")
	if !strings.Contains(told, `"msg":"the old log is lost"`) || rest != "line 0010\n" {
		t.Errorf("the log is %q", now)
	}
	left, err := filepath.Glob(path + "*.tmp")
	if err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestDaemonsThatShareALogKeepItBoundedAndItsLinesWhole(t *testing.T) {
	t.Parallel()
	const limit, each = 4 << 10, 300
	log, path := logged(t, limit)
	file, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var writing sync.WaitGroup
	for _, l := range []*boundedLog{log, {file: file, limit: limit}} {
		logger := slog.New(slog.NewJSONHandler(l, nil))
		for range 2 {
			writing.Go(func() {
				for i := range each {
					logger.Info("call ended", "number", i)
				}
			})
		}
	}
	writing.Wait()
	for _, p := range []string{path, path + ".1"} {
		text := contents(t, p)
		if len(text) > limit+1<<10 { // a line or two that came in between
			t.Errorf("%s has %d bytes", p, len(text))
		}
		lines := slices.Collect(strings.Lines(text))
		for _, line := range lines[min(1, len(lines)):] { // an old log may begin within a line
			if !json.Valid([]byte(line)) {
				t.Errorf("%s has the line %q", p, line)
			}
		}
	}
}

func TestALogThatIsNoFileIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	file, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := &boundedLog{file: file, limit: 10}
	tellLines(t, log, 0, 5)
	got := make([]byte, 50)
	if n, err := file.Read(got); err != nil || !bytes.HasPrefix(got, []byte("line 0000\nline 0001\n")) {
		t.Errorf("%q, %v", got[:n], err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
