package supervisor_test

import (
	"maps"
	"slices"
	"strings"
)

// This file says once more, without the code, what becomes of runs when sessions work on
// them (seed: Run State, Workflow Checkpoints, Run Ownership; spec: checkpoint 2.3 to 2.6,
// execution 5.2 to 5.8). It knows no files, no processes and no messages.

// world is a workspace.
type world struct {
	runs   []*modelRun
	active *modelRun // that the workspace points to
	head   string    // the commit checked out, "" before the first
}

// edition is a plan as it was at some moment.
type edition struct {
	version int
	text    string
}

// consent is an approval of its user.
type consent struct {
	plan edition
	head string
}

// modelRun is a run. Owner is the session that has it, "" for nobody, dead for one whose
// process has died.
type modelRun struct {
	id, owner string
	files     map[int]string // versions of the plan on disk
	status    string
	ledger    map[string]string // answers
	record    record
	notes     notes
}

// record is the checkpoint.
type record struct {
	phase, next string
	plan        edition
	approved    *consent
	done        []string
	reverify    bool
	paused      string
	pending     string
	answers     map[string]string
	rounds      []modelRound
	condition   string
	completed   int
	current     string
}

// notes is what is kept beside the checkpoint of the execution that was approved last.
type notes struct {
	of            *consent // nil for none
	session       string
	verified      map[string]string // the commit at which a check passed
	snapshot      string            // what was reached when the agent rested last
	idle, waiting int
}

// modelRound is a round of one lane.
type modelRound struct {
	id, target, lane string
	atWork           bool
	consolidated     bool
}

const dead = "dead"

// modelSession is a Pi session.
type modelSession struct {
	id    string
	bound *modelRun
	seat  *seat
	aside bool // it carries nothing out before that is handed to it
}

// seat is the execution that a session carries out.
type seat struct {
	run      *modelRun
	approved *consent
	stale    []string // checks that passed on another commit
	judged   bool     // the rest of the agent
}

// outcome of what a session wants.
type outcome string

const (
	done    outcome = "done"
	refused outcome = "refused" // by the state of the run
	owned   outcome = "owned"   // by somebody else
	asks    outcome = "asks"    // the user first
)

func (w *world) meant(s *modelSession) *modelRun {
	if s.bound != nil {
		return s.bound
	}
	return w.active
}

// guarded tells whether the session may only write planning artifacts.
func (w *world) guarded(s *modelSession) bool {
	r := w.meant(s)
	return r != nil && (r.status == "planning" || r.status == "accepted")
}

func (r *modelRun) terminal() bool { return r.status == "abandoned" || r.status == "done" }

// over tells whether a run needs no owner any more.
func (r *modelRun) over() bool {
	return r.status == "abandoned" || r.record.phase == "completed" || r.status == "done" && r.record.phase != "implementation-review"
}

func (r *modelRun) latest() (p edition, found bool) {
	if len(r.files) == 0 {
		return edition{}, false
	}
	version := slices.Max(slices.Collect(maps.Keys(r.files)))
	return edition{version, r.files[version]}, true
}

func (r *modelRun) in(phases ...string) bool { return slices.Contains(phases, r.record.phase) }

// free gives a run back that nobody has to have.
func (r *modelRun) free() {
	if r.over() && !slices.ContainsFunc(r.record.rounds, func(round modelRound) bool { return round.atWork }) {
		r.owner = ""
	}
}

// change is one change of a run by a session: whoever has the run goes on to have it,
// nobody else may, and a wish that is refused takes no run.
func (w *world) change(r *modelRun, s *modelSession, step func() bool) outcome {
	fresh := r.owner != s.id
	switch {
	case fresh && r.owner != "" && r.owner != dead:
		return owned
	case fresh:
		r.settle()
	}
	switch {
	case step():
		r.owner = s.id
		r.free()
		return done
	case fresh:
		r.owner = ""
	}
	return refused
}

// settle is what the next owner of a run writes down for one that has died.
func (r *modelRun) settle() {
	if answer, known := r.ledger[r.record.pending]; known && r.record.pending != "" {
		r.record.answers[r.record.pending], r.record.pending = answer, ""
	}
	for i := range r.record.rounds {
		if r.record.rounds[i].lane == "pending" {
			r.record.rounds[i].lane = "failed"
		}
	}
}

func (w *world) start(s *modelSession, id string) {
	r := &modelRun{
		id: id, owner: s.id, status: "planning", files: map[int]string{}, ledger: map[string]string{},
		record: record{phase: "planning", next: "continue-planning", answers: map[string]string{}},
	}
	w.runs = append(w.runs, r)
	w.active = r
	w.bind(s, r)
}

