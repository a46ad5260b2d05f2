package pijson

import (
	"slices"
	"strings"
)

// FoldOptions configures a Fold. The zero value is ready for use.
type FoldOptions struct {
	// AllowedTools names the tools the child was started with. A lane in which
	// another tool ran fails; nil allows all. A call that Pi itself refused because
	// there is no such tool is not held against the lane.
	AllowedTools []string
}

// Fold is the state machine of one child: events go in, progress and the verdict
// come out. It is pure, without clock and I/O, and not safe for concurrent use. The
// zero value is not usable, see NewFold.
//
// What it keeps is bounded but for the text of the last answer.
type Fold struct {
	options FoldOptions

	started    bool
	settled    bool
	aborted    bool
	generation generation

	last        *Message // the last finished assistant message
	lastTooLong bool
	answered    bool
	working     bool // something was begun after the last assistant message
	retrying    bool // another attempt was announced and has not ended
	retry       Retry
	lastError   string // the provider's last error, until an attempt succeeds

	model      string
	stopReason string
	turns      int
	usage      Usage
	usageSeen  bool // some message reported a usage other than zero
	zeroTurns  int  // assistant messages that were no errors and reported zero usage
	tooLong    int

	lastText string  // text of the last assistant message that had some
	live     partial // text of the message being streamed

	phase string
	tool  string

	suspects []suspect // running tools that are not allowed
	trespass string    // a tool that is not allowed and did run
}

// generation tells which Pi prints the stream. It matters for one fault only, see
// Fold.cutShort.
type generation uint8

const (
	generationUnknown generation = iota
	generationOld                // prints the whole partial message on each line
	generationNew                // prints a system message, agent_settled, rawStopReason
)

// NewFold returns a Fold of a child that has printed nothing yet.
func NewFold(o FoldOptions) *Fold {
	return &Fold{options: o, phase: "starting"}
}

// Apply takes the next event.
func (f *Fold) Apply(e Event) {
	f.started = true
	if e.TooLong {
		f.tooLong++
	}
	switch e.Kind {
	case KindAgentStart, KindTurnStart:
		f.work(f.afterTool())
	case KindAgentEnd:
		if e.WillRetry {
			f.retrying = true
			f.answered = false
		}
	case KindSettled:
		f.settled, f.aborted = true, e.Aborted
		f.generation = generationNew
		f.phase = "exiting"
	case KindMessageStart:
		switch e.Role {
		case RoleSystem:
			f.generation = generationNew
		case RoleAssistant:
			f.work("waiting")
			f.live.reset()
		}
	case KindMessageEnd:
		f.message(e)
	case KindThinkingStart, KindThinkingDelta, KindThinkingEnd:
		f.stream(e, "thinking")
	case KindTextStart, KindTextDelta, KindTextEnd:
		f.stream(e, "responding")
		f.live.add(e)
	case KindToolCallStart, KindToolCallDelta, KindToolCallEnd:
		f.stream(e, "responding")
	case KindToolStart, KindToolUpdate, KindToolEnd:
		f.toolEvent(e)
	case KindRetryStart, KindRetryEnd:
		f.retryEvent(e)
	case KindCompactionStart:
		f.phase = "compacting"
	case KindCompactionEnd:
		f.compacted(e)
	default:
	}
}

// afterTool is the phase until the model goes on: what it has been given, when
// that is the result of a tool, for the call itself is often too short to be seen.
func (f *Fold) afterTool() string {
	if strings.HasPrefix(f.phase, "result: ") {
		return f.phase
	}
	return "waiting"
}

// work notes that the child goes on: what was answered so far was not the end.
func (f *Fold) work(phase string) {
	f.phase = phase
	f.working = true
	f.answered = false
	f.settled = false
}

func (f *Fold) stream(e Event, phase string) {
	if e.Cumulative && f.generation == generationUnknown {
		f.generation = generationOld
	}
	f.work(phase)
}

func (f *Fold) message(e Event) {
	switch {
	case e.TooLong && (e.Role == RoleAssistant || e.Role == ""):
		f.last, f.lastTooLong = nil, true
		f.answered, f.working = false, false
		f.turns++
	case e.Message == nil:
		if e.Role == RoleSystem {
			f.generation = generationNew
		}
	case e.Role == RoleToolResult:
		f.work(f.afterTool())
		if e.Message.Usage != nil {
			f.usage = f.usage.Plus(*e.Message.Usage)
		}
	default:
		f.assistant(e.Message)
	}
}

func (f *Fold) assistant(m *Message) {
	f.turns++
	f.working, f.lastTooLong = false, false
	f.last = m
	f.stopReason = m.StopReason
	if m.Model != "" {
		f.model = m.Model
	}
	if m.RawStopReason != "" {
		f.generation = generationNew
	}
	if strings.TrimSpace(m.Text) != "" {
		f.lastText = m.Text
	}
	f.live.reset()
	failed := m.StopReason == "error" || m.StopReason == "aborted"
	if m.Usage != nil {
		f.usage = f.usage.Plus(*m.Usage)
		if *m.Usage != (Usage{}) {
			f.usageSeen = true
		} else if !failed {
			f.zeroTurns++
		}
	}
	if failed {
		f.lastError = m.Error
		f.answered = false
		f.phase = "waiting"
		return
	}
	f.lastError = ""
	f.retrying = false
	f.answered = m.stopped() && m.ToolCalls == 0 && strings.TrimSpace(m.Text) != ""
	f.phase = "waiting"
	if f.answered {
		f.phase = "exiting"
	}
}

