package piharness

import (
	"context"
	"path/filepath"
	"testing"

	"pilothouse/integration/scriptedmodel"
)

// Scene is a place with the real Pi and a model that follows rules.
type Scene struct {
	*Place
	// AgentDir is Pi's folder.
	AgentDir string
	Model    *scriptedmodel.Server

	heard *Buffer
}

// NewScene has the pinned Pi of the new generation. At the end of the test no process of
// the scene may be left.
func NewScene(t testing.TB, rules ...scriptedmodel.Rule) *Scene {
	t.Helper()
	s := NewSceneOf(t, NewPi(t), rules...)
	t.Cleanup(s.NoSurvivors)
	return s
}

// NewSceneOf has another Pi.
func NewSceneOf(t testing.TB, pi Command, rules ...scriptedmodel.Rule) *Scene {
	t.Helper()
	s := &Scene{AgentDir: filepath.Join(t.TempDir(), "agent"), heard: &Buffer{}}
	var err error
	if s.Model, err = scriptedmodel.Start(scriptedmodel.Options{Rules: rules, Log: s.heard}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Model.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := scriptedmodel.AgentDir(s.AgentDir, s.Model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	s.Place = NewPlace(t, s.AgentDir)
	s.Env = append(s.Env, "PILOTHOUSE_PI="+pi.String())
	return s
}

// In is the scene in another directory.
func (s *Scene) In(dir string) *Scene {
	place := *s.Place
	place.Dir = dir
	there := *s
	there.Place = &place
	return &there
}

// Await waits until the model's counts satisfy reached.
func (s *Scene) Await(reached func(scriptedmodel.Stats) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), Patience)
	defer cancel()
	if err := s.Model.Await(ctx, reached); err != nil {
		s.t.Fatal(err)
	}
}

// Heard is the log of the model: a line of JSON for each begin and end of a request.
func (s *Scene) Heard() string { return s.heard.String() }
