// Package pijson reads the event stream that `pi --mode json` prints on its
// standard output and decides what became of the child.
//
// A [Reader] turns bytes into [Event] values with bounded memory. A [Fold] takes
// the events one by one and keeps what matters: progress while the child works,
// and one [Verdict] when it has ended. The event stream decides, not the exit
// status: Pi leaves with status 0 after most provider errors (Pi fact §5).
//
// Two generations of Pi write two dialects. Newer ones (1.x) print deltas only and
// end with agent_settled; older ones (0.7x) repeat the whole partial message on
// every line and end with agent_end and the end of the stream (Pi fact §3, §4).
// Both are read by the same code.
package pijson

import "time"

// Kind names what an event is about. The zero value is KindUnknown: a well-formed
// event of a type this package has no use for.
type Kind uint8

// The kinds of events, in the order a lane usually meets them.
const (
	KindUnknown Kind = iota
	KindSession
	KindAgentStart
	KindAgentEnd
	KindSettled
	KindTurnStart
	KindTurnEnd
	KindMessageStart
	KindMessageEnd
	KindTextStart
	KindTextDelta
	KindTextEnd
	KindThinkingStart
	KindThinkingDelta
	KindThinkingEnd
	KindToolCallStart
	KindToolCallDelta
	KindToolCallEnd
	KindToolStart
	KindToolUpdate
	KindToolEnd
	KindRetryStart
	KindRetryEnd
	KindCompactionStart
	KindCompactionEnd
	KindResponse
	KindDialog
	kindCount
)

var kindNames = [kindCount]string{
	KindUnknown:         "unknown",
	KindSession:         "session",
	KindAgentStart:      "agent_start",
	KindAgentEnd:        "agent_end",
	KindSettled:         "agent_settled",
	KindTurnStart:       "turn_start",
	KindTurnEnd:         "turn_end",
	KindMessageStart:    "message_start",
	KindMessageEnd:      "message_end",
	KindTextStart:       "text_start",
	KindTextDelta:       "text_delta",
	KindTextEnd:         "text_end",
	KindThinkingStart:   "thinking_start",
	KindThinkingDelta:   "thinking_delta",
	KindThinkingEnd:     "thinking_end",
	KindToolCallStart:   "toolcall_start",
	KindToolCallDelta:   "toolcall_delta",
	KindToolCallEnd:     "toolcall_end",
	KindToolStart:       "tool_execution_start",
	KindToolUpdate:      "tool_execution_update",
	KindToolEnd:         "tool_execution_end",
	KindRetryStart:      "auto_retry_start",
	KindRetryEnd:        "auto_retry_end",
	KindCompactionStart: "compaction_start",
	KindCompactionEnd:   "compaction_end",
	KindResponse:        "response",
	KindDialog:          "extension_ui_request",
}

// String returns Pi's own name of the kind.
func (k Kind) String() string {
	if k < kindCount {
		return kindNames[k]
	}
	return kindNames[KindUnknown]
}

// Message roles that matter here.
const (
	RoleAssistant  = "assistant"
	RoleToolResult = "toolResult"
	RoleSystem     = "system"
)

// Event is one line of the stream, reduced to what a lane needs. Fields that do not
// belong to the kind are zero.
type Event struct {
	Kind Kind

	// Type is Pi's name of an event of KindUnknown, cut to 64 bytes.
	Type string
	// Role is the role of the message of KindMessageStart and KindMessageEnd.
	Role string
	// SessionID is Pi's session id (KindSession).
	SessionID string

	// ContentIndex is the position of the content block that a text, thinking or
	// tool call event belongs to.
	ContentIndex int
	// Text is the new piece for a delta, the whole block for KindTextEnd and
	// KindThinkingEnd, the first text of a tool's result (at most ToolTextLimit
	// bytes) for KindToolUpdate and KindToolEnd, and the error of a failed
	// compaction for KindCompactionEnd.
	Text string

	ToolCallID string
	ToolName   string
	// ToolArgs is the raw JSON of a tool call's arguments, cut to ToolTextLimit
	// bytes (KindToolStart, KindToolCallEnd).
	ToolArgs string

	// IsError tells that a tool or a compaction failed.
	IsError bool
	// WillRetry announces another attempt after this agent_end or compaction_end.
	WillRetry bool
	// Aborted is set when the run or the compaction was aborted.
	Aborted bool
	// Cumulative marks an update line that carried the whole partial message, which
	// only the older generation of Pi prints.
	Cumulative bool
	// TooLong marks an event whose line exceeded ReaderOptions.MaxLine: the kind and
	// the role are known, the rest is lost.
	TooLong bool

	// Message is set for KindMessageEnd of an assistant or a tool result.
	Message *Message
	// Usage is what a compaction cost (KindCompactionEnd).
	Usage *Usage
	// Retry is set for KindRetryStart and KindRetryEnd.
	Retry *Retry
	// Response is set for KindResponse, Dialog for KindDialog. Only a Pi in RPC mode
	// prints these (Pi fact §10).
	Response *Response
	Dialog   *Dialog
}

// ToolTextLimit bounds Event.Text of tool results and Event.ToolArgs, in bytes. They
// serve a live view; results themselves go to the model, not to us.
const ToolTextLimit = 4 << 10

// Message is a finished message of an assistant or a tool result (Pi fact §4). Of a
// tool result only the usage is told.
type Message struct {
	// Text holds the text blocks joined by a newline, not trimmed.
	Text string
	// ToolCalls counts the tool call blocks of an assistant message.
	ToolCalls int

	Provider      string
	Model         string
	StopReason    string // stop, length, toolUse, error, aborted
	RawStopReason string // the provider's own word; newer Pi only
	Error         string // the provider's error, as Pi words it

	// Usage is nil when the message carries none.
	Usage *Usage
}

// stopped tells that the model ended the message of its own accord. Pi always gives a
// reason; a stand-in for Pi may leave it out, and then the message did end.
func (m *Message) stopped() bool { return m.StopReason == "stop" || m.StopReason == "" }

// Retry describes one step of Pi's own retrying of provider calls.
type Retry struct {
	Attempt     int
	MaxAttempts int
	Delay       time.Duration // wait before the next attempt (KindRetryStart)
	Success     bool          // KindRetryEnd
	Error       string        // what failed; the final error for KindRetryEnd
}
