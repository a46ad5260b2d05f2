package crash_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"pilothouse/store"
)

// known is what the parent knows of a run from what its drivers were told.
type known struct {
	revision, generation int // never fall
	flow                 flow
	trying               *note // a step that was not acknowledged
	questions            map[string]*question
	decisions            []string
	rounds               map[string]*round
}

// question is how far a question came.
type question struct {
	asked    bool
	tried    []string // answers that were about to be given
	answer   string   // acknowledged
	answered bool
	dropping bool
	dropped  bool
}

// round is what was told of a round.
type round struct {
	lanes        []string
	answers      map[string]string // digests of complete lanes
	failed       []string          // may complete in a later call
	consolidated bool
	ended        bool // all its lanes were told to have ended
}

func newKnown() *known {
	return &known{questions: map[string]*question{}, rounds: map[string]*round{}}
}

func (k *known) question(id string) *question {
	if k.questions[id] == nil {
		k.questions[id] = &question{}
	}
	return k.questions[id]
}

func (k *known) round(id string) *round {
	if k.rounds[id] == nil {
		k.rounds[id] = &round{answers: map[string]string{}}
	}
	return k.rounds[id]
}

// learn takes in a note. The error tells of a driver that was told something wrong.
func (k *known) learn(n note) error {
	switch n.Kind {
	case runStarted:
		k.flow = *n.Flow
	case asked:
		k.question(n.ID).asked = true
	case answering:
		q := k.question(n.ID)
		q.tried = append(q.tried, n.Text)
	case answered:
		q := k.question(n.ID)
		if !slices.Contains(q.tried, n.Text) || q.answered && q.answer != n.Text {
			return fmt.Errorf("question %s is told to be answered %q, tried was %q, before it was %q", n.ID, n.Text, q.tried, q.answer)
		}
		q.answered, q.answer = true, n.Text
	case dropping:
		k.question(n.ID).dropping = true
	case dropped:
		k.question(n.ID).dropped = true
	case decided:
		k.decisions = append(k.decisions, n.ID)
	case stepping:
		k.trying = &n
	case stepped:
		if k.trying == nil || *k.trying.Flow != *n.Flow || n.Revision < k.revision {
			return fmt.Errorf("%s at revision %d after %d led from %+v to %+v, expected was %+v", n.Text, n.Revision, k.revision, k.flow, *n.Flow, k.trying)
		}
		k.flow, k.trying, k.revision = *n.Flow, nil, n.Revision
	case begun:
		r := k.round(n.ID)
		if r.lanes != nil && !slices.Equal(r.lanes, n.Lanes) {
			return fmt.Errorf("round %s has lanes %v, before it had %v", n.ID, n.Lanes, r.lanes)
		}
		r.lanes = n.Lanes
		r.ended = false
	case laneEnded:
		return k.laneEnded(n)
	case roundEnded:
		k.round(n.ID).ended = true
	case consolidate:
		k.round(n.ID).consolidated = true
	case fault:
		return errors.New(n.Text)
	}
	return nil
}

func (k *known) laneEnded(n note) error {
	r := k.round(n.ID)
	switch before := r.answers[n.Lane]; {
	case before != "" && (n.Status != string(store.LaneStatusComplete) || n.Text != before):
		return fmt.Errorf("lane %s of round %s was complete, and is told to have ended %s with another answer", n.Lane, n.ID, n.Status)
	case n.Status == string(store.LaneStatusComplete):
		r.answers[n.Lane] = n.Text
	default:
		r.failed = append(r.failed, n.Lane)
	}
	return nil
}

// check holds the files of a run against what is known and returns all that is
// wrong. Afterwards what is on disk is known.
func (k *known) check(run store.RunDir) (problems []error) {
	cp, err := run.LoadCheckpoint()
	if err != nil {
		return []error{err}
	}
	if cp.Revision < k.revision || cp.Generation < k.generation {
		problems = append(problems, fmt.Errorf("revision %d and generation %d, before %d and %d", cp.Revision, cp.Generation, k.revision, k.generation))
	}
	k.revision, k.generation = cp.Revision, cp.Generation
	if got := flowOf(cp); got != k.flow && (k.trying == nil || got != *k.trying.Flow) {
		problems = append(problems, fmt.Errorf("the workflow stands at %+v, acknowledged is %+v, tried was %+v", got, k.flow, k.trying))
	}
	k.flow, k.trying = flowOf(cp), nil
	decisions, err := run.Decisions()
	if err != nil {
		return append(problems, err)
	}
	problems = append(problems, k.checkDecisions(decisions)...)
	for id, q := range k.questions {
		if err := q.check(id, cp, decisions); err != nil {
			problems = append(problems, err)
		}
	}
	for id, r := range k.rounds {
		problems = append(problems, r.check(id, run, cp)...)
	}
	return problems
}

