package pijson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// The wire types name the keys of Pi's events that are needed (Pi fact §4). A key of
// an unexpected JSON type reads as absent: encoding/json reports it after having
// decoded the rest, and the report is ignored.

type wireEvent struct {
	Type          string          `json:"type"`
	ID            string          `json:"id"`
	Message       *wireMessage    `json:"message"`
	Update        *wireUpdate     `json:"assistantMessageEvent"`
	ToolCallID    string          `json:"toolCallId"`
	ToolName      string          `json:"toolName"`
	Args          json.RawMessage `json:"args"`
	Result        *wireResult     `json:"result"`
	PartialResult *wireResult     `json:"partialResult"`
	IsError       bool            `json:"isError"`
	Attempt       number          `json:"attempt"`
	MaxAttempts   number          `json:"maxAttempts"`
	DelayMs       number          `json:"delayMs"`
	ErrorMessage  string          `json:"errorMessage"`
	FinalError    string          `json:"finalError"`
	Success       bool            `json:"success"`
	WillRetry     bool            `json:"willRetry"`
	Aborted       bool            `json:"aborted"`
}

type wireMessage struct {
	Role          string      `json:"role"`
	Content       wireContent `json:"content"`
	Provider      string      `json:"provider"`
	Model         string      `json:"model"`
	StopReason    string      `json:"stopReason"`
	RawStopReason string      `json:"rawStopReason"`
	ErrorMessage  string      `json:"errorMessage"`
	Usage         *Usage      `json:"usage"`
}

type wireUpdate struct {
	Type         string          `json:"type"`
	ContentIndex number          `json:"contentIndex"`
	Delta        string          `json:"delta"`
	Content      string          `json:"content"`
	ID           string          `json:"id"`
	ToolName     string          `json:"toolName"`
	ToolCall     *wireToolCall   `json:"toolCall"`
	Partial      json.RawMessage `json:"partial"`
}

type wireToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (c *wireToolCall) fill(e *Event) {
	e.ToolCallID, e.ToolName = c.ID, c.Name
	e.ToolArgs = cut(string(c.Arguments), ToolTextLimit)
}

type wireResult struct {
	Content wireContent `json:"content"`
	Usage   *Usage      `json:"usage"`
}

// wireContent is the content of an assistant message or a tool result. (That of
// other roles may be a plain string, which reads as absent.)
type wireContent []wireBlock

type wireBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func (c wireContent) texts() []string {
	var texts []string
	for _, b := range c {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return texts
}

func (c wireContent) toolCalls() int {
	n := 0
	for _, b := range c {
		if b.Type == "toolCall" {
			n++
		}
	}
	return n
}

func isTypeError(err error) bool {
	var t *json.UnmarshalTypeError
	return errors.As(err, &t)
}

// decodeWhole decodes a complete line with encoding/json. It reports false when the
// line is no JSON object with a type.
func decodeWhole(line []byte) (Event, bool) {
	var w wireEvent
	err := json.Unmarshal(line, &w)
	if err != nil && !isTypeError(err) {
		fixed, changed := nullNumbers(line)
		if !changed {
			return Event{}, false
		}
		w = wireEvent{}
		if err = json.Unmarshal(fixed, &w); err != nil && !isTypeError(err) {
			return Event{}, false
		}
	}
	if w.Type == "" {
		return Event{}, false
	}
	e := w.event()
	switch e.Kind {
	case KindResponse:
		e.Response = decodeResponse(line)
	case KindDialog:
		e.Dialog = decodeDialog(line)
	default:
	}
	return e, true
}

func (w *wireEvent) event() Event {
	e := Event{Kind: lineKind([]byte(w.Type))}
	switch e.Kind {
	case KindSession:
		e.SessionID = w.ID
	case KindAgentEnd:
		e.WillRetry = w.WillRetry
	case KindSettled:
		e.Aborted = w.Aborted
	case KindMessageStart:
		if w.Message != nil {
			e.Role = w.Message.Role
		}
	case KindMessageEnd:
		if w.Message != nil {
			w.Message.fill(&e)
		}
	case KindToolStart:
		e.ToolCallID, e.ToolName = w.ToolCallID, w.ToolName
		e.ToolArgs = cut(string(w.Args), ToolTextLimit)
	case KindToolUpdate, KindToolEnd:
		e.ToolCallID, e.ToolName, e.IsError = w.ToolCallID, w.ToolName, w.IsError
		for _, r := range []*wireResult{w.PartialResult, w.Result} {
			if r != nil && len(r.Content) > 0 {
				e.Text = cut(r.Content[0].Text, ToolTextLimit)
			}
		}
	case KindRetryStart, KindRetryEnd:
		e.Retry = &Retry{
			Attempt:     w.Attempt.int(),
			MaxAttempts: w.MaxAttempts.int(),
			Delay:       time.Duration(w.DelayMs.int()) * time.Millisecond,
			Success:     w.Success,
			Error:       w.ErrorMessage,
		}
		if w.FinalError != "" {
			e.Retry.Error = w.FinalError
		}
	case KindCompactionEnd:
		e.WillRetry, e.Aborted, e.Text = w.WillRetry, w.Aborted, w.ErrorMessage
		e.IsError = w.ErrorMessage != ""
		if w.Result != nil {
			e.Usage = w.Result.Usage
		}
	case KindUnknown:
		if w.Type == "message_update" && w.Update != nil {
			return w.Update.event()
		}
		e.Type = cut(w.Type, maxTypeName)
	default:
	}
	return e
}

func (m *wireMessage) fill(e *Event) {
	e.Role = m.Role
	switch m.Role {
	case RoleAssistant:
		e.Message = m.said(strings.Join(m.Content.texts(), "\n"), m.Content.toolCalls())
	case RoleToolResult:
		e.Message = &Message{Usage: m.Usage}
	}
}

// said is the message of an assistant.
func (m *wireMessage) said(text string, toolCalls int) *Message {
	return &Message{
		Text:          text,
		ToolCalls:     toolCalls,
		Provider:      m.Provider,
		Model:         m.Model,
		StopReason:    m.StopReason,
		RawStopReason: m.RawStopReason,
		Error:         m.ErrorMessage,
		Usage:         m.Usage,
	}
}

func (u *wireUpdate) event() Event {
	e := Event{
		Kind:         updateKind([]byte(u.Type)),
		ContentIndex: u.ContentIndex.int(),
		Cumulative:   len(u.Partial) > 0,
	}
	switch e.Kind {
	case KindTextDelta, KindThinkingDelta, KindToolCallDelta:
		e.Text = u.Delta
	case KindTextEnd, KindThinkingEnd:
		e.Text = u.Content
	case KindToolCallStart:
		e.ToolCallID, e.ToolName = u.ID, u.ToolName
	case KindToolCallEnd:
		if u.ToolCall != nil {
			u.ToolCall.fill(&e)
		}
	case KindUnknown:
		e.Type = "message_update"
	default:
	}
	return e
}

// lineKind maps the type of a line. message_update has no kind of its own: its inner
// event has.
func lineKind(name []byte) Kind {
	switch string(name) {
	case "message_start":
		return KindMessageStart
	case "message_end":
		return KindMessageEnd
	case "turn_start":
		return KindTurnStart
	case "turn_end":
		return KindTurnEnd
	case "tool_execution_start":
		return KindToolStart
	case "tool_execution_update":
		return KindToolUpdate
	case "tool_execution_end":
		return KindToolEnd
	case "session":
		return KindSession
	case "agent_start":
		return KindAgentStart
	case "agent_end":
		return KindAgentEnd
	case "agent_settled":
		return KindSettled
	case "auto_retry_start":
		return KindRetryStart
	case "response":
		return KindResponse
	case "extension_ui_request":
		return KindDialog
	case "auto_retry_end":
		return KindRetryEnd
	case "compaction_start":
		return KindCompactionStart
	case "compaction_end":
		return KindCompactionEnd
	}
	return KindUnknown
}

// maxTypeName bounds Event.Type; the longest name Pi uses is half of it.
const maxTypeName = 64

// nullNumbers replaces the bare words NaN, Infinity and -Infinity, which some JSON
// writers print for numbers, by null. It reports whether it found any.
func nullNumbers(line []byte) ([]byte, bool) {
	if !bytes.Contains(line, []byte("NaN")) && !bytes.Contains(line, []byte("Infinity")) {
		return line, false
	}
	out := make([]byte, 0, len(line)+16)
	inString, changed := false, false
scan:
	for i := 0; i < len(line); i++ {
		c := line[i]
		if inString {
			out = append(out, c)
			if c == '\\' && i+1 < len(line) {
				i++
				out = append(out, line[i])
			}
			inString = c != '"'
			continue
		}
		for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
			if hasPrefix(line[i:], word) {
				out, changed = append(out, "null"...), true
				i += len(word) - 1
				continue scan
			}
		}
		inString = c == '"'
		out = append(out, c)
	}
	return out, changed
}

// cut shortens s to at most n bytes without splitting a character. What it returns
// does not hold on to the memory of a longer s.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return strings.Clone(s[:n])
}
