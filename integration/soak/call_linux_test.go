package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// ask is a call of the system, bound to its request.
type ask func(context.Context, supervisor.Watch) (supervisor.RoundResult, error)

// call is one round that is asked for, watched and held against what its children
// did.
type call struct {
	t       *testing.T
	name    string
	journal string
	killer  *killer
	random  *rand.Rand // of its faults

	cancelAt int // cancels at this event, never when negative
	strikes  int // one of so many events orders a kill; none when 0

	started  chan struct{} // closed when the round is on record, or is over without
	cancel   context.CancelCauseFunc
	events   int
	round    supervisor.RoundStarted
	progress map[string]lanes.Progress
	ended    map[string]supervisor.LaneResult
	result   supervisor.RoundResult
}

func (c *call) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: %s", c.name, fmt.Sprintf(format, args...))
}

// run makes the call. It is false when it was cancelled before its round began.
func (c *call) run(do ask) bool {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	c.cancel = cancel
	c.progress, c.ended = map[string]lanes.Progress{}, map[string]supervisor.LaneResult{}
	if c.cancelAt == 0 {
		cancel(errors.New("the seed says so"))
	}
	result, err := do(ctx, c.watch)
	if c.round.RoundID == "" {
		close(c.started)
	}
	var cancelled *supervisor.CancelledError
	switch {
	case errors.As(err, &cancelled) && c.cancelAt >= 0 && c.round.RoundID == "":
		return false
	case err != nil:
		c.errorf("%v", err)
		return false
	}
	c.result = result
	return true
}

// watch checks that a lane's progress only ever grows and that nothing comes after
// its end.
func (c *call) watch(event any) {
	c.events++
	if c.events == c.cancelAt {
		c.cancel(errors.New("the seed says so"))
	}
	if c.strikes > 0 && c.random.IntN(c.strikes) == 0 {
		c.killer.strike(c.random.Uint64())
	}
	switch m := event.(type) {
	case supervisor.RoundStarted:
		if c.round.RoundID != "" {
			c.errorf("a second start: %+v", m)
			return
		}
		c.round = m
		close(c.started)
	case lanes.Progress:
		before := c.progress[m.LaneID]
		c.progress[m.LaneID] = m
		if _, over := c.ended[m.LaneID]; over || c.round.RoundID == "" || m.Status != lanes.Running {
			c.errorf("progress of lane %s at a wrong time: %+v", m.LaneID, m)
		}
		if m.Attempt < before.Attempt || m.Turns < before.Turns || m.Elapsed < before.Elapsed ||
			m.Usage.Tokens() < before.Usage.Tokens() || m.Usage.Cost < before.Usage.Cost {
			c.errorf("progress goes back: %+v after %+v", m, before)
		}
	case supervisor.LaneEnded:
		id := m.Lane.LaneID
		if _, twice := c.ended[id]; twice {
			c.errorf("lane %s ended twice", id)
		}
		c.ended[id] = m.Lane
		if last := c.progress[id]; m.Lane.Attempts < last.Attempt || m.Lane.Turns < last.Turns || m.Lane.Usage.Cost < last.Usage.Cost {
			c.errorf("lane %s ended with less than its progress: %+v after %+v", id, m.Lane, last)
		}
	default:
		c.errorf("unknown event %T", event)
	}
}

// check holds the result against the events, the files and the children.
func (c *call) check(root store.Root) {
	rounds, run := root.AdHoc(), (*store.RunDir)(nil)
	if c.round.RunID != "adhoc" {
		dir, err := root.Run(c.round.RunID)
		if err != nil {
			c.errorf("%v", err)
			return
		}
		rounds, run = dir.RoundDir(), &dir
	}
	record, err := rounds.LoadRound(c.round.RoundID)
	if err != nil {
		c.errorf("%v", err)
		return
	}
	if record.CompletedAt.IsZero() {
		c.errorf("the record of round %s is open", record.RoundID)
	}
	if len(c.result.Lanes) != len(c.round.Lanes) || len(record.Lanes) != len(c.round.Lanes) || len(c.ended) != len(c.round.Lanes) {
		c.errorf("%d lanes accepted, %d in the result, %d in the record, %d reported", len(c.round.Lanes), len(c.result.Lanes), len(record.Lanes), len(c.ended))
		return
	}
	for i, lane := range c.result.Lanes {
		if accepted := c.round.Lanes[i].Spec; lane.LaneID != accepted.ID {
			c.errorf("lane %d is %s in the result and was accepted as %s", i, lane.LaneID, accepted.ID)
		}
		if ended := c.ended[lane.LaneID]; ended.Status != lane.Status || ended.Output != lane.Output || !lane.Status.Terminal() {
			c.errorf("lane %s is reported %s and %s in the result", lane.LaneID, ended.Status, lane.Status)
		}
		at := slices.IndexFunc(record.Lanes, func(l store.LaneRecord) bool { return l.LaneID == lane.LaneID })
		if at < 0 || string(record.Lanes[at].Status) != string(lane.Status) || record.Lanes[at].Attempts != lane.Attempts {
			c.errorf("lane %s is %s in the result; the record is %+v", lane.LaneID, lane.Status, record.Lanes)
		}
		c.checkAnswer(rounds, lane)
		if !lane.Reused {
			c.checkChildren(c.round.Lanes[i].Spec, lane)
		}
	}
	if c.result.Role != "ref-analyst" {
		c.checkCheckpoint(run)
	}
}

