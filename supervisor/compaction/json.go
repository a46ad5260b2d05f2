package compaction

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// value is one JSON value inside a document that was found valid as a whole, so its
// reading cannot fail. Sessions are tens of megabytes of which a small part is
// needed: a value is a piece of the document, and only texts that are used are
// copied out of it.
type value []byte

// valueAt is the value that begins at or behind position i, and the end of it.
func valueAt(doc []byte, i int) (v value, end int) {
	i = skipSpace(doc, i)
	end = valueEnd(doc, i)
	return doc[i:end], end
}

func skipSpace(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}

// valueEnd is the position behind the value that begins at i.
func valueEnd(doc []byte, i int) int {
	switch doc[i] {
	case '"':
		return stringEnd(doc, i)
	case '{', '[':
		depth := 0
		for {
			switch doc[i] {
			case '"':
				i = stringEnd(doc, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			i++
			if depth == 0 {
				return i
			}
		}
	}
	for i < len(doc) {
		switch doc[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// stringEnd is the position behind the string whose quote is at i.
func stringEnd(doc []byte, i int) int {
	for j := i + 1; ; j++ {
		j += bytes.IndexByte(doc[j:], '"')
		escapes := 0
		for doc[j-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return j + 1
		}
	}
}

// members visits the members of an object, none if v is something else. Of equal
// keys the last one is to count, as in JavaScript.
func (v value) members(visit func(key []byte, member value)) {
	if len(v) == 0 || v[0] != '{' {
		return
	}
	for i := skipSpace(v, 1); v[i] == '"'; i = skipSpace(v, i) {
		var key, member value
		key, i = valueAt(v, i)
		i = skipSpace(v, i) + 1 // the colon
		member, i = valueAt(v, i)
		name := []byte(key[1 : len(key)-1])
		if bytes.IndexByte(name, '\\') >= 0 {
			name = []byte(key.text())
		}
		visit(name, member)
		if i = skipSpace(v, i); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
}

// items visits the items of an array, none if v is something else.
func (v value) items(visit func(item value)) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	for i := skipSpace(v, 1); v[i] != ']'; i = skipSpace(v, i) {
		var item value
		item, i = valueAt(v, i)
		visit(item)
		if i = skipSpace(v, i); v[i] == ',' {
			i++
		}
	}
}

// member is the member of an object with this key, nil without one.
func (v value) member(key string) (found value) {
	v.members(func(k []byte, member value) {
		if string(k) == key {
			found = member
		}
	})
	return found
}

func (v value) isString() bool { return len(v) > 0 && v[0] == '"' }
func (v value) isArray() bool  { return len(v) > 0 && v[0] == '[' }
func (v value) isObject() bool { return len(v) > 0 && v[0] == '{' }
func (v value) isNull() bool   { return len(v) == 0 || v[0] == 'n' }
func (v value) isTrue() bool   { return len(v) > 0 && v[0] == 't' }

// text is the value of a string, "" of anything else. Bytes that are no UTF-8 and
// lone surrogates become U+FFFD.
func (v value) text() string {
	if !v.isString() {
		return ""
	}
	if body := v[1 : len(v)-1]; bytes.IndexByte(body, '\\') < 0 {
		return strings.ToValidUTF8(string(body), "\uFFFD")
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return "" // cannot be: the document is valid
	}
	return s
}

// chars is the length of a string's text, 0 of anything else; a character that is
// escaped as two surrogates counts twice.
func (v value) chars() int {
	if !v.isString() {
		return 0
	}
	body := v[1 : len(v)-1]
	n := utf8.RuneCount(body)
	for {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			return n
		}
		if body[i+1] == 'u' {
			n -= 5
			body = body[i+6:]
			continue
		}
		n--
		body = body[i+2:]
	}
}

// maxSafeInteger is the largest integer that a JavaScript number holds exactly.
const maxSafeInteger = 1<<53 - 1

// count is a number as a whole one between 0 and maxSafeInteger; 0 of anything else.
func (v value) count() int64 {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil && f == 0 || f < 0 {
		return 0
	}
	return int64(min(f, maxSafeInteger))
}
