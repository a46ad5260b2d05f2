package pijson

import "bytes"

var typePrefixBytes = []byte(typePrefix)

// clean cuts away what is not part of the event on a complete line and reports
// whether nothing is left.
func clean(line []byte) (event []byte, blank bool) {
	if n := len(line); n > 0 && line[0] == '{' && line[n-1] == '}' {
		return line, false // the usual case, nothing to do
	}
	line = trimEscapesRight(cleanHead(line))
	return line, len(line) == 0
}

// cleanHead cuts away what stands before the event on a line: white space, a byte
// order mark, terminal escape sequences, and a notice printed without a line feed.
func cleanHead(line []byte) []byte {
	line = trimEscapesLeft(line)
	if len(line) > 0 && line[0] != '{' {
		if i := bytes.Index(line, typePrefixBytes); i >= 0 {
			line = line[i:]
		}
	}
	return line
}

// mayBeEvent tells whether a clean line can hold an event at all.
func mayBeEvent(line []byte) bool {
	return len(line) > 0 && line[0] == '{'
}

func trimEscapesLeft(b []byte) []byte {
	for len(b) > 0 {
		switch c := b[0]; {
		case c == 0x1b:
			b = b[escapeLen(b):]
		case c <= ' ' || c == 0x7f:
			b = b[1:]
		case hasPrefix(b, "\ufeff"):
			b = b[len("\ufeff"):]
		default:
			return b
		}
	}
	return b
}

// trimEscapesRight cuts trailing white space and colour codes. Only the last few
// bytes are looked at: an escape sequence is short.
func trimEscapesRight(b []byte) []byte {
	for {
		b = bytes.TrimRight(b, " \t\r\n\x00\a")
		from := max(0, len(b)-32)
		i := bytes.LastIndexByte(b[from:], 0x1b)
		if i < 0 || escapeLen(b[from+i:]) != len(b)-from-i {
			return b
		}
		b = b[:from+i]
	}
}

// escapeLen is the length of the terminal escape sequence at the start of b: CSI up
// to its final byte, OSC and other strings up to BEL or ST, else two bytes.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
		return 2 // unterminated: what follows may still be an event
	}
	return 2
}
