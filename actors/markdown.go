package actors

import (
	"fmt"
	"strings"
	"unicode"
)

// The report parsers read Markdown written by a model, line by line. They need
// little of Markdown: which lines are quoted code, headings, list items and
// labelled fields. A full Markdown parser would be stricter than the models
// are and would lose the line structure.

// mdLine is one line of an answer.
type mdLine struct {
	text  string
	code  bool // inside a fenced block
	fence bool // opens or closes a fenced block
}

var mdFence = lazily("^\\s*(?:[-*+]\\s+)?(`{3,}|~{3,})\\s*([^`]*)$")

// mdLines cuts an answer into lines with LF ends and valid UTF-8, without byte
// order mark and without a fence that wraps the answer as a whole. open tells
// that a fenced block never ends, as in an answer that was cut off; all that
// follows its beginning counts as code.
func mdLines(output string) (lines []mdLine, open bool) {
	text := strings.TrimPrefix(strings.ToValidUTF8(output, "\uFFFD"), "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	fence := ""
	for _, raw := range mdUnwrap(strings.Split(text, "\n")) {
		line := mdLine{text: raw}
		m := mdFence().FindStringSubmatch(raw)
		switch {
		case fence == "" && m != nil:
			fence, line.fence = m[1], true
		case fence != "" && m != nil && m[2] == "" && strings.HasPrefix(m[1], fence):
			fence, line.fence = "", true
		default:
			line.code = fence != ""
		}
		lines = append(lines, line)
	}
	return lines, fence != ""
}

// mdUnwrap removes a fence around the whole answer, which models add in spite
// of being told not to. Only a fence without a language or with a Markdown one
// can be such a wrapper, and only when nothing closes it before the last line:
// two code blocks at the two ends of an answer are no wrapper.
func mdUnwrap(lines []string) []string {
	first, last := 0, len(lines)-1
	for first <= last && strings.TrimSpace(lines[first]) == "" {
		first++
	}
	for last > first && strings.TrimSpace(lines[last]) == "" {
		last--
	}
	if first >= last {
		return lines
	}
	wrapper := mdFence().FindStringSubmatch(lines[first])
	if wrapper == nil {
		return lines
	}
	switch strings.ToLower(strings.TrimSpace(wrapper[2])) {
	case "", "markdown", "md":
	default:
		return lines
	}
	open := []string{wrapper[1]}
	for i := first + 1; i <= last; i++ {
		m := mdFence().FindStringSubmatch(lines[i])
		switch {
		case m == nil:
		case m[2] != "":
			open = append(open, m[1])
		case strings.HasPrefix(m[1], open[len(open)-1]):
			open = open[:len(open)-1]
			if len(open) == 0 {
				if i == last {
					return lines[first+1 : last]
				}
				return lines
			}
		}
	}
	return lines
}

// mdBoldLevel is the level of a line that is a heading only by being bold,
// below the six real ones.
const mdBoldLevel = 7

var (
	mdATX  = lazily(`^ {0,3}(#{1,6})[\s\x{a0}]+(.*?)[\s#]*$`)
	mdBold = lazily(`^ {0,3}(?:\*\*|__)([^*]+)(?:\*\*|__)\s*[:：]?\s*$`)
)

// mdHeading returns the level and the text of a heading, level 0 for a line
// that is none.
func mdHeading(line string) (level int, text string) {
	if m := mdATX().FindStringSubmatch(line); m != nil {
		return len(m[1]), strings.TrimSpace(strings.ReplaceAll(m[2], "**", ""))
	}
	if m := mdBold().FindStringSubmatch(line); m != nil {
		return mdBoldLevel, strings.TrimSpace(m[1])
	}
	return 0, ""
}

// mdKey reduces a heading or a label to what identifies it: its letters, in
// lower case. Numbering, emphasis, hyphens and a colon make no difference.
func mdKey(text string) string {
	var key strings.Builder
	for _, r := range strings.ReplaceAll(text, "&", " and ") {
		if unicode.IsLetter(r) {
			key.WriteRune(unicode.ToLower(r))
		}
	}
	return key.String()
}

var mdMarker = lazily(`^\s*(?:[-*+•]|\d{1,3}[.)])(?:[\s\x{a0}]+|$)`)

// mdItem removes the marker of a list item.
func mdItem(line string) (text string, item bool) {
	if at := mdMarker().FindStringIndex(line); at != nil {
		return strings.TrimSpace(line[at[1]:]), true
	}
	return strings.TrimSpace(line), false
}

// mdLabel splits "- **Label:** value" in its usual spellings. labels maps the
// key of each known label to the field it stands for; a line that begins with
// none of them is no field.
func mdLabel(line string, labels map[string]string) (field, value string, ok bool) {
	const longest = 40 // bytes of a label, generously
	text, _ := mdItem(line)
	emphasis := text[:len(text)-len(strings.TrimLeft(text, "*_"))]
	text = text[len(emphasis):]
	end := strings.IndexAny(text, ":：—–-*_")
	if end < 0 || end > longest {
		return "", "", false
	}
	field, ok = labels[mdKey(text[:end])]
	if !ok {
		return "", "", false
	}
	text = text[end:]
	closed := emphasis != "" && strings.HasPrefix(text, emphasis)
	if closed {
		text = strings.TrimLeft(text[len(emphasis):], " \t")
	}
	before := len(text)
	for _, separator := range []string{":", "：", "—", "–", "-"} {
		text = strings.TrimPrefix(text, separator)
		if len(text) < before {
			break
		}
	}
	if len(text) == before {
		return "", "", false
	}
	text = strings.TrimSpace(text)
	if emphasis != "" && !closed { // "**Label:** value" or "*Label: value*"
		var within bool
		if text, within = strings.CutPrefix(text, emphasis); !within {
			text = strings.TrimSuffix(text, emphasis)
		}
	}
	return field, strings.TrimSpace(text), true
}

// mdStates tells whether a line is the fixed statement words ("no findings"),
// with or without more text after a punctuation mark.
func mdStates(line, words string) bool {
	text, _ := mdItem(line)
	text = strings.ToLower(strings.Trim(text, "*_ "))
	rest, ok := strings.CutPrefix(text, words)
	if rest = strings.TrimLeft(rest, "*_ "); !ok || rest == "" {
		return ok
	}
	return strings.ContainsAny(string([]rune(rest)[0]), ".!:;,。：；，—–-(")
}

var mdRule = lazily(`^ {0,3}(?:-[ -]*-[ -]*-|\*[ *]*\*[ *]*\*|_[ _]*_[ _]*_)[-*_ ]*$`)

// mdExcerpt shortens text that is shown in a problem.
func mdExcerpt(text string) string {
	const most = 60 // characters
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
