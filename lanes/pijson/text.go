package pijson

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// This file decodes JSON strings. A lone surrogate and invalid UTF-8 become U+FFFD,
// as in encoding/json.

// scanString reads the JSON string at the start of p and returns what follows it.
func scanString(p []byte) (string, []byte, bool) {
	if len(p) == 0 || p[0] != '"' {
		return "", nil, false
	}
	p = p[1:]
	n, ascii := plainLen(p)
	if n < len(p) && p[n] == '"' && (ascii || utf8.Valid(p[:n])) {
		return string(p[:n]), p[n+1:], true
	}
	return unquoteAll(p)
}

// unquoteAll decodes a JSON string behind its first quote and returns what follows
// it. Most are short, so that only the result is allocated; a longer one is measured
// first, so that it is decoded where it stays.
func unquoteAll(p []byte) (string, []byte, bool) {
	var short [shortText]byte
	out, n, ok := unquote(short[:0], p, shortText)
	if ok {
		return string(out), p[n:], true
	}
	size := bodyLen(p)
	if size < 0 {
		return "", nil, false
	}
	out, n, _ = unquote(make([]byte, 0, size), p, math.MaxInt)
	return unsafe.String(unsafe.SliceData(out), len(out)), p[n:], true
}

// shortText is the decoded length up to which a text is copied from the stack.
const shortText = 256

// scanStringHead reads at most limit decoded bytes of the JSON string at the start
// of p, which may be cut anywhere.
func scanStringHead(p []byte, limit int) string {
	if len(p) == 0 || p[0] != '"' {
		return ""
	}
	out, _, _ := unquote(nil, p[1:], limit)
	return cut(string(out), limit)
}

// takeString decodes the JSON string that p is in its own memory, which becomes that
// of the result: nobody may use p afterwards. p is valid UTF-8, so that no part of it
// grows.
func takeString(p []byte) string {
	out, _, _ := unquote(p[1:1], p[1:], math.MaxInt)
	return unsafe.String(unsafe.SliceData(out), len(out))
}

// stringLen is the length of the JSON string at the start of p with its quotes, 0 if
// there is none or it does not end.
func stringLen(p []byte) int {
	if len(p) == 0 || p[0] != '"' {
		return 0
	}
	if n := bodyLen(p[1:]); n >= 0 {
		return n + 2
	}
	return 0
}

// bodyLen is the length of a JSON string behind its first quote, without the last
// one; negative if it does not end.
func bodyLen(p []byte) int {
	for i := 0; ; {
		n, _ := plainLen(p[i:])
		if i += n; i == len(p) {
			return -1
		}
		if p[i] == '"' {
			return i
		}
		if _, n = unescape(p[i:]); n == 0 {
			return -1
		}
		i += n
	}
}

// plainLen is the length of what stands at the start of p before a quote or a
// backslash. ascii tells that nothing in it is beyond ASCII for sure.
func plainLen(p []byte) (n int, ascii bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	var all uint64
	for ; n+8 <= len(p); n += 8 { // eight bytes at a time; the lowest high bit marks the first hit
		word := binary.LittleEndian.Uint64(p[n:])
		all |= word
		quote, slash := word^('"'*ones), word^('\\'*ones)
		if hit := ((quote-ones)&^quote | (slash-ones)&^slash) & highs; hit != 0 {
			return n + bits.TrailingZeros64(hit)/8, all&highs == 0
		}
	}
	for ; n < len(p) && p[n] != '"' && p[n] != '\\'; n++ {
		all |= uint64(p[n])
	}
	return n, all&highs == 0
}

// unquote appends what a JSON string says to dst, up to its closing quote or until
// dst has limit bytes or a few more. It returns the number of bytes read including
// the quote, and whether the quote was reached. dst may be the empty beginning of p
// if p is valid UTF-8.
func unquote(dst, p []byte, limit int) ([]byte, int, bool) {
	for i := 0; len(dst) < limit; {
		n, ascii := plainLen(p[i:])
		run := p[i : i+n]
		if i += n; i == len(p) {
			run = wholeRunes(run)
		}
		over := false
		if room := limit - len(dst); len(run)-utf8.UTFMax > room {
			run, over = wholeRunes(run[:room+utf8.UTFMax]), true
		}
		if ascii || utf8.Valid(run) {
			dst = append(dst, run...)
		} else {
			dst = appendValid(dst, run)
		}
		if over || i == len(p) { // the quote behind a run that was cut is not the end of dst
			break
		}
		if p[i] == '"' {
			return dst, i + 1, true
		}
		r, n := unescape(p[i:])
		if n == 0 {
			return dst, i, false
		}
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst, len(p), false
}

// appendValid appends p with each byte that is not UTF-8 as U+FFFD.
func appendValid(dst, p []byte) []byte {
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		dst = utf8.AppendRune(dst, r)
		p = p[n:]
	}
	return dst
}

// wholeRunes leaves out the beginning of a character at the end of p.
func wholeRunes(p []byte) []byte {
	for i := len(p) - 1; i >= max(0, len(p)-utf8.UTFMax); i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return p[:i]
			}
			break
		}
	}
	return p
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
