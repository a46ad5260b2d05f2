package compaction

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// pattern compiles a regular expression at its first use.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

var terminalCodes = pattern(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// clean takes terminal codes and control characters out of a text and makes its line
// ends alike.
func clean(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	if strings.IndexByte(s, '\x1b') >= 0 {
		s = terminalCodes().ReplaceAllString(s, "")
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case isControl(r):
			return -1
		}
		return r
	}, s)
}

// isControl tells what may not reach a summary: controls besides line feed and tab,
// and characters that turn the direction of the text around them.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || '\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069')
}

// flat is a text on one line.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// clip bounds a text to n characters, an ellipsis at the cut included.
func clip(s string, n int) string {
	if len(s) <= n || length(s) <= n {
		return s
	}
	return strings.TrimRight(s[:offset(s, n-1)], " \t\n") + "…"
}

// clipSentence bounds a text to n characters, at the end of a sentence if there is
// one in its second half.
func clipSentence(s string, n int) string {
	if length(s) <= n {
		return s
	}
	head := s[:offset(s, n)]
	for _, end := range []string{". ", "! ", "? ", "。", "！", "？", "; "} {
		if i := strings.LastIndex(head, end); i > len(head)/2 {
			_, size := utf8.DecodeRuneInString(head[i:])
			return head[:i+size]
		}
	}
	return clip(s, n)
}

// offset is the byte offset of the n-th character.
func offset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// lineLimit bounds each line of a section.
const lineLimit = 300

// lineWidth is where lines of the brief are wrapped.
const lineWidth = 120

// wrap breaks a line into lines of at most lineWidth characters, at spaces where
// there are any.
func wrap(line string) (lines []string) {
	for length(line) > lineWidth {
		cut := offset(line, lineWidth)
		next := cut
		if i := strings.LastIndexByte(line[:cut], ' '); i > cut/2 {
			cut, next = i, i+1
		}
		lines = append(lines, line[:cut])
		line = line[next:]
	}
	return append(lines, line)
}

// unique drops the later of equal texts and empty ones.
func unique(list []string) (kept []string) {
	seen := map[string]bool{"": true}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

// last is the end of a list with at most n items.
func last[T any](list []T, n int) []T { return list[max(len(list)-n, 0):] }

// first is the beginning of a list with at most n items.
func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// counted joins the items that are shown of a list, and says how many more it has.
func counted(shown []string, more int) string {
	line := strings.Join(shown, ", ")
	if more > 0 {
		line += fmt.Sprintf(" (+%d more)", more)
	}
	return line
}
