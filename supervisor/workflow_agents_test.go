package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"pilothouse/actors"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// What agents at work tell and record, what becomes of rounds, and how sessions and daemons end.

// tellContext is the agent about to begin.
func (m *machine) tellContext(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	at := m.execution(&p.modelSession)
	text := ""
	for _, message := range m.hook(t, p, "before_agent_start", object{"prompt": "go on"}).Messages {
		if message.CustomType == "pi-plans-exec-context" {
			text = message.Content
		}
	}
	if (text != "") != (at != nil) {
		t.Fatalf("session %s is told %q, the model says: %+v", p.id, text, at)
	}
	if at == nil {
		return
	}
	plan := at.run.record.plan
	if !m.approved[at.run.id+digest(plan.text)] {
		t.Fatal("what is carried out was not approved")
	}
	for _, want := range []string{m.planFile(t, at.run, plan.version), fmt.Sprintf("Verified: %d of %d", len(at.valid()), len(checks))} {
		if !strings.Contains(text, want) {
			t.Fatalf("%q is missing in %q", want, text)
		}
	}
}

var reportsOf = [][]string{{}, {"VC-001"}, {"VC-002"}, {"VC-001", "VC-002"}, {"VC-003"}}

func markers(text string, ids []string) string {
	for _, id := range ids {
		text += " [DONE:" + id + "]"
	}
	return text
}

func (m *machine) report(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	ids := rapid.SampledFrom(reportsOf).Draw(t, "passed")
	if at := m.execution(&p.modelSession); at != nil && rapid.IntRange(0, 4).Draw(t, "torn") == 0 {
		m.hook(t, p, "agent_start", object{}) // takes it up
		m.torn(t, p, at.run, false, func() { m.tells(t, p, ids) })
		return
	}
	m.tells(t, p, ids)
}

// tells is a message of the session's agent with markers.
func (m *machine) tells(t *rapid.T, p *player, ids []string) {
	m.reports(&p.modelSession, ids)
	if told := warned(m.hook(t, p, "turn_end", object{"text": markers("", ids), "stopReason": "toolUse", "hasUI": true})); told != nil {
		t.Fatalf("the session is told %v", told)
	}
}

func (m *machine) rest(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	text := rapid.SampledFrom([]string{"going on", "going on", "waiting for a build"}).Draw(t, "text")
	ids := rapid.SampledFrom(reportsOf[:2]).Draw(t, "passed")
	aborted := rapid.IntRange(0, 9).Draw(t, "aborted") == 0
	times := rapid.SampledFrom([]int{1, 1, 3, 6}).Draw(t, "times")
	for range times {
		want := m.rests(&p.modelSession, text, ids, aborted)
		m.hook(t, p, "agent_start", object{})
		m.hook(t, p, "turn_end", object{"text": markers(text, ids), "stopReason": "stop", "hasUI": true})
		reply := m.hook(t, p, "agent_settled", object{"idle": true, "hasUI": true, "aborted": aborted})
		got := ""
		switch woken := sent(reply, "pi-plans-goal-wait"); {
		case len(woken) == 1:
			got = wakes
		case strings.Contains(strings.Join(warned(reply), ""), "is paused"):
			got = pauses
		}
		if got != want {
			t.Fatalf("an agent at rest: %q, the model says: %q", got, want)
		}
	}
}

// typeInput is the user going on.
func (m *machine) typeInput(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	source := rapid.SampledFrom([]string{"interactive", "rpc", "extension"}).Draw(t, "source")
	if source != "extension" {
		m.goOn(&p.modelSession)
	}
	m.hook(t, p, "input", object{"text": "go on", "source": source})
}

// commit checks another commit out.
func (m *machine) commit(t *rapid.T) {
	m.checkOut(t, rapid.SampledFrom(m.heads).Draw(t, "head"))
}

func (m *machine) checkOut(t *rapid.T, head string) {
	m.head = head
	m.write(t, filepath.Join(m.dir, ".git/refs/heads/main"), m.head+"\n")
}

func (m *machine) recordStep(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	s := &p.modelSession
	switch rapid.SampledFrom([]string{"configure", "consolidate", "finish", "complete"}).Draw(t, "step") {
	case "configure":
		m.configures(t, p, rapid.SampledFrom(conditions).Draw(t, "condition"))
		return
	case "consolidate":
		id := "none"
		if r := m.meant(s); r != nil && len(r.record.rounds) > 0 {
			id = r.record.rounds[rapid.IntRange(0, len(r.record.rounds)-1).Draw(t, "round")].id
		}
		m.consolidates(t, p, id)
		return
	case "finish":
		m.finishes(t, p)
		return
	case "complete":
		m.records(t, p, m.complete(s), supervisor.CheckpointParams{Transition: "completed", Evidence: "all of it"})
	}
}

