package piharness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Patience ends what hangs; no assertion depends on it.
const Patience = 3 * time.Minute

// Place is a repository, and beside it a home and the directory of a daemon. All
// processes that come of it have a marker of its own in their environment, daemons too.
type Place struct {
	t testing.TB
	// Dir is the repository (see Repo), Home is HOME and Runtime is XDG_RUNTIME_DIR.
	Dir, Home, Runtime string
	Env                []string
	Marker             string
}

var places atomic.Int64

// NewPlace makes a place in which Pi has a folder.
func NewPlace(t testing.TB, agentDir string) *Place {
	t.Helper()
	p := &Place{t: t, Dir: Repo(t), Env: Env(t, agentDir), Marker: fmt.Sprintf("pilothouse-place-%d-%d-", os.Getpid(), places.Add(1))}
	for _, entry := range p.Env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			p.Home = home
		}
	}
	p.Runtime = filepath.Join(p.Home, "run")
	if err := os.Mkdir(p.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Env = append(p.Env, "XDG_RUNTIME_DIR="+p.Runtime, "PILOTHOUSE_E2E="+p.Marker)
	return p
}

// Survivors are the processes that came of the place and are still there.
func (p *Place) Survivors() []int { return Survivors(p.Marker) }

// NoSurvivors waits until no process of the place is left: after a kill of the program
// its guard ends them.
func (p *Place) NoSurvivors() {
	p.t.Helper()
	deadline, poll := time.After(Patience), time.NewTicker(10*time.Millisecond)
	defer poll.Stop()
	for {
		left := p.Survivors()
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline:
			p.t.Errorf("processes outlived the test: %v", left)
			return
		case <-poll.C:
		}
	}
}

// Script puts a shell script in the place of Pi: a file below Home, which it returns.
func (p *Place) Script(text string) string {
	p.t.Helper()
	path := filepath.Join(p.Home, "pi")
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		p.t.Fatal(err)
	}
	p.Env = append(p.Env, "PILOTHOUSE_PI="+path)
	return path
}

// path is that of a file of the repository, or of any that is named by its whole path.
func (p *Place) path(name string) string {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	return path
}

// Write writes a file of the repository, or any that is named by its whole path, and
// returns that.
func (p *Place) Write(name, text string) string {
	p.t.Helper()
	path := p.path(name)
	WriteFile(p.t, path, text)
	return path
}

// Read is the text of a file of the repository, or of any that is named by its whole
// path; where there is none it is the reason.
func (p *Place) Read(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(p.path(name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Digest is what a user who has read a file approves.
func (p *Place) Digest(name string) string {
	sum := sha256.Sum256([]byte(p.Read(name)))
	return hex.EncodeToString(sum[:])
}

// Eventually waits until something holds that nobody tells of.
func (p *Place) Eventually(what string, holds func() bool) {
	p.t.Helper()
	deadline, poll := time.After(Patience), time.NewTicker(10*time.Millisecond)
	defer poll.Stop()
	for !holds() {
		select {
		case <-deadline:
			p.t.Fatalf("it never came to this: %s", what)
		case <-poll.C:
		}
	}
}
