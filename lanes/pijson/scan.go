package pijson

import (
	"bytes"
	"encoding/json"
)

// This file is the hot path. Nearly all lines of a stream are message_update, and
// what is needed of them stands near the front, before the repeated partial message
// of the older generation. So these lines are scanned by hand, in the exact key order
// that Pi prints. On anything else the scan gives up and the line is decoded whole.

const (
	typePrefix   = `{"type":"`
	updatePrefix = `{"type":"message_update",`
	updateKey    = `"assistantMessageEvent":{"type":"`
	usageKey     = `"usage":`
	partialKey   = `,"partial":`
	// maxUsageSkip bounds the search for updateKey behind the usage object.
	maxUsageSkip = 4 << 10
)

var updateKeyBytes = []byte(updateKey)

// scanUpdate reads a message_update line of which b is the beginning or the whole.
// It reports false when b does not hold all that is needed in the usual order.
func scanUpdate(b []byte) (e Event, ok bool) {
	p := b[len(updatePrefix):]
	if !hasPrefix(p, updateKey) {
		if !hasPrefix(p, usageKey) {
			return Event{}, false
		}
		i := indexUpdateKey(p[:min(len(p), maxUsageSkip)])
		if i < 0 {
			return Event{}, false
		}
		p = p[i:]
	}
	p = p[len(updateKey):]
	end := bytes.IndexByte(p[:min(len(p), 32)], '"')
	if end < 0 {
		return Event{}, false
	}
	e.Kind = updateKind(p[:end])
	p, ok = after(p[end:], `","contentIndex":`)
	if !ok || e.Kind == KindUnknown {
		return Event{}, false
	}
	if e.ContentIndex, p, ok = scanIndex(p); !ok {
		return Event{}, false
	}
	switch e.Kind {
	case KindTextDelta, KindThinkingDelta, KindToolCallDelta:
		if p, ok = after(p, `,"delta":`); ok {
			e.Text, p, ok = scanString(p)
		}
	case KindTextEnd, KindThinkingEnd:
		if p, ok = after(p, `,"content":`); ok {
			e.Text, p, ok = scanString(p)
		}
	case KindToolCallStart:
		if q, named := after(p, `,"id":`); named { // newer generation only
			if e.ToolCallID, p, ok = scanString(q); ok {
				if p, ok = after(p, `,"toolName":`); ok {
					e.ToolName, p, ok = scanString(p)
				}
			}
		} else { // a cut before the id must not pass for the older generation
			ok = hasPrefix(p, partialKey) || hasPrefix(p, "}")
		}
	case KindToolCallEnd:
		if p, ok = after(p, `,"toolCall":`); ok {
			p, ok = scanToolCall(p, &e)
		}
	default:
	}
	if !ok || len(p) == 0 || (p[0] != ',' && p[0] != '}') {
		return Event{}, false
	}
	if e.Cumulative = hasPrefix(p, partialKey); !e.Cumulative && len(p) < len(partialKey) && partialKey[:len(p)] == string(p) {
		return Event{}, false // the key is cut
	}
	return e, true
}

// indexUpdateKey finds updateKey behind the usage object. Quotes inside a JSON string
// are escaped, so the key cannot match in one. No key of the usage holds an M, which
// makes that letter the quickest way there.
func indexUpdateKey(p []byte) int {
	i := bytes.IndexByte(p, 'M') - len(`"assistant`)
	if i >= 0 && hasPrefix(p[i:], updateKey) {
		return i
	}
	return bytes.Index(p, updateKeyBytes)
}

func updateKind(name []byte) Kind {
	switch string(name) {
	case "text_delta":
		return KindTextDelta
	case "thinking_delta":
		return KindThinkingDelta
	case "toolcall_delta":
		return KindToolCallDelta
	case "text_start":
		return KindTextStart
	case "text_end":
		return KindTextEnd
	case "thinking_start":
		return KindThinkingStart
	case "thinking_end":
		return KindThinkingEnd
	case "toolcall_start":
		return KindToolCallStart
	case "toolcall_end":
		return KindToolCallEnd
	}
	return KindUnknown
}

// scanToolCall reads the tool call object at the start of p.
func scanToolCall(p []byte, e *Event) ([]byte, bool) {
	var call wireToolCall
	d := json.NewDecoder(bytes.NewReader(p))
	if d.Decode(&call) != nil {
		return nil, false
	}
	call.fill(e)
	return p[d.InputOffset():], true
}

// scanTool reads the head of a tool_execution_* line: ids and, where the result
// begins with a text block, the first bytes of it. p starts after the type's closing
// quote.
func scanTool(p []byte, e *Event) bool {
	p, ok := after(p, `,"toolCallId":`)
	if !ok {
		return false
	}
	if e.ToolCallID, p, ok = scanString(p); !ok {
		return false
	}
	if p, ok = after(p, `,"toolName":`); !ok {
		return false
	}
	if e.ToolName, p, ok = scanString(p); !ok {
		return false
	}
	key := `,"result":`
	if e.Kind == KindToolUpdate {
		if p, ok = after(p, `,"args":`); !ok {
			return false
		}
		var args json.RawMessage
		d := json.NewDecoder(bytes.NewReader(p))
		if d.Decode(&args) != nil {
			return false
		}
		p, key = p[d.InputOffset():], `,"partialResult":`
	}
	if p, ok = after(p, key+`{"content":[{"type":"text","text":`); ok {
		e.Text = scanStringHead(p, ToolTextLimit)
	}
	return true
}

func scanIndex(p []byte) (int, []byte, bool) {
	n, i := 0, 0
	for i < len(p) && i < 9 && p[i] >= '0' && p[i] <= '9' {
		n = n*10 + int(p[i]-'0')
		i++
	}
	return n, p[i:], i > 0
}

func hasPrefix(p []byte, prefix string) bool {
	return len(p) >= len(prefix) && string(p[:len(prefix)]) == prefix
}

func after(p []byte, prefix string) ([]byte, bool) {
	if !hasPrefix(p, prefix) {
		return p, false
	}
	return p[len(prefix):], true
}