// records is a transition that the agent of a session records.
func (m *machine) records(t *rapid.T, p *player, what outcome, params supervisor.CheckpointParams) {
	_, err := m.plans(t, p, supervisor.PlansAction{Action: "record-checkpoint", Checkpoint: &params})
	became(t, what, err)
}

func (m *machine) configures(t *rapid.T, p *player, condition string) {
	what := m.configure(&p.modelSession, condition)
	m.records(t, p, what, supervisor.CheckpointParams{Transition: "implementation-review-configured", TerminationCondition: condition})
}

func (m *machine) consolidates(t *rapid.T, p *player, roundID string) {
	m.records(t, p, m.consolidate(&p.modelSession, roundID), supervisor.CheckpointParams{Transition: "review-consolidated", RoundID: roundID})
}

func (m *machine) finishes(t *rapid.T, p *player) {
	m.records(t, p, m.finishRound(&p.modelSession), supervisor.CheckpointParams{Transition: "implementation-round-finished"})
}

// drawReview draws the round that a session asks for, nil for none.
func (m *machine) drawReview(t *rapid.T, p *player) (*modelRun, supervisor.RefineRequest) {
	r := m.meant(&p.modelSession)
	if r == nil {
		return nil, supervisor.RefineRequest{}
	}
	target := actors.TargetPlan
	if r.in("implementation-review") && rapid.IntRange(0, 4).Draw(t, "target") > 0 {
		target = actors.TargetImplementation
	}
	return r, m.request(t, p, r, target)
}

// request asks for a review of the latest plan of a run, or of what it has led to.
func (m *machine) request(t *rapid.T, p *player, r *modelRun, target string) supervisor.RefineRequest {
	_, session := m.as(p)
	plan, _ := r.latest()
	return supervisor.RefineRequest{
		Session: session, RunID: r.id, PlanPath: m.planFile(t, r, plan.version), Target: target, Reviewers: 1, Model: supervisor.ModelAnswer{Answered: true},
	}
}

// begun gives a round of the model the name that it got.
func (r *modelRun) begun(id string) {
	r.record.rounds[len(r.record.rounds)-1].id = id
	if r.record.current == unnamed {
		r.record.current = id
	}
}

const unnamed = "not named yet"

func (m *machine) review(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	if r, req := m.drawReview(t, p); r != nil {
		m.reviews(t, p, r, req)
	}
}

// reviews makes a round and returns its id, "" when it was refused.
func (m *machine) reviews(t *rapid.T, p *player, r *modelRun, req supervisor.RefineRequest) string {
	daemon, _ := m.as(p)
	what := m.beginRound(&p.modelSession, r, req.Target, unnamed)
	result, err := daemon.Refine(t.Context(), req, nil)
	became(t, what, err)
	if what != done {
		return ""
	}
	r.begun(result.RoundID)
	m.endRound(r, result.RoundID, string(result.Lanes[0].Status))
	return result.RoundID
}

// wholeRound is a round of the implementation review from its beginning to its end.
func (m *machine) wholeRound(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	r := m.meant(&p.modelSession)
	if r == nil || !r.in("implementation-review") {
		return
	}
	if id := m.reviews(t, p, r, m.request(t, p, r, actors.TargetImplementation)); id != "" {
		m.consolidates(t, p, id)
		m.finishes(t, p)
	}
}

// beginReview begins a round whose lane works until it is cancelled.
func (m *machine) beginReview(t *rapid.T) {
	if p := m.free(t); p != nil && p.round == nil {
		m.begins(t, p)
	}
}

func (m *machine) begins(t *rapid.T, p *player) {
	r, req := m.drawReview(t, p)
	if r == nil {
		return
	}
	req.Focus = "STUB-HOLD"
	daemon, _ := m.as(p)
	what := m.beginRound(&p.modelSession, r, req.Target, unnamed)
	w, ended := newWatcher(), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, err := daemon.Refine(ctx, req, w.watch)
		ended <- err
	}()
	select {
	case err := <-ended:
		cancel()
		if what == done {
			t.Fatalf("the round ended by itself: %v", err)
		}
		became(t, what, err)
	case <-w.working:
		p.round = &roundAtWork{r, w.started.RoundID, cancel, ended}
		became(t, what, nil)
		r.begun(p.round.id)
	}
}