// bind makes a run the session's own, which carries out no other.
func (w *world) bind(s *modelSession, r *modelRun) {
	s.bound, s.aside = r, false
	if s.seat != nil && s.seat.run != r {
		s.seat = nil
	}
}

// setStatus is an agent with the tool. It gives itself no write access: what is carried out
// is approved as it is on disk, and only its user ends planning.
func (w *world) setStatus(s *modelSession, r *modelRun, status string) outcome {
	return w.change(r, s, func() bool {
		switch {
		case status == "executing" && !r.asApproved(), slices.Contains([]string{"stopped", "done", "abandoned"}, status) && (r.status == "planning" || r.status == "accepted"):
			return false
		}
		r.status = status
		return true
	})
}

// asApproved tells whether the plan that is carried out is as its user has approved it.
func (r *modelRun) asApproved() bool {
	return r.in("executing") && r.record.approved != nil && r.files[r.record.plan.version] == r.record.plan.text
}

// question is one that is shown to the user. Of no run nothing is recorded, and of one
// that has no room for it only the answer.
type question struct {
	id       string
	run      *modelRun
	own      bool // the run is the session's own, not only that of the workspace
	recorded bool
}

// ask asks a question, unless its answer is known.
func (w *world) ask(s *modelSession, id string) (q question, known string, what outcome) {
	q = question{id: id, run: w.meant(s), own: s.bound != nil}
	if q.run == nil {
		return q, "", asks
	}
	if answer, found := q.run.known(id); found {
		return q, answer, done
	}
	switch w.change(q.run, s, func() bool {
		if !q.run.in("planning", "reviewing", "implementation-review") {
			return false
		}
		q.run.record.pending, q.run.record.next = id, "ask-question"
		return true
	}) {
	case done:
		q.recorded = true
	case owned:
		if q.own {
			return q, "", owned
		}
		q.run = nil
	}
	return q, "", asks
}

func (r *modelRun) known(id string) (string, bool) {
	if answer, found := r.record.answers[id]; found {
		return answer, true
	}
	answer, found := r.ledger[id]
	return answer, found
}

// answer records what the user has answered, or finds that another answer counts. What
// a session asks is not about the run of another.
func (w *world) answer(s *modelSession, q question, answer string) (counts string, what outcome) {
	if q.run == nil {
		return answer, done
	}
	r, counts := q.run, answer
	what = w.change(r, s, func() bool {
		if !q.recorded {
			r.ledger[q.id] = answer
			return true
		}
		if earlier, known := r.known(q.id); known {
			counts = earlier
		} else if r.record.pending != q.id {
			return false
		}
		if r.record.pending == q.id {
			r.record.pending = ""
		}
		r.ledger[q.id], r.record.answers[q.id] = counts, counts
		return true
	})
	if what == owned && !q.own {
		return answer, done
	}
	return counts, what
}

// wrote is a version of the plan that the session's agent has written.
func (w *world) wrote(s *modelSession, version int, text string) outcome {
	r := w.meant(s)
	r.files[version] = text
	if latest, _ := r.latest(); r.status != "planning" && r.status != "accepted" || latest.version != version {
		return done
	}
	return w.change(r, s, func() bool {
		if !r.in("planning", "reviewing") {
			return false
		}
		r.record.plan = edition{version, text}
		return true
	})
}

// handoff is a plan whose approval is asked for, or, when its user has stopped its
// execution, whether that goes on.
type handoff struct {
	run     *modelRun
	plan    edition
	stopped bool
}

func (h handoff) approved() bool {
	c := h.run.record.approved
	return h.run.in("executing") && c != nil && c.plan.text == h.plan.text
}

// offer begins the execution of the latest plan if it is approved, or asks for that. What
// was stopped, no agent begins by itself.
func (w *world) offer(s *modelSession, byAgent bool) (handoff, outcome) {
	r := w.meant(s)
	if r == nil || r.status == "abandoned" {
		return handoff{}, refused
	}
	plan, found := r.latest()
	h := handoff{run: r, plan: plan}
	switch {
	case !found:
		return h, refused
	case byAgent && r.status == "stopped" && h.approved():
		h.stopped = true
		return h, asks
	case h.approved():
		return h, w.begin(s, r)
	case r.in("implementation-review", "completed"):
		return h, refused
	case !r.in("executing") && r.record.plan != (edition{}) && r.record.plan.text != plan.text:
		return h, refused
	}
	return h, asks
}

