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

	"pilothouse/integration/scriptedmodel"
)

// Patience ends what hangs; no assertion depends on it.
const Patience = 3 * time.Minute

// Scene is a repository with the pinned Pi, a model that follows rules, and the program
// under test. All processes that come of it have a marker of its own in their
// environment, daemons too.
type Scene struct {
	t testing.TB
	// Dir is the repository (see Repo), AgentDir is Pi's folder.
	Dir, AgentDir string
	Env           []string
	Model         *scriptedmodel.Server

	marker  string
	runtime string // XDG_RUNTIME_DIR
}

var scenes atomic.Int64

// NewScene starts a model that follows the rules. At the end of the test no process of
// the scene may be left.
func NewScene(t testing.TB, rules ...scriptedmodel.Rule) *Scene {
	t.Helper()
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &Scene{
		t: t, AgentDir: filepath.Join(t.TempDir(), "agent"), Model: model,
		marker: fmt.Sprintf("pilothouse-scene-%d-%d-", os.Getpid(), scenes.Add(1)),
	}
	if err := scriptedmodel.AgentDir(s.AgentDir, model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	env := Env(t, s.AgentDir)
	s.Dir = Repo(t)
	for _, entry := range env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			s.runtime = filepath.Join(home, "run")
		}
	}
	if err := os.Mkdir(s.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Env = append(env, "PILOTHOUSE_PI="+NewPi(t).String(), "XDG_RUNTIME_DIR="+s.runtime, "PILOTHOUSE_E2E="+s.marker)
	t.Cleanup(s.NoSurvivors)
	return s
}

// NoSurvivors waits until no process of the scene is left: after a kill of the program
// its guard ends them.
func (s *Scene) NoSurvivors() {
	s.t.Helper()
	deadline, poll := time.After(Patience), time.NewTicker(10*time.Millisecond)
	defer poll.Stop()
	for {
		left := Survivors(s.marker)
		if len(left) == 0 {
			return
		}
		select {
		case <-deadline:
			s.t.Errorf("processes outlived the test: %v", left)
			return
		case <-poll.C:
		}
	}
}

// Write writes a file of the repository.
func (s *Scene) Write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// Read is the text of a file of the repository, or of any that is named by its whole
// path; where there is none it is the reason.
func (s *Scene) Read(name string) string {
	s.t.Helper()
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.Dir, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Digest is what a user who has read a file approves.
func (s *Scene) Digest(name string) string {
	sum := sha256.Sum256([]byte(s.Read(name)))
	return hex.EncodeToString(sum[:])
}

// Await waits until the model's counts satisfy reached.
func (s *Scene) Await(reached func(scriptedmodel.Stats) bool) {
	s.t.Helper()
	if err := s.Model.Await(s.t.Context(), reached); err != nil {
		s.t.Fatal(err)
	}
}
