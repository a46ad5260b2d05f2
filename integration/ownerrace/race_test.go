package ownerrace_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/store"
)

// stuck is how long nobody may acquire before the race is given up; it takes
// milliseconds when all is well.
const stuck = time.Minute

// Each racer speaks and reckons differently, and so does each of its incarnations.
var (
	timeZones = []string{"UTC", "Asia/Kolkata", "America/St_Johns", "Pacific/Chatham", "XXX-13:45", "Europe/Berlin", "YYY+11", "Asia/Tokyo"}
	languages = []string{"C", "C.UTF-8", "de_DE.UTF-8", "ja_JP.UTF-8", "fr_FR.UTF-8", "ar_EG.UTF-8"}
)

// track is where the race takes place.
type track struct {
	t                *testing.T
	dir              store.RunDir
	witness, journal string
	random           *rand.Rand
	racers           []*racer
	killed           map[string]bool // names
	suspended        int
	startedRacers    int
	tail             *bufio.Reader // of the journal
	count            int           // acquisitions noted in it so far
}

type racer struct {
	name   string
	cmd    *exec.Cmd
	in     io.Closer
	stderr bytes.Buffer
	ended  chan error
}

func newTrack(t *testing.T) *track {
	t.Helper()
	// In memory, where there is such a place: the race is about order, not about disks.
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
	root, _, err := store.Ensure(t.Context(), piharness.Repo(t))
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := store.StartRun(root, store.StartRunRequest{Topic: "race", Skill: "plan-normal", RequestText: "race"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := root.Run(run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	k := &track{t: t, dir: dir, random: rand.New(rand.NewPCG(*seed, 0)), killed: map[string]bool{}}
	for path, name := range map[*string]string{&k.witness: "witness", &k.journal: "journal"} {
		*path = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(*path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	journal, err := os.Open(k.journal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	k.tail = bufio.NewReader(journal)
	t.Cleanup(func() {
		for _, r := range k.racers {
			_ = r.cmd.Process.Kill()
			for range r.ended { // until its owner is done with it
				continue
			}
		}
	})
	return k
}

func (k *track) start() *racer {
	k.t.Helper()
	n := k.startedRacers
	k.startedRacers++
	r := &racer{name: fmt.Sprint("racer-", n), ended: make(chan error, 1)}
	r.cmd = exec.Command(os.Args[0], k.dir.Root.Dir, k.dir.ID, k.witness, k.journal)
	r.cmd.Env = append(os.Environ(), racerVariable+"="+r.name, seedVariable+"="+fmt.Sprint(k.random.Uint64()), "TZ="+timeZones[n%len(timeZones)], "LC_TIME="+languages[n%len(languages)], "LC_ALL=")
	r.cmd.Stderr = &r.stderr
	in, err := r.cmd.StdinPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	r.in = in
	if err := r.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait(); close(r.ended) }() // received by whoever ends it
	return r
}

// strike kills a racer, or suspends it for a moment. They strike themselves, too, when
// they are about to acquire, which nobody can aim at from outside.
func (k *track) strike() {
	k.t.Helper()
	r := k.racers[k.random.IntN(len(k.racers))]
	if k.random.IntN(2) == 0 {
		_ = r.cmd.Process.Kill()
		return
	}
	k.suspended++
	_ = r.cmd.Process.Signal(syscall.SIGSTOP)
	k.wait(10 * time.Millisecond)
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
}

// wait lets the race go on and starts racers in the place of those that were killed.
// One that ends otherwise has found a fault.
func (k *track) wait(most time.Duration) {
	k.t.Helper()
	<-time.After(time.Duration(k.random.Int64N(int64(most))))
	for i, r := range k.racers {
		select {
		case err := <-r.ended:
			k.checkKilled(r, err)
			k.racers[i] = k.start()
		default:
		}
	}
}

func (k *track) checkKilled(r *racer, err error) {
	k.t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			k.killed[r.name] = true
			return
		}
	}
	k.t.Fatalf("%s ended by itself: %v: %s", r.name, err, r.stderr.String())
}

// follow reads what has come to the journal.
func (k *track) follow() {
	k.t.Helper()
	for {
		line, err := k.tail.ReadString('\n')
		if errors.Is(err, io.EOF) { // each note is one write
			return
		}
		if err != nil {
			k.t.Fatal(err)
		}
		if strings.HasPrefix(line, acquired+" ") {
			k.count++
		}
	}
}

// run strikes until the run was acquired often enough, and returns how long the
// longest time without an acquisition was.
func (k *track) run() time.Duration {
	k.t.Helper()
	var longest time.Duration
	last := time.Now()
	for k.count < *acquisitions {
		k.wait(50 * time.Millisecond)
		if k.random.IntN(4) == 0 {
			k.strike()
		}
		before := k.count
		k.follow()
		pause := time.Since(last)
		if k.count > before {
			last = time.Now()
		}
		longest = max(longest, pause)
		if pause > stuck {
			owner, state, err := k.dir.Owner()
			k.t.Fatalf("nobody acquires the run any more: owner %+v is %s, %v", owner, state, err)
		}
	}
	return longest
}

// finish lets the racers end in an orderly way.
func (k *track) finish() {
	k.t.Helper()
	for _, r := range k.racers {
		if err := r.in.Close(); err != nil {
			k.t.Error(err)
		}
	}
	for _, r := range k.racers {
		if err := <-r.ended; err != nil {
			k.checkKilled(r, err)
		}
	}
}

func TestARunHasOneOwnerAtATimeWhoeverIsKilled(t *testing.T) {
	k := newTrack(t)
	for range *processes {
		k.racers = append(k.racers, k.start())
	}
	began := time.Now()
	longest := k.run()
	took := time.Since(began)
	k.finish()
	all := readJournal(t, k.journal)
	c := checkChain(t, all, k.killed)
	if len(all) < *acquisitions {
		t.Errorf("%d acquisitions, want %d", len(all), *acquisitions)
	}
	t.Logf("%d acquisitions by %d processes in %v: %d takeovers, %d after a release, %d owners killed before they could note it; %d killed, %d suspended; longest pause %v",
		len(all), *processes, took.Round(time.Millisecond), c.takeovers, c.releases, c.unseen, len(k.killed), k.suspended, longest.Round(time.Millisecond))
	if c.takeovers == 0 || c.releases == 0 {
		t.Error("the race did not show both ways to become an owner")
	}
	k.checkLitter()
}

// checkLitter checks that the run can be had after all, and that what the killed
// owners left is gone with that.
func (k *track) checkLitter() {
	k.t.Helper()
	lease, err := k.dir.Acquire(context.Background(), "last")
	if err != nil {
		k.t.Fatal(err)
	}
	if released, err := lease.Release(); !released || err != nil {
		k.t.Errorf("released %v, %v", released, err)
	}
	for _, dir := range []string{k.dir.Dir, filepath.Join(k.dir.Dir, "pilothouse")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if strings.HasPrefix(name, "owner.json") || strings.HasPrefix(name, "alive-") {
				k.t.Errorf("%s is left", filepath.Join(dir, name))
			}
		}
	}
}
