package main

import (
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// tabWidth is how wide a tab is drawn. Tab stops would need the column.
const tabWidth = 4

// plainText is a text from outside as it may go to a terminal: control characters are
// drawn as pictures, so that no escape sequence takes effect, and what would turn the
// direction of the rest of a line around is replaced. Variation selectors go: terminals
// do not agree on how wide they make a character. Line breaks stay.
func plainText(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r < 0x20:
			return '␀' + r
		case r == 0x7f:
			return '␡'
		case r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.Is(unicode.Variation_Selector, r):
			return -1
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// plainLine is plainText on one line.
func plainLine(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(plainText(text))
}

// wrapLines breaks a text of plainText into lines of no more than width cells: between
// words, and within those that are longer than a line.
func wrapLines(text string, width int) []string {
	text = strings.ReplaceAll(text, "\t", strings.Repeat(" ", tabWidth))
	width = max(1, width)
	// Wrap leaves a word that just fits behind a blank that does not.
	return strings.Split(ansi.Hardwrap(ansi.Wrap(text, width, ""), width, true), "\n")
}

// fit makes a line exactly width cells wide.
func fit(line string, width int) string {
	if width <= 0 {
		return ""
	}
	line = cut(line, width)
	for lipgloss.Width(line) < width { // some characters join with a blank beside them
		line += strings.Repeat(" ", width-lipgloss.Width(line))
	}
	return line
}

// fitRight is fit with the line at the right.
func fitRight(line string, width int) string {
	line = cut(line, width)
	for lipgloss.Width(line) < width {
		line = strings.Repeat(" ", width-lipgloss.Width(line)) + line
	}
	return line
}

// cut shortens a line to a width. What Truncate counts piece by piece may be wider as a
// whole.
func cut(line string, width int) string {
	short := ansi.Truncate(line, width, "…")
	for room := width - 1; room > 0 && lipgloss.Width(short) > width; room-- {
		short = ansi.Truncate(line, room, "…")
	}
	return short
}
