package load_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/lanes/proc/proctest"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// patience ends a wait that hangs; no assertion depends on it.
const patience = 5 * time.Minute

// pi is a program in the place of pi. It takes its task and streams ten deltas a second
// until the gate opens, then answers. It notes when it begins and ends.
const pi = `#!/bin/sh
echo begin >>"$JOURNAL"
"$STUB" --play steady:100ms --gate "$GATE" --journal "$NOTES"
echo end >>"$JOURNAL"
`

// ground is a daemon and what its clients share.
type ground struct {
	t       *testing.T
	base    string
	env     []string
	socket  string
	journal string
	gate    *os.File // a pipe that holds a line for each child that may answer
	daemon  *exec.Cmd
	log     bytes.Buffer
}

// newGround starts a daemon with so many places for children.
func newGround(t *testing.T, places int) *ground {
	t.Helper()
	g := &ground{t: t, env: piharness.Env(t, filepath.Join(t.TempDir(), "agent"))}
	for _, entry := range g.env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			g.base = home
		}
	}
	g.socket, g.journal = filepath.Join(g.base, "run", "api.sock"), filepath.Join(g.base, "journal")
	program, pipe, notes := filepath.Join(g.base, "pi"), filepath.Join(g.base, "gate"), filepath.Join(g.base, "notes")
	if err := os.Mkdir(notes, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte(pi), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.gate, err = os.OpenFile(pipe, os.O_RDWR, 0); err != nil { // never without a writer
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.gate.Close() })
	g.env = append(g.env, "JOURNAL="+g.journal, "GATE="+pipe, "NOTES="+notes, "STUB="+proctest.Build(t), "PILOTHOUSE_PI="+program)
	g.daemon = exec.Command(piharness.Binary(t), "serve", "--socket", g.socket, "--max-children", strconv.Itoa(places))
	g.daemon.Dir, g.daemon.Env, g.daemon.Stderr = g.base, g.env, &g.log
	if err := g.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	g.await("the daemon to answer", func() bool {
		_, err := api.Ask(t.Context(), g.socket)
		return err == nil
	})
	return g
}

// end ends the daemon, which must have had nothing to complain of.
func (g *ground) end() {
	if err := g.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Error(err)
	}
	hung := time.AfterFunc(patience, func() { _ = g.daemon.Process.Kill() })
	defer hung.Stop()
	err := g.daemon.Wait()
	if log := g.log.String(); err != nil || strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") || strings.Contains(log, "DATA RACE") {
		g.t.Errorf("the daemon ended with %v:\n%s", err, log)
	}
}

func (g *ground) await(what string, done func() bool) {
	g.t.Helper()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-deadline:
			g.t.Fatalf("waited in vain for %s", what)
		case <-time.After(50 * time.Millisecond): // to look is work for the daemon
		}
	}
}

func (g *ground) client() *api.Client {
	g.t.Helper()
	c, err := api.Connect(g.t.Context(), g.socket)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	return c
}

// session is a session in a new workspace with a plan.
func (g *ground) session(name string) supervisor.Session {
	g.t.Helper()
	workdir := filepath.Join(g.base, name)
	git := exec.Command("git", "init", "--quiet", workdir)
	git.Env = g.env
	if out, err := git.CombinedOutput(); err != nil {
		g.t.Fatalf("git init: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(workdir, "plan.md"), []byte("# Bake bread\n\n## Items\n- I-001 Bake.\n"), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return supervisor.Session{ID: name, Workdir: workdir, Environ: g.env, Pi: filepath.Join(g.base, "pi")}
}

// pauseOfRelease is between two children that may answer: lanes do not all end at the
// same instant.
const pauseOfRelease = 10 * time.Millisecond

// release lets so many children answer, one after the other.
func (g *ground) release(children int) {
	g.t.Helper()
	next := time.NewTicker(pauseOfRelease)
	defer next.Stop()
	for range children {
		if _, err := g.gate.WriteString("\n"); err != nil {
			g.t.Fatal(err)
		}
		<-next.C
	}
}

// children counts the children that there were and how many of them were at work at
// once at most.
func (g *ground) children() (all, most int) {
	g.t.Helper()
	data, err := os.ReadFile(g.journal)
	if err != nil {
		g.t.Fatal(err)
	}
	atWork := 0
	for line := range strings.Lines(string(data)) {
		if line == "begin\n" {
			all++
			atWork++
			most = max(most, atWork)
		} else {
			atWork--
		}
	}
	if atWork != 0 {
		g.t.Errorf("%d of %d children were ended before they had said all", atWork, all)
	}
	return all, most
}

// memory is the resident set of the daemon in bytes.
func (g *ground) memory() int64 {
	g.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.daemon.Process.Pid))
	if err != nil {
		g.t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	var kib int64
	if _, err := fmt.Sscanf(string(rest), "%d kB", &kib); err != nil {
		g.t.Fatalf("read the memory of the daemon: %v", err)
	}
	return kib << 10
}