func (k *known) checkDecisions(decisions []store.Decision) (problems []error) {
	times := map[string]int{}
	for _, d := range decisions {
		times[d.Question]++
	}
	for _, id := range k.decisions {
		if times[id] != 1 {
			problems = append(problems, fmt.Errorf("decision %s is %d times in the ledger", id, times[id]))
		}
	}
	return problems
}

// check looks for a question in the checkpoint and in the ledger.
func (q *question) check(id string, cp store.Checkpoint, decisions []store.Decision) error {
	pending := cp.PendingQuestion != nil && cp.PendingQuestion.QuestionID == id
	var inCheckpoint, inLedger []string
	for _, a := range cp.AnsweredQuestions {
		if a.QuestionID == id {
			inCheckpoint = append(inCheckpoint, a.Answer)
		}
	}
	for _, d := range decisions {
		if d.QuestionID == id {
			inLedger = append(inLedger, d.Answer)
		}
	}
	ok := len(inLedger) <= 1 && len(inCheckpoint) <= 1
	for _, answer := range slices.Concat(inLedger, inCheckpoint) {
		ok = ok && slices.Contains(q.tried, answer)
	}
	if len(inCheckpoint) == 1 { // the ledger's line comes first
		ok = ok && !pending && slices.Equal(inLedger, inCheckpoint)
	}
	switch {
	case q.answered:
		ok = ok && slices.Equal(inCheckpoint, []string{q.answer})
	case q.dropped && len(q.tried) > 0: // an answer under way at a kill may have come first, and wins
		ok = ok && !pending && slices.Equal(inLedger, inCheckpoint)
	case q.dropped:
		ok = ok && !pending && len(inLedger) == 0
	case q.asked && !q.dropping:
		ok = ok && (pending || len(inCheckpoint) == 1)
	}
	if !ok {
		return fmt.Errorf("question %s: %+v; pending %v, answers %q in the checkpoint and %q in the ledger", id, *q, pending, inCheckpoint, inLedger)
	}
	return nil
}

// check looks for a round in the checkpoint, its record and the reviews.
func (r *round) check(id string, run store.RunDir, cp store.Checkpoint) (problems []error) {
	stored := cp.Round(id)
	record, err := run.RoundDir().LoadRound(id)
	if err != nil || stored == nil {
		return []error{fmt.Errorf("round %s: the checkpoint has %+v, the record: %w", id, stored, err)}
	}
	if len(stored.Lanes) != len(r.lanes) || len(record.Lanes) != len(r.lanes) || r.consolidated && !stored.Consolidated {
		problems = append(problems, fmt.Errorf("round %s of lanes %v, consolidated %v: the checkpoint has %+v, the record %+v", id, r.lanes, r.consolidated, stored, record))
	}
	for _, name := range r.lanes {
		lane := stored.Lane(name)
		at := slices.IndexFunc(record.Lanes, func(l store.LaneRecord) bool { return l.LaneID == name })
		if lane == nil || at < 0 {
			problems = append(problems, fmt.Errorf("round %s: lane %s is missing", id, name))
			continue
		}
		if err := r.checkLane(run, *lane, record.Lanes[at]); err != nil {
			problems = append(problems, fmt.Errorf("round %s: %w", id, err))
		}
	}
	return problems
}

func (r *round) checkLane(run store.RunDir, lane store.ReviewLane, record store.LaneRecord) error {
	if lane.ResultFile != "" || record.ResultFile != "" {
		file := lane.ResultFile
		if file == "" {
			file = record.ResultFile
		}
		text, err := run.ReadReview(file)
		if err != nil {
			return fmt.Errorf("lane %s: %w", lane.LaneID, err)
		}
		digest := sha256.Sum256([]byte(text))
		if want := r.answers[lane.LaneID]; want != "" && want != hex.EncodeToString(digest[:]) {
			return fmt.Errorf("lane %s has another answer than was told: %q", lane.LaneID, text)
		}
	}
	complete := lane.Status == store.LaneComplete && record.Status == store.LaneStatusComplete && lane.ResultFile != ""
	switch {
	case r.answers[lane.LaneID] != "" && !complete:
		return fmt.Errorf("lane %s was told to be complete; the checkpoint has %+v, the record %+v", lane.LaneID, lane, record)
	case r.ended && (lane.Status == store.LanePending || !record.Status.Terminal()):
		return fmt.Errorf("lane %s of a round that has ended: the checkpoint has %+v, the record %+v", lane.LaneID, lane, record)
	case slices.Contains(r.failed, lane.LaneID) && lane.Status == store.LanePending:
		return fmt.Errorf("lane %s was told to have failed and is pending", lane.LaneID)
	case lane.Status == store.LaneComplete && record.Status != store.LaneStatusComplete:
		return fmt.Errorf("lane %s is complete in the checkpoint and %s in the record", lane.LaneID, record.Status)
	}
	return nil
}
