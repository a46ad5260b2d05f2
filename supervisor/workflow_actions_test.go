package supervisor_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"pilothouse/supervisor"
)

// workflowAction is a step of the machine that may be taken while it makes sense.
type workflowAction struct {
	name  string
	times int // how likely it is beside others
	sense func(*machine) bool
	take  func(*machine, *rapid.T)
}

func always(*machine) bool      { return true }
func hasRuns(m *machine) bool   { return len(m.runs) > 0 }
func hasRoom(m *machine) bool   { return len(m.runs) < 3 }
func hasTalk(m *machine) bool   { return len(m.talking()) > 0 }
func hasRounds(m *machine) bool { return len(m.reviewing()) > 0 }

func isExecuted(m *machine) bool {
	return slices.ContainsFunc(m.runs, func(r *modelRun) bool { return r.in("executing") })
}

func isReviewed(m *machine) bool {
	return slices.ContainsFunc(m.runs, func(r *modelRun) bool { return r.in("implementation-review") || len(r.record.rounds) > 0 })
}

func isConfigured(m *machine) bool {
	return slices.ContainsFunc(m.runs, func(r *modelRun) bool { return r.in("implementation-review") && r.record.condition != "" })
}

// workflowActions are the steps of the machine. Those that few sequences lead anywhere
// without come first and more often.
var workflowActions = []workflowAction{
	{"make a whole round", 5, isConfigured, (*machine).wholeRound},
	{"kill a daemon in a review", 4, hasRounds, func(m *machine, t *rapid.T) { m.kill(t, m.reviewing()[0].host) }},
	{"report", 4, isExecuted, (*machine).report},
	{"ask", 4, hasRuns, (*machine).asks},
	{"resume", 3, hasRuns, (*machine).resumeRun},
	{"rest", 3, isExecuted, (*machine).rest},
	{"answer", 5, hasTalk, (*machine).answerOpen},
	{"record a step", 4, isReviewed, (*machine).recordStep},
	{"hand off", 3, hasRuns, (*machine).handOff},
	{"commit", 2, always, (*machine).commit},
	{"kill a daemon", 1, always, func(m *machine, t *rapid.T) { m.kill(t, rapid.IntRange(0, 1).Draw(t, "daemon")) }},
	{"tell the context", 2, isExecuted, (*machine).tellContext},
	{"write the plan", 3, hasRuns, (*machine).writePlan},
	{"update the plan", 1, hasRuns, (*machine).updatePlan},
	{"begin a review", 2, hasRuns, (*machine).beginReview},
	{"restart a daemon", 1, always, (*machine).restart},
	{"stop", 1, hasRuns, func(m *machine, t *rapid.T) { m.endRun(t, "plans-stop", "stopped", "stopped by the user") }},
	{"end a session", 1, always, (*machine).endSession},
	{"cancel a review", 2, hasRounds, (*machine).cancelReview},
	{"review", 1, hasRuns, (*machine).review},
	{"type", 1, isExecuted, (*machine).typeInput},
	{"change the plan on disk", 1, hasRuns, (*machine).changePlan},
	{"list the runs", 1, hasRuns, (*machine).list},
	{"set the status", 1, hasRuns, (*machine).setStatusOf},
	{"abandon", 1, hasRuns, func(m *machine, t *rapid.T) { m.endRun(t, "plans-abandon", "abandoned", "abandoned") }},
	{"start a run", 2, hasRoom, (*machine).startRun},
}

// step takes one of the steps that make sense.
func (m *machine) step(t *rapid.T) {
	var names []string
	take := map[string]func(*machine, *rapid.T){}
	for _, action := range workflowActions {
		if action.sense(m) {
			names, take[action.name] = append(names, slices.Repeat([]string{action.name}, action.times)...), action.take
		}
	}
	name := rapid.SampledFrom(names).Draw(t, "action")
	take[name](m, t)
}

func (m *machine) talking() []*player {
	return slices.DeleteFunc(slices.Clone(m.players), func(p *player) bool { return p.talk == nil })
}

func (m *machine) reviewing() []*player {
	return slices.DeleteFunc(slices.Clone(m.players), func(p *player) bool { return p.round == nil })
}

// free draws a session without an open dialog, often the one of the last step; nil when
// there is none.
func (m *machine) free(t *rapid.T) *player {
	free := slices.DeleteFunc(slices.Clone(m.players), func(p *player) bool { return p.talk != nil })
	if len(free) == 0 {
		return nil
	}
	if m.last == nil || m.last.talk != nil || rapid.IntRange(0, 2).Draw(t, "another session") == 0 {
		m.last = rapid.SampledFrom(free).Draw(t, "session")
	}
	return m.last
}

