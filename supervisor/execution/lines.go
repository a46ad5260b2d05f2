package execution

import "strings"

// line is one line of a plan file.
type line struct {
	number int // from 1, as an editor counts
	text   string
	code   bool // in a fenced code block, or one of its fences
	opened int  // the line that opened that block
}

// linesOf cuts a plan into lines. LF, CRLF and a lone CR end a line; a byte order mark
// is no part of the first; a no-break space, which editors put behind a check box, is
// a space. All ends of lines give the same plan (faults I108).
func linesOf(text string) []line {
	text = strings.TrimPrefix(strings.ToValidUTF8(text, "\uFFFD"), "\uFEFF")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u00A0", " ").Replace(text)
	var lines []line
	fence, opened := "", 0
	for i, raw := range strings.Split(text, "\n") {
		l := line{number: i + 1, text: raw, code: fence != ""}
		run, info := fenceOf(raw)
		switch {
		case fence == "" && run != "":
			fence, opened, l.code = run, l.number, true
		case fence != "" && info == "" && strings.HasPrefix(run, fence):
			fence = ""
		}
		l.opened = opened
		lines = append(lines, l)
	}
	return lines
}

// fenceOf returns the run of backticks or tildes that makes a line the fence of a code
// block, and what follows it. A run is "" for any other line.
func fenceOf(text string) (run, info string) {
	text = strings.TrimSpace(text)
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(text, mark)
		if run = text[:len(text)-len(rest)]; len(run) >= 3 && !strings.Contains(rest, "`") {
			return run, strings.TrimSpace(rest)
		}
	}
	return "", ""
}

// isHeading tells whether a line is the second-level heading with this title.
func isHeading(text, title string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "##")
	return ok && strings.TrimLeft(rest, " \t") != rest && strings.TrimSpace(rest) == title
}

// endsSection tells whether a line begins the next section.
func endsSection(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "## ") || strings.HasPrefix(text, "##\t")
}

// idsIn returns the ids of a kind, "VC-" or "I-", that stand as words in a text, in
// order and with repetitions.
func idsIn(text, kind string) []string {
	var ids []string
	for from := 0; ; {
		at := strings.Index(text[from:], kind)
		if at < 0 {
			return ids
		}
		start := from + at
		end := start + len(kind)
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		from = end
		if end == start+len(kind) || start > 0 && isWord(text[start-1]) || end < len(text) && isWord(text[end]) {
			continue
		}
		ids = append(ids, text[start:end])
	}
}

// isID tells whether a string is an id of a kind and nothing else.
func isID(s, kind string) bool {
	digits, ok := strings.CutPrefix(s, kind)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}