func (m *machine) cancelReview(t *rapid.T) {
	p := rapid.SampledFrom(m.reviewing()).Draw(t, "session")
	p.round.cancel()
	m.roundOver(t, p)
}

// roundOver is the orderly end of a round that was cancelled.
func (m *machine) roundOver(t *rapid.T, p *player) {
	round := p.round
	p.round = nil
	if round == nil {
		return
	}
	if err := <-round.done; err != nil {
		t.Fatal(err)
	}
	round.cancel()
	m.endRound(round.run, round.id, "failed")
}

// endSession ends a session, which may come back.
func (m *machine) endSession(t *rapid.T) {
	p := rapid.SampledFrom(m.players).Draw(t, "session")
	if p.round != nil {
		return // it would be waited for
	}
	daemon, _ := m.as(p)
	if err := daemon.EndSession(t.Context(), p.id); err != nil {
		t.Fatal(err)
	}
	p.talk = nil
	m.leaves(&p.modelSession)
	if rapid.Bool().Draw(t, "comes back") {
		m.comesBack(t, p)
	}
}

func (m *machine) comesBack(t *rapid.T, p *player) {
	var began *modelRun
	if entry := p.last("pi-plans-run-start"); entry != nil {
		began = m.named(t, entry)
	}
	at := p.last("pi-plans-exec", "pi-plans-exec-cleared")
	m.returns(&p.modelSession, began, at != nil && at["customType"] == "pi-plans-exec")
	m.hook(t, p, "session_start", object{"reason": "resume", "entries": slices.Concat([]object{}, p.history)})
}

// named is the run that an entry names.
func (m *machine) named(t *rapid.T, entry object) *modelRun {
	var data struct{ RunID string }
	if err := json.Unmarshal(encoded(t, entry["data"]), &data); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(m.runs, func(r *modelRun) bool { return r.id == data.RunID })
	if i < 0 {
		t.Fatalf("there is no run %s", data.RunID)
	}
	return m.runs[i]
}

func (m *machine) restart(t *rapid.T) {
	host := rapid.IntRange(0, 1).Draw(t, "daemon")
	m.close(t, host)
	for _, p := range m.players {
		if p.host == host {
			m.roundOver(t, p)
			m.leaves(&p.modelSession)
		}
	}
	m.reopen(t, host)
}

func (m *machine) reopen(t *rapid.T, host int) {
	m.open(t, host)
	for _, p := range m.players {
		if p.host == host {
			p.talk = nil
			m.comesBack(t, p)
		}
	}
}

// kill ends a daemon that has no time to write anything. To everybody its runs are those
// of a process that is dead; what it does to end inside this one cannot count any more.
func (m *machine) kill(t *rapid.T, host int) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.players {
		if p.host != host {
			continue
		}
		for _, r := range m.runs {
			if r.owner == p.id { // a process id beyond the largest that a kernel gives
				m.write(t, m.file(r, "owner.json"), fmt.Sprintf(`{"schema":1,"host":%q,"pid":8388607,"pidStart":null,"sessionId":%q,`+
					`"processToken":"0123456789abcdef0123456789abcdef","generation":3,"acquiredAt":"2026-11-30T00:00:00Z"}`, hostname, p.id))
			}
		}
		m.dies(&p.modelSession)
	}
	m.close(t, host)
	for _, p := range m.players {
		if p.host == host && p.round != nil {
			var lost *store.LostOwnerError
			if err := <-p.round.done; !errors.As(err, &lost) {
				t.Fatalf("the round ended with %v", err)
			}
			p.round.cancel()
			p.round = nil
		}
	}
	m.reopen(t, host)
}

// torn is a change of a run whose daemon is killed before the checkpoint is written, and
// before the status where that comes behind it.
func (m *machine) torn(t *rapid.T, p *player, r *modelRun, status bool, change func()) {
	names := []string{"checkpoint.json"}
	if status {
		names = append(names, "run.json")
	}
	kept := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(m.file(r, name))
		if err != nil {
			t.Fatal(err)
		}
		kept[name] = string(data)
	}
	before, told := r.clone(), len(p.history)
	change()
	if r.owner != p.id { // it was refused
		return
	}
	for name, text := range kept {
		m.write(t, m.file(r, name), text)
	}
	p.history = p.history[:told] // the reply was on its way
	r.tear(before, status)
	m.kill(t, p.host)
}
