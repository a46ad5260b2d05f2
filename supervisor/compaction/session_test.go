package compaction_test

import (
	"encoding/json"
	"pilothouse/supervisor/compaction"
)

// object is a JSON object of a session.
type object = map[string]any

func entry(id, kind string, more object) object {
	e := object{"id": id, "type": kind, "parentId": nil, "timestamp": "2026-11-30T10:00:00.000Z"}
	for key, v := range more {
		e[key] = v
	}
	return e
}

func message(id, role string, content any, more object) object {
	m := object{"role": role, "content": content}
	for key, v := range more {
		m[key] = v
	}
	return entry(id, "message", object{"message": m})
}

func textPart(s string) object { return object{"type": "text", "text": s} }

func user(id, text string) object { return message(id, "user", []object{textPart(text)}, nil) }
func assistant(id, text string) object {
	return message(id, "assistant", []object{textPart(text)}, nil)
}

// call is a tool call inside an assistant message; its id is its name with a number.
func call(id, name string, args any) object {
	return object{"type": "toolCall", "id": id, "name": name, "arguments": args}
}

func calling(id string, calls ...object) object { return message(id, "assistant", calls, nil) }

func result(id, callID, text string) object {
	return message(id, "toolResult", []object{textPart(text)}, object{"toolCallId": callID, "toolName": "tool"})
}

func compacted(id, summary, firstKept string) object {
	return entry(id, "compaction", object{"summary": summary, "firstKeptEntryId": firstKept, "tokensBefore": 1})
}

// tester is what testing and rapid have in common.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// request is a compaction request in the making.
type request struct {
	entries      []object
	preparation  object
	instructions string
	reason       string
	willRetry    bool
	settings     object
	phase        object
}

func (r request) marshal(t tester) []byte {
	t.Helper()
	if r.preparation == nil {
		r.preparation = object{"tokensBefore": 10_000}
	}
	if r.entries == nil {
		r.entries = []object{}
	}
	doc := object{"preparation": r.preparation, "branchEntries": r.entries, "willRetry": r.willRetry, "phase": r.phase}
	if r.instructions != "" {
		doc["customInstructions"] = r.instructions
	}
	if r.reason != "" {
		doc["reason"] = r.reason
	}
	if r.settings != nil {
		doc["settings"] = r.settings
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (r request) compact(t tester) compaction.Result {
	t.Helper()
	parsed, err := compaction.ParseRequest(r.marshal(t))
	if err != nil {
		t.Fatal(err)
	}
	return compaction.Compact(parsed)
}

// compaction is the result of a request that has to lead to one.
func (r request) compaction(t tester) compaction.Compaction {
	t.Helper()
	got := r.compact(t)
	if got.Action != compaction.Compacted || got.Compaction == nil {
		t.Fatalf("got %s (%s), want a compaction", got.Action, got.Reason)
	}
	return *got.Compaction
}
