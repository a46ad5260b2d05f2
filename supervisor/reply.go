package supervisor

import "encoding/json"

// Reply is what a Pi session has to do after a hook, a command or a tool. Every field
// may be left out. Actions are done first, in order, then the rest.
type Reply struct {
	// Block refuses what the hook tool_call or user_bash asked about.
	Block *Block `json:"block,omitempty"`
	// SystemPrompt is appended to the system prompt of the turn that is about to start.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// Messages go into the context of the turn that is about to start.
	Messages []Message `json:"messages,omitempty"`
	Actions  []Action  `json:"actions,omitempty"`
	// Compaction answers the hook session_before_compact.
	Compaction *CompactionReply `json:"compaction,omitempty"`
	// Dialog is to be shown and answered; the conversation goes on with the answer.
	Dialog *Dialog `json:"dialog,omitempty"`
	// Result ends the conversation of a tool.
	Result *ToolResult `json:"result,omitempty"`
}

// Block refuses a tool call or a command of the user.
type Block struct {
	// Reason names what is refused, and the ways out.
	Reason string `json:"reason"`
}

// Message is a message for the model that no person has typed.
type Message struct {
	CustomType string          `json:"customType"`
	Content    string          `json:"content"`
	Display    bool            `json:"display"` // whether the user sees it
	Details    json.RawMessage `json:"details,omitempty"`
}

// ActionKind says which fields of an [Action] count.
type ActionKind string

// The kinds of actions.
const (
	ActionNotify  ActionKind = "notify"  // Level, Text: tell the user
	ActionStatus  ActionKind = "status"  // Key, Text: a part of the status line; "" clears it
	ActionSend    ActionKind = "send"    // Message, TriggerTurn, DeliverAs: for the model
	ActionUser    ActionKind = "user"    // Text, DeliverAs: as if the user had typed it
	ActionEntry   ActionKind = "entry"   // CustomType, Data: kept in the session, not sent to the model
	ActionCompact ActionKind = "compact" // Instructions, Then: compact, and report as hook session_compact or session_compact_failed
)

// Level of a notice.
const (
	LevelInfo    = "info"
	LevelWarning = "warning"
	LevelError   = "error"
)

// DeliverSteer hands a message to an agent that is at work, before its next turn
// (Pi extension API, sending messages).
const DeliverSteer = "steer"

// Action is one thing that a session has to do.
type Action struct {
	Kind         ActionKind      `json:"kind"`
	Level        string          `json:"level,omitempty"`
	Key          string          `json:"key,omitempty"`
	Text         string          `json:"text,omitempty"`
	Message      *Message        `json:"message,omitempty"`
	TriggerTurn  bool            `json:"triggerTurn,omitempty"`
	DeliverAs    string          `json:"deliverAs,omitempty"`
	CustomType   string          `json:"customType,omitempty"`
	Data         json.RawMessage `json:"data,omitempty"`
	Instructions string          `json:"instructions,omitempty"`
	Then         string          `json:"then,omitempty"` // comes back with the report of the compaction
}

// CompactionReply says what becomes of a compaction: "compaction" with the entry to
// keep, "cancel", or "fallback" to Pi's own.
type CompactionReply struct {
	Action     string          `json:"action"`
	Reason     string          `json:"reason,omitempty"`
	Compaction json.RawMessage `json:"compaction,omitempty"`
}

// ToolResult is what a tool tells the model.
type ToolResult struct {
	Text      string          `json:"text"`
	Details   json.RawMessage `json:"details,omitempty"`
	IsError   bool            `json:"isError,omitempty"`
	Terminate bool            `json:"terminate,omitempty"` // ends the turn after the result
}

// notice tells the user something.
func notice(level, text string) Action {
	return Action{Kind: ActionNotify, Level: level, Text: text}
}

// merge adds what another contributor to the same hook wants: the first block and the
// first compaction stand, texts and lists are appended.
func (r *Reply) merge(other Reply) {
	if r.Block == nil {
		r.Block = other.Block
	}
	if r.Compaction == nil {
		r.Compaction = other.Compaction
	}
	if r.SystemPrompt != "" && other.SystemPrompt != "" {
		r.SystemPrompt += "\n\n"
	}
	r.SystemPrompt += other.SystemPrompt
	r.Messages = append(r.Messages, other.Messages...)
	r.Actions = append(r.Actions, other.Actions...)
}
