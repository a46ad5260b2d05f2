package extension_test

import (
	"strings"
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

// receives waits for the result of a review that came later than its call, whole, and
// until the daemon need not keep it any more.
func (p *session) receives(s *scene) {
	p.t.Helper()
	arrived := p.Await("message_end", func(e piharness.Value) bool { return e.At("message.customType").Text() == "pilothouse-result" })
	if n := strings.Count(arrived.At("message.content").String(), "No findings."); n != 3 {
		p.t.Errorf("%d of 3 answers arrived: %s", n, arrived)
	}
	s.Eventually("the result is acknowledged", func() bool { return len(s.Ask("/v1/calls").At("calls").List()) == 0 })
}

// leavesPlanMode leaves plan mode, after which the model may write.
func (p *session) leavesPlanMode(s *scene) {
	p.t.Helper()
	p.Prompt("/plan off")
	p.planMode(false)
	if !p.writes(s) {
		p.t.Error("nothing can be written after plan mode")
	}
}
