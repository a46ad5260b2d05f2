package soak_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/lanes/proc/proctest"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// ground is one system with its workspaces.
type ground struct {
	t        *testing.T
	system   *supervisor.System
	stub     string
	marker   string // of all its children
	dir      string
	children string // where children are noted for a sweep
	seed     int
	random   *rand.Rand // used by one goroutine, which draws all that is to happen
	killer   *killer

	mu       sync.Mutex
	warnings []string
}

// newGround starts a system. At the end of the test it checks that nothing of it
// is left: children, descriptors, goroutines, notes, prompts.
func newGround(t *testing.T, seed int) *ground {
	t.Helper()
	g := &ground{
		t: t, stub: proctest.Build(t), marker: proctest.Marker(), dir: t.TempDir(), seed: seed,
		random: rand.New(rand.NewPCG(uint64(seed), 0)),
	}
	g.children = filepath.Join(g.dir, "children")
	before := descriptors(t)
	var err error
	g.system, err = supervisor.New(supervisor.Options{
		Logger: slog.New(warner{g}), ChildrenDir: g.children,
		MaxChildren: lanesPerRound * (*workspaces + 1) * 2, // all lanes at once, and spares
	})
	if err != nil {
		t.Fatal(err)
	}
	g.killer = newKiller(g.marker)
	t.Cleanup(func() {
		g.killer.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.system.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if left := proctest.Survivors(g.marker); len(left) > 0 {
			t.Errorf("%d children are left: %v", len(left), left)
		}
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
		if err := goleak.Find(); err != nil {
			t.Error(err)
		}
		g.checkLeftovers()
		for _, warning := range g.warnings {
			t.Errorf("logged: %s", warning)
		}
	})
	return g
}

// checkLeftovers looks for files that outlived what they were for.
func (g *ground) checkLeftovers() {
	for _, pattern := range []string{"children/*.json", "w*/.git/pi_plans/tmp/*", "w*/.git/pi_plans/runs/*/owner.json"} {
		left, err := filepath.Glob(filepath.Join(g.dir, pattern))
		if err != nil || len(left) > 0 {
			g.t.Errorf("%d files %s are left: %v", len(left), pattern, err)
		}
	}
}

// warner is a log handler that keeps what an operator would have to look at: no
// fault of a child is such a thing.
type warner struct{ g *ground }

func (warner) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w warner) WithAttrs([]slog.Attr) slog.Handler             { return w }
func (w warner) WithGroup(string) slog.Handler                  { return w }
func (w warner) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	w.g.warnings = append(w.g.warnings, text)
	return nil
}

// workspace makes a repository with a plan and returns its folder.
func (g *ground) workspace(n int) string {
	g.t.Helper()
	dir := filepath.Join(g.dir, fmt.Sprintf("w%03d", n))
	if out, err := exec.Command("git", "init", "--quiet", dir).CombinedOutput(); err != nil {
		g.t.Fatalf("git init: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "PLAN.md"), fmt.Appendf(nil, "# Soak %03d\n\nStay dry.\n", n), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return dir
}

// session is a session in a workspace whose pi is a stub that plays what it is
// told and keeps a journal in a folder of its own.
func (g *ground) session(workdir, play, journal string) supervisor.Session {
	g.t.Helper()
	if err := os.MkdirAll(journal, 0o700); err != nil {
		g.t.Fatal(err)
	}
	words := []string{g.stub, "--marker", g.marker, "--play", play, "--journal", journal, "--start-delay", thinking().String()}
	return supervisor.Session{
		ID: filepath.Base(workdir), Workdir: workdir, Pi: strings.Join(words, " "), Environ: []string{"PATH=" + os.Getenv("PATH")},
	}
}

// thinking is how long a child may think before it answers: long enough for the
// disk to take in the starts of all rounds, so that their lanes are at work at once.
func thinking() time.Duration { return time.Duration(*workspaces) * 100 * time.Millisecond }

func (g *ground) root(workdir string) store.Root {
	g.t.Helper()
	root, err := store.Find(context.Background(), workdir)
	if err != nil {
		g.t.Fatal(err)
	}
	return root
}
