package extension_test

import (
	"testing"

	"pilothouse/integration/piharness"
)

// session is a Pi in the workspace, as an editor has it.
type session struct {
	*piharness.Session
	t testing.TB
}

// open starts Pi; it keeps no session unless the arguments say so.
func (s *scene) open(args ...string) *session {
	s.t.Helper()
	return &session{s.Open(s.Dir, args...), s.t}
}

// planning opens a session that is in plan mode.
func (s *scene) planning(args ...string) *session {
	s.t.Helper()
	p := s.open(args...)
	p.Prompt("/plan")
	p.planMode(true)
	return p
}

// reviewing opens a session whose plan three reviewers look at until the returned
// function lets them finish.
func (s *scene) reviewing(args ...string) (p *session, finish func()) {
	s.t.Helper()
	s.confirm("reviewer")
	finish = s.gated()
	p = s.open(args...)
	p.Prompt("Have the plan reviewed.", refine(map[string]any{"reviewers": 3}), done)
	p.Await("tool_execution_update")
	s.responding(3)
	return p, finish
}