func (f *Fold) toolEvent(e Event) {
	if e.ToolName == "" {
		e.ToolName = "(unnamed)"
	}
	f.work("tool: " + e.ToolName)
	f.tool = e.ToolName
	if e.Kind == KindToolEnd {
		f.phase, f.tool = "result: "+e.ToolName, ""
	}
	if f.options.AllowedTools == nil || slices.Contains(f.options.AllowedTools, e.ToolName) {
		return
	}
	switch e.Kind {
	case KindToolStart:
		if len(f.suspects) < maxSuspects {
			f.suspects = append(f.suspects, suspect{id: e.ToolCallID, tool: e.ToolName})
		}
	case KindToolEnd:
		f.suspects = slices.DeleteFunc(f.suspects, func(s suspect) bool { return s.id == e.ToolCallID })
		if !e.IsError || e.Text != "Tool "+e.ToolName+" not found" {
			f.trespass = e.ToolName
		}
	default:
		f.trespass = e.ToolName
	}
}

// suspect is a call of a tool that is not allowed, of which Pi has not told yet
// whether it has such a tool.
type suspect struct{ id, tool string }

// maxSuspects bounds what a child that only ever starts foreign tools can make us
// remember.
const maxSuspects = 64

func (f *Fold) retryEvent(e Event) {
	var r Retry
	if e.Retry != nil {
		r = *e.Retry
	}
	f.retry = r
	if e.Kind == KindRetryStart {
		f.work("retrying")
		f.retrying = true
		if r.Error != "" {
			f.lastError = r.Error
		}
		return
	}
	f.retrying = false
	if r.Success {
		f.lastError = ""
		return
	}
	f.answered = false
	if r.Error != "" {
		f.lastError = r.Error
	}
	if f.lastError == "" {
		f.lastError = "all attempts failed"
	}
}

func (f *Fold) compacted(e Event) {
	f.phase = "waiting"
	if f.answered {
		f.phase = "exiting"
	}
	if e.Usage != nil {
		f.usage = f.usage.Plus(*e.Usage)
	}
	if e.WillRetry {
		f.retrying = true
		f.answered = false
	}
}

// Answered tells that the final answer is complete, so that the drain window may
// start. It turns false again when the stream goes on working.
func (f *Fold) Answered() bool { return f.answered }

// Settled tells that the child has said its last word (agent_settled, newer Pi only).
func (f *Fold) Settled() bool { return f.settled }

// Trespass names a tool that runs, or ran, although it was not allowed; empty if
// there is none. While such a call runs it is only suspected: Pi answers a call of a
// tool it does not have with an error at once, which clears it. So give it a moment
// before the child is stopped for it.
func (f *Fold) Trespass() string {
	if f.trespass == "" && len(f.suspects) > 0 {
		return f.suspects[0].tool
	}
	return f.trespass
}

// Progress is what can be told about a child that is still at work.
type Progress struct {
	// Phase is one of starting, waiting, thinking, responding, "tool: X",
	// "result: X", retrying, compacting, exiting (spec: subagents 4.3).
	Phase string
	// Tool is the tool that runs.
	Tool string
	// Turns counts finished assistant messages, failed ones included.
	Turns int
	// Usage is the sum so far, failed attempts included.
	Usage Usage
	Model string
	// LastError is the provider's last error that no success has followed.
	LastError string
	// RetryAttempt and RetryMax count Pi's own retries while Phase is retrying.
	RetryAttempt int
	RetryMax     int
}

// Progress returns the state so far.
func (f *Fold) Progress() Progress {
	p := Progress{
		Phase: f.phase, Tool: f.tool, Turns: f.turns, Usage: f.usage, Model: f.model, LastError: f.lastError,
	}
	if f.retrying {
		p.RetryAttempt, p.RetryMax = f.retry.Attempt, f.retry.MaxAttempts
	}
	return p
}

// maxPartial bounds the text that is kept of a message while it is streamed.
const maxPartial = 64 << 10

// partial collects the text of the message being streamed.
type partial struct {
	text  []byte
	index int
	block int // where the current block starts in text
}

func (p *partial) reset() { *p = partial{text: p.text[:0]} }

func (p *partial) add(e Event) {
	if e.ContentIndex != p.index || e.Kind == KindTextStart {
		if len(p.text) > 0 && len(p.text) < maxPartial && e.ContentIndex != p.index {
			p.text = append(p.text, '\n')
		}
		p.index, p.block = e.ContentIndex, len(p.text)
	}
	if e.Kind == KindTextStart || (e.Kind == KindTextEnd && len(p.text) > p.block) {
		return // the block is there already
	}
	p.text = append(p.text, cut(e.Text, maxPartial-len(p.text))...)
}
