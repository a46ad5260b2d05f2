package compaction_test

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"pilothouse/supervisor/compaction"
)

// context is what a model sees, rebuilt from the entries the way Pi documents it:
// the last compaction's summary, what it kept, and what came after it.
type context struct {
	summary  string
	messages []object
}

// replay appends the compaction to the branch and builds the context.
func replay(entries []object, c compaction.Compaction) context {
	return seen(append(entries[:len(entries):len(entries)], compacted("the compaction", c.Summary, c.FirstKeptEntryID)))
}

func seen(entries []object) (c context) {
	last := -1
	for i, e := range entries {
		if e["type"] == "compaction" {
			last = i
		}
	}
	var kept []object
	if last >= 0 {
		c.summary, _ = entries[last]["summary"].(string)
		found := false
		for _, e := range entries[:last] {
			found = found || e["id"] == entries[last]["firstKeptEntryId"] && e["id"] != ""
			if found {
				kept = append(kept, e)
			}
		}
	}
	kept = append(kept, entries[last+1:]...)
	hidden := map[any]bool{}
	for _, e := range kept {
		if e["type"] == "context_edit" {
			hidden[e["targetId"]] = e["replacement"] == nil
		}
	}
	for _, e := range kept {
		m, _ := e["message"].(object)
		switch e["type"] {
		case "custom_message", "branch_summary":
			m = object{"role": "user", "content": e["content"]}
		}
		if m == nil || hidden[e["id"]] || m["excludeFromContext"] == true {
			continue
		}
		switch m["role"] {
		case "user", "custom", "bashExecution", "assistant", "toolResult":
			c.messages = append(c.messages, m)
		}
	}
	return c
}

// problem is why a model service would refuse the context; "" if it would not.
func (c context) problem() string {
	open := map[any]bool{}
	for i, m := range c.messages {
		if m["role"] == "toolResult" {
			if !open[m["toolCallId"]] {
				return fmt.Sprintf("message %d: result %v has no open call before it", i, m["toolCallId"])
			}
			delete(open, m["toolCallId"])
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("message %d: calls %v have no result before it", i, open)
		}
		if m["role"] != "assistant" || m["stopReason"] == "aborted" || m["stopReason"] == "error" {
			continue
		}
		parts, _ := m["content"].([]object)
		for _, part := range parts {
			if part["type"] != "toolCall" {
				continue
			}
			if open[part["id"]] {
				return fmt.Sprintf("message %d: call %v is there twice", i, part["id"])
			}
			open[part["id"]] = true
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls %v have no result at the end", open)
	}
	return ""
}

// chars is the text of the context's messages, roughly as much as they take of it:
// never more than what is really there.
func chars(messages []object) (n int) {
	for _, m := range messages {
		switch content := m["content"].(type) {
		case string:
			n += utf8.RuneCountInString(content)
		case []object:
			for _, part := range content {
				if text, ok := part["text"].(string); ok {
					n += utf8.RuneCountInString(text)
				}
				if args, ok := part["arguments"]; ok {
					data, _ := json.Marshal(args)
					name, _ := part["name"].(string)
					n += utf8.RuneCount(data) + utf8.RuneCountInString(name)
				}
			}
		}
	}
	return n
}