// opens has a session wait for the answer to a dialog, which may come at once.
func (m *machine) opens(t *rapid.T, p *player, reply supervisor.Reply, err error, finish func(t *rapid.T, d supervisor.Dialog)) {
	p.talk = &talk{opened(t, reply, err), finish}
	if rapid.IntRange(0, 2).Draw(t, "later") > 0 {
		m.finish(t, p)
	}
}

func (m *machine) finish(t *rapid.T, p *player) {
	talk := p.talk
	p.talk = nil
	talk.finish(t, talk.Dialog)
}

// GoString is how a draw is told.
func (p *player) GoString() string { return p.id }

// GoString is how a draw is told.
func (r *modelRun) GoString() string { return r.id }

func (m *machine) startRun(t *rapid.T) {
	if p := m.free(t); p != nil {
		m.starts(t, p)
	}
}

func (m *machine) starts(t *rapid.T, p *player) {
	value, err := m.plans(t, p, supervisor.PlansAction{Action: "start-run", Topic: fmt.Sprint("run ", len(m.runs)+1), Skill: "plan-normal", RequestText: "bake bread"})
	result, ok := value.(supervisor.StartRunResult)
	if err != nil || !ok {
		t.Fatalf("%T, %v", value, err)
	}
	m.start(&p.modelSession, result.Run.RunID)
	m.hook(t, p, "tool_result", object{"toolName": "plans", "input": object{"action": "start-run"}})
}

// opened is the dialog of a reply that has to have one.
func opened(t *rapid.T, reply supervisor.Reply, err error) supervisor.Dialog {
	if err != nil || reply.Dialog == nil {
		t.Fatalf("nobody is asked: %+v, %v", reply, err)
	}
	return *reply.Dialog
}

// closed checks a reply that must not ask.
func closed(t *rapid.T, reply supervisor.Reply) {
	if reply.Dialog != nil {
		t.Fatalf("the user is asked: %+v", *reply.Dialog)
	}
}

func (m *machine) asks(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	id := rapid.SampledFrom([]string{"q1", "q2"}).Draw(t, "question")
	q, known, what := m.ask(&p.modelSession, id)
	reply, err := m.converse(t, p, supervisor.KindTool, "ask_choice", object{
		"question": "Which " + id + "?", "options": []object{{"label": "yes"}, {"label": "no"}}, "questionId": id, "autoComplete": false,
	})
	if what != asks {
		closed(t, reply)
		became(t, what, err)
		if what == done {
			given(t, reply, known)
		}
		return
	}
	m.opens(t, p, reply, err, func(t *rapid.T, d supervisor.Dialog) { m.answerQuestion(t, p, q, d) })
}

// given checks the answer that the model gets.
func given(t *rapid.T, reply supervisor.Reply, want string) {
	var details choiceDetails
	if reply.Result == nil || json.Unmarshal(reply.Result.Details, &details) != nil {
		t.Fatalf("no answer in %+v", reply)
	}
	if want == "" && details.Answer != nil || want != "" && (details.Answer == nil || *details.Answer != want) {
		t.Fatalf("the answer is %+v, want %q", details, want)
	}
}

func (m *machine) answerQuestion(t *rapid.T, p *player, q question, d supervisor.Dialog) {
	how := rapid.SampledFrom([]string{"yes", "no", "Other", "Other", "torn", "torn", "dismissed", "aborted"}).Draw(t, "answer")
	zero, own := 0, "maybe"
	answer, text := supervisor.Answer{Index: &zero}, "yes"
	switch how {
	case "aborted":
		m.abort(t, p, d)
		return
	case "dismissed":
		reply, err := m.answers(t, p, d, supervisor.Answer{Cancelled: true})
		became(t, done, err)
		given(t, reply, "")
		return
	case "no":
		one := 1
		answer, text = supervisor.Answer{Index: &one}, "no"
	case "Other":
		two := 2
		reply, err := m.answers(t, p, d, supervisor.Answer{Index: &two})
		d = opened(t, reply, err)
		answer, text = supervisor.Answer{Text: &own}, own
	}
	give := func() {
		counts, what := m.answer(&p.modelSession, q, text)
		reply, err := m.answers(t, p, d, answer)
		became(t, what, err)
		if what == done {
			given(t, reply, counts)
		}
	}
	if how == "torn" && q.run != nil {
		m.torn(t, p, q.run, false, give)
		return
	}
	give()
}

