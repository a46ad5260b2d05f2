package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Request is what the server remembers of one chat-completions request that it
// understood. Refused ones (status 400) are not among them.
type Request struct {
	Model           string
	ReasoningEffort string // empty unless the client asked for thinking
	Messages        int
	Tools           []string
	User            string // text of the last user message
	System          string // text of the system or developer message
	Turn            int    // answers already in the conversation since the scripted user message
	Attempt         int    // 1 for the first request of this turn of this conversation
	Start, End      time.Time
	// Aborted: the client left before the answer was complete.
	Aborted bool
}

// Open tells whether the request was still being answered.
func (r Request) Open() bool { return r.End.IsZero() }

// Stats counts requests since the start or the last Reset. A request is open,
// then ends in exactly one of the other three.
type Stats struct {
	Requests  int `json:"requests"`
	Open      int `json:"open"`
	MaxOpen   int `json:"maxOpen"`   // most requests open at one moment
	Completed int `json:"completed"` // answered to the end of the step, errors by script included
	Aborted   int `json:"aborted"`   // the client left first
	Dropped   int `json:"dropped"`   // cut by the script, or by Close
}

type outcome int

const (
	completed outcome = iota
	aborted
	dropped
)

// journal is the server's memory, shared by its connections.
type journal struct {
	mu       sync.Mutex
	requests []*Request
	attempts map[string]int
	stats    Stats
	changed  chan struct{} // closed and replaced at every change of stats
	seq      int

	log    io.Writer
	logErr error // the first failure to write the log
}

// begin books a request and returns its number, unique for the server's life,
// its record and how often its key was seen.
func (j *journal) begin(c *completion, q cue) (int, *Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	j.attempts[q.key]++
	r := &Request{
		Model:           c.Model,
		ReasoningEffort: c.ReasoningEffort,
		Messages:        len(c.messages),
		Tools:           c.toolNames(),
		User:            c.lastUserText(),
		System:          c.system(),
		Turn:            q.turn,
		Attempt:         j.attempts[q.key],
		Start:           time.Now(),
	}
	j.requests = append(j.requests, r)
	j.stats.Requests++
	j.stats.Open++
	j.stats.MaxOpen = max(j.stats.MaxOpen, j.stats.Open)
	j.tell()

	line := map[string]any{
		"event": "request", "id": j.seq, "model": r.Model, "messages": r.Messages,
		"tools": r.Tools, "turn": r.Turn, "attempt": r.Attempt,
	}
	if r.ReasoningEffort != "" {
		line["reasoning"] = r.ReasoningEffort
	}
	if q.step.LogSystem {
		line["system"] = r.System
	}
	if q.step.LogMessages {
		line["conversation"] = c.RawMessages
	}
	j.write(line)
	return j.seq, r
}

func (j *journal) end(id int, r *Request, how outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.End = time.Now()
	j.stats.Open--
	name := "completed"
	switch how {
	case completed:
		j.stats.Completed++
	case aborted:
		name = "aborted"
		r.Aborted = true
		j.stats.Aborted++
	case dropped:
		name = "dropped"
		j.stats.Dropped++
	}
	j.tell()
	j.write(map[string]any{"event": name, "id": id})
}

func (j *journal) refuse(reason error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(map[string]any{"event": "refused", "reason": reason.Error()})
}

// tell wakes those who await a change; the caller holds mu.
func (j *journal) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// write adds a line to the log; the caller holds mu.
func (j *journal) write(line map[string]any) {
	if j.log == nil || j.logErr != nil {
		return
	}
	line["time"] = time.Now().UTC().Format(time.RFC3339Nano)
	data, err := json.Marshal(line)
	if err == nil {
		_, err = j.log.Write(append(data, '\n'))
	}
	if err != nil {
		j.logErr = fmt.Errorf("write model log: %w", err)
	}
}

func (j *journal) list() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Request, len(j.requests))
	for i, r := range j.requests {
		out[i] = *r
		out[i].Tools = slices.Clone(r.Tools)
	}
	return out
}

// snapshot is the counts and a channel that is closed when they change.
func (j *journal) snapshot() (Stats, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stats, j.changed
}

// reset forgets everything but the requests that are still open.
func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = slices.DeleteFunc(j.requests, func(r *Request) bool { return !r.Open() })
	clear(j.attempts)
	j.stats = Stats{Requests: len(j.requests), Open: j.stats.Open, MaxOpen: j.stats.Open}
	j.tell()
}
