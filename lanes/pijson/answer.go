package pijson

import (
	"encoding/json"
	"strings"
)

const answerPrefix = `{"type":"message_end","message":{"role":"assistant","content":[`

// scanAnswer reads the message_end of an assistant, which is the longest line that is
// needed whole, in the exact key order that Pi prints. Only what follows the content
// is left to encoding/json. It reports false for any other line, which is unchanged
// then. Of an owned line the text takes the memory, see decodeLine.
func scanAnswer(line []byte, owned bool) (Event, bool) {
	p, ok := after(line, answerPrefix)
	if !ok {
		return Event{}, false
	}
	var content scannedContent
	for first := true; !hasPrefix(p, "]"); first = false {
		if !first {
			if p, ok = after(p, ","); !ok {
				return Event{}, false
			}
		}
		if p, ok = content.scanBlock(p); !ok {
			return Event{}, false
		}
	}
	if !hasPrefix(p, `],"`) {
		return Event{}, false
	}
	rest := append([]byte("{"), p[len("],"):len(p)-1]...)
	var m wireMessage
	if err := json.Unmarshal(rest, &m); err != nil || m.Role != "" || m.Content != nil {
		return Event{}, false
	}
	text := content.text(owned && content.size > len(line)/2) // a short text must not keep a long line
	return Event{Kind: KindMessageEnd, Role: RoleAssistant, Message: m.said(text, content.toolCalls)}, true
}

// scannedContent is what is needed of the content of an assistant message.
type scannedContent struct {
	texts     [][]byte // JSON strings
	size      int      // of all of them
	toolCalls int
}

// scanBlock reads the content block at the start of p and returns what follows it.
func (c *scannedContent) scanBlock(p []byte) ([]byte, bool) {
	if q, ok := after(p, `{"type":"text","text":`); ok {
		n := stringLen(q)
		c.texts = append(c.texts, q[:n])
		c.size += n
		return afterBlock(q, n, `,"textSignature":`)
	}
	if q, ok := after(p, `{"type":"thinking","thinking":`); ok {
		return afterBlock(q, stringLen(q), `,"thinkingSignature":`)
	}
	q, ok := after(p, `{"type":"toolCall","id":`)
	if !ok {
		return nil, false
	}
	for _, key := range []string{`,"name":`, `,"arguments":`} {
		if q, ok = after(q[stringLen(q):], key); !ok {
			return nil, false
		}
	}
	n := objectLen(q)
	c.toolCalls++
	return afterBlock(q, n, `,"thoughtSignature":`)
}

// afterBlock ends a block whose last value but for a signature is n bytes long.
func afterBlock(p []byte, n int, signature string) ([]byte, bool) {
	if n == 0 {
		return nil, false
	}
	p = p[n:]
	if q, ok := after(p, signature); ok {
		if n = stringLen(q); n == 0 {
			return nil, false
		}
		p = q[n:]
	}
	return after(p, "}")
}

// text joins the text blocks by a newline. If it may take the memory of a single
// one, that must be valid UTF-8.
func (c *scannedContent) text(take bool) string {
	if len(c.texts) == 1 && take {
		return takeString(c.texts[0])
	}
	texts := make([]string, len(c.texts))
	for i, t := range c.texts {
		texts[i], _, _ = scanString(t)
	}
	return strings.Join(texts, "\n")
}

// objectLen is the length of the JSON object at the start of p, 0 if there is none.
func objectLen(p []byte) int {
	if !hasPrefix(p, "{") {
		return 0
	}
	for i, depth := 0, 0; i < len(p); i++ {
		switch p[i] {
		case '{':
			depth++
		case '"':
			n := stringLen(p[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '}':
			if depth--; depth == 0 {
				if n := i + 1; json.Valid(p[:n]) {
					return n
				}
				return 0
			}
		}
	}
	return 0
}
