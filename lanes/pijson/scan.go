package pijson

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
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
	// maxUsageSkip bounds the search for updateKey behind the usage object.
	maxUsageSkip = 4 << 10
)

var updateKeyBytes = []byte(updateKey)

// scanUpdate reads a message_update line of which b is the beginning or the whole.
// It reports false when b does not hold all that is needed in the usual order.
func scanUpdate(b []byte) (Event, bool) {
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
	e := Event{Kind: updateKind(p[:end])}
	p, ok := after(p[end:], `","contentIndex":`)
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
			ok = hasPrefix(p, `,"partial":`) || hasPrefix(p, "}")
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
	e.Cumulative = hasPrefix(p, `,"partial":`)
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

const answerPrefix = `{"type":"message_end","message":{"role":"assistant","content":[`

// scanAnswer reads the message_end of an assistant whose content is nothing but text,
// which is the longest line that is needed whole. Only what follows the content is
// left to encoding/json. It reports false for any other line.
func scanAnswer(line []byte) (Event, bool) {
	p, ok := after(line, answerPrefix)
	if !ok {
		return Event{}, false
	}
	var content wireContent
	for !hasPrefix(p, "]") {
		if len(content) > 0 {
			if p, ok = after(p, ","); !ok {
				return Event{}, false
			}
		}
		block := wireBlock{Type: "text"}
		if p, ok = after(p, `{"type":"text","text":`); !ok {
			return Event{}, false
		}
		if block.Text, p, ok = scanString(p); !ok {
			return Event{}, false
		}
		if p, ok = after(p, "}"); !ok {
			return Event{}, false
		}
		content = append(content, block)
	}
	if !hasPrefix(p, `],"`) {
		return Event{}, false
	}
	rest := append([]byte("{"), p[len("],"):len(p)-1]...)
	var m wireMessage
	if err := json.Unmarshal(rest, &m); err != nil || m.Role != "" || m.Content != nil {
		return Event{}, false
	}
	m.Role, m.Content = RoleAssistant, content
	e := Event{Kind: KindMessageEnd}
	m.fill(&e)
	return e, true
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

// scanString reads the JSON string at the start of p and returns what follows it.
func scanString(p []byte) (string, []byte, bool) {
	if len(p) == 0 || p[0] != '"' {
		return "", nil, false
	}
	end := bytes.IndexByte(p[1:], '"')
	if end < 0 {
		return "", nil, false
	}
	s := p[1 : 1+end]
	if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s), p[2+end:], true
	}
	out, n, ok := unquote(p[1:], len(p))
	if !ok {
		return "", nil, false
	}
	return out, p[1+n:], true
}

// scanStringHead reads at most limit decoded bytes of the JSON string at the start
// of p, which may be cut anywhere.
func scanStringHead(p []byte, limit int) string {
	if len(p) == 0 || p[0] != '"' {
		return ""
	}
	out, _, _ := unquote(p[1:], limit)
	return out
}

// unquote decodes a JSON string up to its closing quote, or until limit bytes are
// written. It returns the text, the number of bytes read including the quote, and
// whether the quote was reached. A lone surrogate and invalid UTF-8 become U+FFFD,
// as in encoding/json.
func unquote(p []byte, limit int) (string, int, bool) {
	var short [256]byte // most pieces are short, so that only the result is allocated
	out := short[:0]
	for i := 0; i < len(p) && len(out) < limit; {
		c := p[i]
		switch {
		case c == '"':
			return string(out), i + 1, true
		case c == '\\':
			r, n := unescape(p[i:])
			if n == 0 {
				return string(out), i, false
			}
			out = utf8.AppendRune(out, r)
			i += n
		case c < utf8.RuneSelf:
			from := i
			for i < len(p) && i-from < limit-len(out) && p[i] != '"' && p[i] != '\\' && p[i] < utf8.RuneSelf {
				i++
			}
			out = append(out, p[from:i]...)
		default:
			if !utf8.FullRune(p[i:]) {
				return string(out), i, false
			}
			r, n := utf8.DecodeRune(p[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	return string(out), len(p), false
}

// unescape decodes the escape sequence at the start of p and returns its length, 0
// if there is none.
func unescape(p []byte) (rune, int) {
	if len(p) < 2 {
		return 0, 0
	}
	switch p[1] {
	case '"', '\\', '/':
		return rune(p[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hex4(p[2:])
		if !ok {
			return 0, 0
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(p) >= 12 && p[6] == '\\' && p[7] == 'u' {
			if low, ok := hex4(p[8:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}
		return utf8.RuneError, 6
	}
	return 0, 0
}

func hex4(p []byte) (rune, bool) {
	if len(p) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
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