// checkAnswer looks for the answer on disk: it is there if and only if the lane is
// complete.
func (c *call) checkAnswer(rounds store.RoundDir, lane supervisor.LaneResult) {
	if (lane.Status == lanes.Complete) != (lane.ResultFile != nil) || (lane.Status == lanes.Complete) != (lane.Error == nil) {
		c.errorf("lane %s is %s with the result file %v and the error %+v", lane.LaneID, lane.Status, lane.ResultFile, lane.Error)
		return
	}
	if lane.ResultFile == nil {
		return
	}
	data, err := os.ReadFile(*lane.ResultFile)
	if err != nil || strings.TrimSpace(string(data)) != lane.Output || !strings.HasPrefix(*lane.ResultFile, rounds.Reviews) {
		c.errorf("lane %s: the stored answer is not the one reported (%v)", lane.LaneID, err)
	}
}

// checkCheckpoint compares the checkpoint of the run with the result.
func (c *call) checkCheckpoint(run *store.RunDir) {
	cp, err := run.LoadCheckpoint()
	if err != nil {
		c.errorf("%v", err)
		return
	}
	round := cp.Round(c.round.RoundID)
	if round == nil || len(round.Lanes) != len(c.result.Lanes) {
		c.errorf("the checkpoint has %+v", round)
		return
	}
	for _, lane := range c.result.Lanes {
		want := store.LaneFailed // it knows no other end without an answer
		if lane.Status == lanes.Complete {
			want = store.LaneComplete
		}
		if known := round.Lane(lane.LaneID); known == nil || known.Status != want {
			c.errorf("lane %s is %s; the checkpoint has %+v", lane.LaneID, lane.Status, known)
		}
	}
}

// checkChildren holds a lane against what its children have noted: an answer that
// was written counts, whatever came after it, nothing else counts, and no delta
// is lost or out of order.
func (c *call) checkChildren(spec lanes.Spec, lane supervisor.LaneResult) {
	children := journal(c.t, c.journal, spec.Name)
	fed, answered, maybe := 0, 0, 0
	var last played
	for _, child := range children {
		if child.fed {
			fed++
		}
		if child.answered {
			answered++
		}
		if child.answers > 0 {
			maybe++ // it may have been killed between its answer and the note
			last = child
		}
	}
	// A child that died before it had read its task has noted nothing.
	if fed > lane.Attempts {
		c.errorf("lane %s has fed %d children in %d attempts", lane.LaneID, fed, lane.Attempts)
	}
	switch {
	case answered > 1 || maybe > answered+1:
		c.errorf("lane %s went on after an answer: %+v", lane.LaneID, children)
	case answered == 1 && lane.Status != lanes.Complete:
		c.errorf("an answer is lost: lane %s is %s (%+v) after %+v", lane.LaneID, lane.Status, lane.Error, children)
	case maybe == 0 && lane.Status == lanes.Complete:
		c.errorf("lane %s is complete without an answer: %+v", lane.LaneID, children)
	}
	transcript := c.transcript(lane)
	for _, child := range children {
		got := deltas(transcript, child.token)
		if n := consecutive(got); n != len(got) || n < child.printed {
			c.errorf("lane %s: the transcript has deltas %v of at least %d", lane.LaneID, got, child.printed)
		}
	}
	if lane.Status == lanes.Complete && maybe > 0 {
		c.checkOutput(lane, transcript, last)
	}
}

// checkOutput compares the answer with what its child has streamed: it is the tail
// of it, to the last delta.
func (c *call) checkOutput(lane supervisor.LaneResult, transcript string, child played) {
	streamed, answer := deltas(transcript, child.token), deltas(lane.Output, child.token)
	if len(streamed) != child.answers || len(answer) == 0 || len(answer) > len(streamed) ||
		!slices.Equal(streamed[len(streamed)-len(answer):], answer) {
		c.errorf("lane %s: %d deltas in the transcript and %d in the answer, want %d", lane.LaneID, len(streamed), len(answer), child.answers)
	}
	if len(lane.Notes) > 0 && strings.Contains(strings.Join(lane.Notes, "\n"), "transcript") {
		c.errorf("lane %s: %q", lane.LaneID, lane.Notes)
	}
}

// transcript is all the text of a lane's transcript.
func (c *call) transcript(lane supervisor.LaneResult) string {
	if lane.Transcript == nil {
		return ""
	}
	file, err := os.Open(*lane.Transcript)
	if errors.Is(err, os.ErrNotExist) {
		return "" // nothing was said
	}
	if err != nil {
		c.errorf("%v", err)
		return ""
	}
	defer file.Close()
	var text strings.Builder
	for lines := json.NewDecoder(file); lines.More(); {
		var entry lanes.TranscriptEntry
		if err := lines.Decode(&entry); err != nil {
			c.errorf("the transcript of lane %s: %v", lane.LaneID, err)
			break
		}
		if entry.Type == "assistant-text" {
			text.WriteString(entry.Text)
		}
	}
	return text.String()
}

// deltas returns the numbers of a child's deltas in the order of the text.
func deltas(text, token string) []int {
	var numbers []int
	for {
		_, rest, found := strings.Cut(text, token+":")
		if !found {
			return numbers
		}
		n := 0
		for rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			n, rest = 10*n+int(rest[0]-'0'), rest[1:]
		}
		numbers = append(numbers, n)
		text = rest
	}
}

// consecutive counts how many numbers run 1, 2, 3 … from the first.
func consecutive(numbers []int) int {
	for i, n := range numbers {
		if n != i+1 {
			return i
		}
	}
	return len(numbers)
}