// approve is the user's yes to exactly the plan that was offered.
func (w *world) approve(s *modelSession, h handoff) outcome {
	r := h.run
	if r.files[h.plan.version] != h.plan.text {
		return refused
	}
	what := w.change(r, s, func() bool {
		switch {
		case r.in("implementation-review", "completed"):
			return false
		case r.in("executing") && r.record.approved != nil && r.record.approved.plan.text == h.plan.text:
			return false // what it has reached is not thrown away
		case !r.in("executing") && r.record.plan != (edition{}) && r.record.plan.text != h.plan.text:
			return false
		}
		c := &r.record
		c.phase, c.next, c.plan = "executing", "execute-items", h.plan
		c.approved = &consent{h.plan, w.head}
		c.done, c.reverify, c.paused = nil, false, ""
		r.notes = notes{of: c.approved, session: s.id, verified: map[string]string{}}
		return true
	})
	if what != done {
		return what
	}
	return w.begin(s, r)
}

// resumeStopped is the user's yes to an execution that was stopped.
func (w *world) resumeStopped(s *modelSession, h handoff) outcome {
	if !h.approved() || h.run.files[h.plan.version] != h.plan.text {
		return refused
	}
	return w.begin(s, h.run)
}

// begin lets the session carry out what is approved.
func (w *world) begin(s *modelSession, r *modelRun) outcome {
	if what := w.change(r, s, func() bool { r.status = "executing"; return true }); what != done {
		return what
	}
	w.bind(s, r)
	if w.execution(s) == nil {
		return refused
	}
	w.goOn(s)
	return done
}

// execution is what the session carries out, nil for nothing. It takes up what is
// approved and nobody else has. Of a plan that is not as it was approved any more, only
// the documents may be written.
func (w *world) execution(s *modelSession) *seat {
	if at := s.seat; at != nil && at.run.status == "executing" && at.run.in("executing") && at.run.record.approved == at.approved {
		return at
	}
	s.seat = nil
	r := w.meant(s)
	if r == nil || s.aside || r.status != "executing" || !r.in("executing") || s.bound == nil && (r.notes.of == nil || r.notes.session != s.id) {
		return nil
	}
	if !r.asApproved() {
		s.bound = r
		w.change(r, s, func() bool { r.status = "accepted"; return true })
		return nil
	}
	at := &seat{run: r, approved: r.record.approved, stale: w.stale(r)}
	n := r.notesOf(at.approved)
	if w.change(r, s, func() bool { r.record.reverify = r.record.reverify || len(at.stale) > 0; return true }) != done {
		return nil
	}
	w.bind(s, r)
	s.seat = at
	n.of, n.session = at.approved, s.id
	if now := at.snapshot(); n.snapshot != now {
		n.snapshot, n.idle, n.waiting = now, 0, 0
	}
	r.notes = n
	return at
}

// notesOf are the notes of an execution, empty ones when they are of another.
func (r *modelRun) notesOf(approved *consent) notes {
	if r.notes.of != approved {
		return notes{verified: map[string]string{}}
	}
	return r.notes
}

// stale are the checks that have to be verified again because they passed on another
// commit than the one checked out now, as far as that is another one than at the approval.
func (w *world) stale(r *modelRun) []string {
	c := r.record
	if !c.reverify && c.approved.head != "" && c.approved.head == w.head {
		return nil
	}
	verified := r.notesOf(c.approved).verified
	return slices.DeleteFunc(slices.Clone(c.done), func(id string) bool { return w.head != "" && verified[id] == w.head })
}

func (at *seat) valid() []string {
	return slices.DeleteFunc(slices.Clone(at.run.record.done), func(id string) bool { return slices.Contains(at.stale, id) })
}

func (at *seat) snapshot() string { return strings.Join(at.valid(), " ") }

// checks are those of every plan here.
var checks = []string{"VC-001", "VC-002"}

// reports is a message of the agent with markers of checks that have passed.
func (w *world) reports(s *modelSession, ids []string) {
	at := w.execution(s)
	if at == nil {
		return
	}
	valid := at.valid()
	var passed []string
	for _, id := range checks {
		if slices.Contains(ids, id) && !slices.Contains(valid, id) {
			passed = append(passed, id)
		}
	}
	if passed == nil {
		return
	}
	r := at.run
	at.stale = slices.DeleteFunc(at.stale, func(id string) bool { return slices.Contains(passed, id) })
	r.record.done = slices.Sorted(slices.Values(append(valid, passed...)))
	r.record.reverify = r.record.reverify && len(at.stale) > 0
	for _, id := range passed {
		if w.head != "" {
			r.notes.verified[id] = w.head
		}
	}
	if len(r.record.done) == len(checks) {
		r.status = "done"
		r.record.phase, r.record.next, r.record.paused = "implementation-review", "ask-question", ""
	}
}
