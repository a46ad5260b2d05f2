package guard

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what is analysed at all. They lie far above what a person or a model
// writes for inspection and keep the worst case to a few milliseconds.
const (
	// maxBytes of one command.
	maxBytes = 32 << 10
	// maxNesting of parentheses, braces, substitutions and compound commands.
	maxNesting = 40
	// maxCommands in one text.
	maxCommands = 500
	// maxArguments of one command.
	maxArguments = 2000
	// maxWords that one word may become by brace expansion.
	maxWords = 128
)

// checkText refuses what no one should have to read: texts that are too long, and
// characters that are not seen, look like blanks or reorder what is around them.
func checkText(text string) *objection {
	switch {
	case strings.TrimSpace(text) == "":
		return object("the command is empty")
	case len(text) > maxBytes:
		return object("the command is longer than %d KiB", maxBytes>>10).or("split it")
	case !utf8.ValidString(text):
		return object("the command is not valid UTF-8")
	}
	for _, r := range text {
		switch {
		case r == '\n', r == '\t':
		case r < ' ', r == 0x7f:
			return object("the command holds the control character %#04x", r).or("write it without")
		case r > '~' && unseen(r):
			return object("the command holds U+%04X, which cannot be seen or is not the blank it looks like", r).or("write it in plain characters")
		}
	}
	if trailing := len(text) - len(strings.TrimRight(text, `\`)); trailing%2 == 1 {
		return object("the command ends in the middle of an escape")
	}
	if deep(text) {
		return object("the command is nested more than %d levels deep", maxNesting).or("write it flat")
	}
	return nil
}

// unseen tells of a rune beyond ASCII that shows nothing, shows as a blank, or
// changes how its neighbours are shown.
func unseen(r rune) bool {
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0:
		return true // fillers that Unicode classes as letters, marks or symbols
	case 0xfe0f:
		return false // asks for the coloured form of the symbol before it
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Variation_Selector)
}

// deep finds nesting that would only cost the parser time and stack. It counts
// openings wherever they stand, so it may be wrong about quoted ones; no sensible
// command has that many of those either.
func deep(text string) bool {
	depth, quotes := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		case '`':
			quotes++
		}
		if depth > maxNesting || quotes > 2*maxNesting {
			return true
		}
	}
	return false
}
