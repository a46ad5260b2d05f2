package scriptedmodel

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// completion is the part of a chat-completions request that matters here.
type completion struct {
	Model           string          `json:"model"`
	Stream          bool            `json:"stream"`
	ReasoningEffort string          `json:"reasoning_effort"`
	RawMessages     json.RawMessage `json:"messages"`
	Tools           []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`

	messages []message
}

type message struct {
	Role       string  `json:"role"`
	Content    content `json:"content"`
	ToolCallID string  `json:"tool_call_id"`
	ToolCalls  []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

// content is the text of a message, whether it was sent as a string, as a list
// of parts or as null.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(c))
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p.Text)
		}
		*c = content(b.String())
	}
	return nil
}

func parseCompletion(body []byte) (*completion, error) {
	c := new(completion)
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("request is not a JSON object: %w", err)
	}
	if !c.Stream {
		return nil, fmt.Errorf("only streaming requests are answered: set stream to true")
	}
	if err := json.Unmarshal(c.RawMessages, &c.messages); err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	if len(c.messages) == 0 {
		return nil, fmt.Errorf("messages must not be empty")
	}
	return c, checkPairing(c.messages)
}

// checkPairing holds a conversation to the rule of the real services: the calls
// of an assistant message are answered, each exactly once, by the tool messages
// that follow it directly.
func checkPairing(messages []message) error {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return fmt.Errorf("messages[%d]: tool result %q answers no open call of the assistant message before it", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		for id := range open {
			return fmt.Errorf("messages[%d]: tool call %q must be answered by a tool message before a %s message", i, id, m.Role)
		}
		for _, call := range m.ToolCalls {
			if call.ID == "" || open[call.ID] {
				return fmt.Errorf("messages[%d]: tool call id %q is empty or used twice", i, call.ID)
			}
			open[call.ID] = true
		}
	}
	for id := range open {
		return fmt.Errorf("tool call %q has no tool message that answers it", id)
	}
	return nil
}

func (c *completion) toolNames() []string {
	var names []string
	for _, t := range c.Tools {
		names = append(names, t.Function.Name)
	}
	return names
}

func (c *completion) system() string {
	if r := c.messages[0].Role; r == "system" || r == "developer" {
		return string(c.messages[0].Content)
	}
	return ""
}

// lastUser is the index of the last user message, -1 without one.
func (c *completion) lastUser() int {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role == "user" {
			return i
		}
	}
	return -1
}

func (c *completion) lastUserText() string {
	if i := c.lastUser(); i >= 0 {
		return string(c.messages[i].Content)
	}
	return ""
}

// turnsAfter counts the assistant messages after the one at index i.
func (c *completion) turnsAfter(i int) int {
	n := 0
	for _, m := range c.messages[i+1:] {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

func (c *completion) promptTokens() int { return tokens(utf8.RuneCount(c.RawMessages)) }

// tokens is the usual rough guess of four characters each.
func tokens(chars int) int { return (chars + 3) / 4 }
