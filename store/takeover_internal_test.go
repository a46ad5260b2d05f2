package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bareRun is a run directory of which only the ownership is used.
func bareRun(t *testing.T) RunDir {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, privateName), privateDir); err != nil {
		t.Fatal(err)
	}
	return RunDir{ID: "20260825T130000Z-bare", Dir: dir}
}

func put(t *testing.T, path, content string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), privateFile); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// deadOwner leaves a run to a process that cannot exist.
func deadOwner(t *testing.T, d RunDir) {
	t.Helper()
	record := OwnerRecord{
		Schema: 1, Host: thisMachine().host, PID: 1 << 30, ProcessToken: strings.Repeat("a", 32), Generation: 3, AcquiredAt: Stamp(time.Now()),
	}
	if err := writeDocument(d.ownerPath(), record); err != nil {
		t.Fatal(err)
	}
}

// A pilothouse that is killed in a takeover must not keep the next one waiting until
// its lock is old: many could be killed one after the other.
func TestATakeoverLockOfAKilledPilothouseIsNoObstacle(t *testing.T) {
	t.Parallel()
	d := bareRun(t)
	deadOwner(t, d)
	put(t, d.takeoverNotePath(), `{"pid":1,"takenAt":"2026-08-25T13:00:00Z"}`, 0)
	if err := os.Link(d.takeoverNotePath(), d.takeoverPath()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), takeoverStale/2) // before it would count as stale
	defer cancel()
	lease, err := d.Acquire(ctx, "s")
	if err != nil || lease.Generation != 4 {
		t.Fatalf("got %+v, %v", lease, err)
	}
	defer func() { _, _ = lease.Release() }()
	if _, there, err := d.TakeoverLock(); there || err != nil {
		t.Errorf("a lock is there: %v, %v", there, err)
	}
}

func TestALockThatWasMovedAsideIsJudgedByItself(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		age   time.Duration // of the lock that was moved
		since string        // another one that was made since the move
		stale bool
		want  string // the lock that is there afterwards
	}{
		"it was the stale one":                {age: time.Hour, stale: true},
		"it is of the future":                 {age: -time.Hour, stale: true},
		"it had become a fresh one":           {age: 0, want: "moved"},
		"and somebody has made another since": {age: 0, since: "newer", want: "newer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := bareRun(t)
			aside := filepath.Join(d.Dir, "aside")
			put(t, aside, "moved", test.age)
			if test.since != "" {
				put(t, d.takeoverPath(), test.since, 0)
			}
			stale, err := d.judgeMoved(aside)
			if stale != test.stale || err != nil || contentOf(t, d.takeoverPath()) != test.want {
				t.Errorf("stale %v, %v, the lock is %q; want %v and %q", stale, err, contentOf(t, d.takeoverPath()), test.stale, test.want)
			}
		})
	}
}

func TestALockOfAnotherProgramIsLeftAloneWhileItIsFresh(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		age     time.Duration
		broken  bool
	}{
		"empty and fresh":        {"", 0, false},
		"empty and old":          {"", takeoverStale, true},
		"of the other and fresh": {`{"pid":1,"takenAt":"2026-08-25T13:00:00Z"}`, 0, false},
		"of the other and old":   {`{"pid":1,"takenAt":"2026-08-25T13:00:00Z"}`, time.Minute, true},
	} {
		d := bareRun(t)
		put(t, d.takeoverPath(), test.content, test.age)
		if err := d.dropOwnTakeoverLock(); err != nil {
			t.Error(err)
		}
		broken, err := d.breakTakeoverLock()
		if _, there, _ := d.TakeoverLock(); broken != test.broken || there == test.broken || err != nil {
			t.Errorf("%s: broken %v, there %v, %v", name, broken, there, err)
		}
		if left, _ := filepath.Glob(filepath.Join(d.Dir, privateName, "*")); len(left) != 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

// Whoever looks must never see a record or a lock that is not finished: the other
// program takes it for corrupt and gives the run up.
func TestNeitherARecordNorATakeoverLockIsEverSeenUnfinished(t *testing.T) {
	t.Parallel()
	d := bareRun(t)
	done := make(chan struct{})
	seen := make(chan [2]int, 1)
	go func() {
		var records, locks int
		defer func() { seen <- [2]int{records, locks} }()
		for {
			select {
			case <-done:
				return
			default:
			}
			if text := readIfThere(t, d.ownerPath()); text != nil {
				var record OwnerRecord
				records++
				if err := decodeDocument(text, &record); err != nil {
					t.Errorf("record %q: %v", text, err)
				}
			}
			if text := readIfThere(t, d.takeoverPath()); text != nil {
				locks++
				if !strings.HasPrefix(string(text), `{"pid":`) || !strings.HasSuffix(string(text), "}\n") {
					t.Errorf("takeover lock %q", text)
				}
			}
		}
	}()
	for range 100 {
		deadOwner(t, d)
		lease, err := d.Acquire(t.Context(), "s")
		if err != nil {
			t.Error(err)
			break
		}
		if _, err := lease.Release(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	if counts := <-seen; counts[0] == 0 || counts[1] == 0 {
		t.Errorf("the reader saw %d records and %d locks", counts[0], counts[1])
	}
}

func readIfThere(t *testing.T, path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return data
}

// The text depends on who asks ps, the instant does not.
func TestAStartIsRecognisedInEveryLanguageAndTimeZone(t *testing.T) {
	t.Parallel()
	started := time.Date(2026, 8, 25, 23, 59, 59, 0, time.UTC)
	for _, test := range []struct {
		text string
		same bool
	}{
		{"Tue Aug 25 23:59:59 2026", true},
		{"Wed Aug 26 00:00:01 2026", true},   // the clock was adjusted
		{"Wed Aug 26 05:29:59 2026", true},   // Kolkata
		{"Tue Aug 25 21:29:58 2026", true},   // St. John's
		{"Wed Aug 26 12:44:59 2026", true},   // Chatham
		{"Tue Aug 25 12:59:59 2026", true},   // Pago Pago
		{"Di 26. Aug 01:59:59 2026", true},   // German
		{"火  8月 26 08:59:59 2026", true},     // Japanese
		{"mer. août 26 01:59:59 2026", true}, // French
		{"25-08-2026 23:59:59", true},
		{"Tue Aug 25 23:57:59 2026", false}, // two minutes are no time zone
		{"Tue Aug 25 23:59:55 2026", false},
		{"Mon Aug 24 03:59:59 2026", false}, // no zone is that far
		{"Di 26. Aug 01:58:59 2026", false},
		{"Di 26. Aug 01:59:59 2023", false},
		{"yesterday", false},
		{"", false},
	} {
		if got := sameStart(test.text, started); got != test.same {
			t.Errorf("%q: got %v", test.text, got)
		}
	}
}