// abort ends a dialog as its user does who interrupts the agent.
func (m *machine) abort(t *rapid.T, p *player, d supervisor.Dialog) {
	daemon, _ := m.as(p)
	if err := daemon.EndConversation(t.Context(), d.Conversation); err != nil {
		t.Fatal(err)
	}
}

// confirms answers a confirmation. Yes does what the model says to whom it belongs.
func (m *machine) confirms(t *rapid.T, p *player, r *modelRun, d supervisor.Dialog, status bool, yes func() outcome) {
	how := rapid.SampledFrom([]string{"yes", "yes", "yes", "yes", "torn", "no", "dismissed", "aborted"}).Draw(t, "answer")
	zero, one := 0, 1
	accept := func() {
		what := yes()
		_, err := m.answers(t, p, d, supervisor.Answer{Index: &zero})
		became(t, what, err)
	}
	switch how {
	case "aborted":
		m.abort(t, p, d)
	case "no", "dismissed":
		_, err := m.answers(t, p, d, supervisor.Answer{Index: &one, Cancelled: how == "dismissed"})
		became(t, done, err)
	case "torn":
		m.torn(t, p, r, status, accept)
	default:
		accept()
	}
}

func (m *machine) answerOpen(t *rapid.T) {
	m.finish(t, rapid.SampledFrom(m.talking()).Draw(t, "session"))
}

func (m *machine) handOff(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	kind, name, args := supervisor.KindTool, "execute_plan", any(object{})
	byCommand := rapid.Bool().Draw(t, "by command")
	if byCommand {
		kind, name, args = supervisor.KindCommand, "plans-execute", ""
	}
	h, what := m.offer(&p.modelSession, !byCommand)
	reply, err := m.converse(t, p, kind, name, args)
	if what != asks {
		closed(t, reply)
		became(t, what, err)
		return
	}
	d := opened(t, reply, err)
	if path := m.planFile(t, h.run, h.plan.version); !strings.Contains(d.Message, path) || !h.stopped && !strings.Contains(d.Message, digest(h.plan.text)) {
		t.Fatalf("what is approved is not told: %q", d.Message)
	}
	m.opens(t, p, reply, err, func(t *rapid.T, d supervisor.Dialog) {
		if rapid.Bool().Draw(t, "changed meanwhile") {
			m.edit(t, h.run, h.plan.version, planText(h.plan.version, planVariants[1]))
		}
		key := h.run.id + digest(h.plan.text)
		m.confirms(t, p, h.run, d, true, func() outcome {
			if h.stopped {
				return m.resumeStopped(&p.modelSession, h)
			}
			what := m.approve(&p.modelSession, h)
			m.approved[key] = m.approved[key] || what == done
			return what
		})
	})
}

func (m *machine) endRun(t *rapid.T, command, status, reason string) {
	p := m.free(t)
	if p == nil {
		return
	}
	r, what := m.mayEnd(&p.modelSession, status == "stopped")
	reply, err := m.converse(t, p, supervisor.KindCommand, command, "")
	if what != asks {
		closed(t, reply)
		became(t, done, err) // the user is told
		return
	}
	m.opens(t, p, reply, err, func(t *rapid.T, d supervisor.Dialog) {
		m.confirms(t, p, r, d, false, func() outcome { return m.end(&p.modelSession, r, status, reason) })
	})
}

func (m *machine) updatePlan(t *rapid.T) {
	p := m.free(t)
	if p == nil {
		return
	}
	v, what := m.revise(&p.modelSession)
	reply, err := m.converse(t, p, supervisor.KindCommand, "update-plan", "with more salt")
	if what != asks {
		closed(t, reply)
		became(t, what, err)
		return
	}
	m.opens(t, p, reply, err, func(t *rapid.T, d supervisor.Dialog) {
		m.confirms(t, p, v.run, d, false, func() outcome { return m.turnBack(&p.modelSession, v) })
	})
}

func (m *machine) drawPlan(t *rapid.T) (version int, text string) {
	version = rapid.IntRange(1, planVersions).Draw(t, "version")
	return version, planText(version, rapid.SampledFrom(planVariants).Draw(t, "variant"))
}

func (m *machine) writePlan(t *rapid.T) {
	p := m.free(t)
	if p == nil || m.meant(&p.modelSession) == nil {
		return
	}
	version, text := m.drawPlan(t)
	m.writes(t, p, version, text)
}

func (m *machine) writes(t *rapid.T, p *player, version int, text string) {
	path := m.planFile(t, m.meant(&p.modelSession), version)
	event := object{"toolName": "write", "toolCallId": "c", "input": object{"path": path, "content": text}}
	if reply := m.hook(t, p, "tool_call", event); reply.Block != nil {
		t.Fatalf("the plan may not be written: %s", reply.Block.Reason)
	}
	m.write(t, path, text)
	what := m.wrote(&p.modelSession, version, text)
	if told := warned(m.hook(t, p, "tool_result", event)); len(told) > 0 != (what != done) {
		t.Fatalf("the session is told %v, the model says: %s", told, what)
	}
}

func (m *machine) write(t *rapid.T, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// changePlan is the user with an editor.
func (m *machine) changePlan(t *rapid.T) {
	r := m.anyRun(t)
	if r == nil {
		return
	}
	version, text := m.drawPlan(t)
	if _, there := r.files[version]; there && rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
		if err := os.Remove(m.planFile(t, r, version)); err != nil {
			t.Fatal(err)
		}
		delete(r.files, version)
		return
	}
	m.edit(t, r, version, text)
}

func (m *machine) edit(t *rapid.T, r *modelRun, version int, text string) {
	m.write(t, m.planFile(t, r, version), text)
	r.files[version] = text
}

func (m *machine) anyRun(t *rapid.T) *modelRun {
	if len(m.runs) == 0 {
		return nil
	}
	return rapid.SampledFrom(m.runs).Draw(t, "run")
}

func (m *machine) setStatusOf(t *rapid.T) {
	p, r := m.free(t), m.anyRun(t)
	if p == nil || r == nil {
		return
	}
	status := rapid.SampledFrom([]string{"planning", "accepted", "executing", "stopped", "done", "abandoned"}).Draw(t, "status")
	_, err := m.plans(t, p, supervisor.PlansAction{Action: "set-status", RunID: r.id, Status: status})
	became(t, m.setStatus(&p.modelSession, r, status), err)
}

func (m *machine) resumeRun(t *rapid.T) {
	p, r := m.free(t), m.anyRun(t)
	if p == nil || r == nil {
		return
	}
	daemon, session := m.as(p)
	what := m.resume(&p.modelSession, r)
	resumed, err := daemon.Resume(t.Context(), supervisor.ResumeRequest{Session: session, RunID: r.id})
	became(t, what, err)
	if what == done {
		m.briefed(t, r, resumed)
		p.history = append(p.history, object{"customType": "pi-plans-run-start", "data": object{"runId": r.id}})
	}
}

// briefed checks what a session is told of a run that it has resumed.
func (m *machine) briefed(t *rapid.T, r *modelRun, resumed supervisor.Resumption) {
	c := r.record
	if pending := c.pending != "" && !r.in("executing"); strings.Contains(resumed.Brief, "PENDING question "+c.pending) != pending {
		t.Fatalf("question %q is pending, and told is %q", c.pending, resumed.Brief)
	}
	for id, answer := range c.answers {
		if r.in("planning") && !strings.Contains(resumed.Brief, "- "+id+": "+answer) {
			t.Fatalf("the answer to %s is missing in %q", id, resumed.Brief)
		}
	}
	if again := r.in("executing") && r.status != "executing"; again != (resumed.Handoff != "") {
		t.Fatalf("the run is %s, and has to be approved again: %q", r.status, resumed.Handoff)
	}
	var stale []string
	if r.status == "executing" && r.in("executing") {
		stale = m.stale(r)
	}
	if !slices.Equal(stale, resumed.Reverify) {
		t.Fatalf("%v has to be verified again, and told is %v", stale, resumed.Reverify)
	}
}

// list checks which runs can be resumed.
func (m *machine) list(t *rapid.T) {
	p := rapid.SampledFrom(m.players).Draw(t, "session")
	daemon, session := m.as(p)
	candidates, err := daemon.Candidates(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range m.runs {
		i := slices.IndexFunc(candidates, func(c supervisor.Candidate) bool { return c.RunID == r.id })
		if listed := r.status != "abandoned" && !r.in("completed"); listed != (i >= 0) {
			t.Fatalf("run %s is among the candidates: %v", r.id, i >= 0)
		}
		if active := r == m.meant(&p.modelSession); i >= 0 && (candidates[i].Active != active || active && i > 0) {
			t.Fatalf("candidate %d is %+v for session %s", i, candidates[i], p.id)
		}
	}
}
