package actors

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Evidence is one place a finding rests on.
type Evidence struct {
	Path  string `json:"path"`  // as cited, "" when the text names no file
	Line  int    `json:"line"`  // first line cited, from 1; 0 when there is none
	Quote string `json:"quote"` // what is said to stand there, "" when nothing is quoted
	Raw   string `json:"raw"`   // the words of the model
}

// evidenceSpan is a part of a line: the place it cites, or the words it quotes.
type evidenceSpan struct {
	from, to int // byte offsets in the line
	path     string
	line     int
	quote    string
}

// parseEvidence reads the lines of an evidence field: places in one line or
// over several, each followed by its quote in quotation marks, in backticks,
// as a block quote or as a code block.
func parseEvidence(lines []mdLine) []Evidence {
	found := []Evidence{}
	var code, more []string // the open code block; further words of the last place
	settle := func() {
		if len(more) > 0 {
			last := &found[len(found)-1]
			last.Raw = strings.TrimSpace(last.Raw + "\n" + strings.Join(more, "\n"))
			more = nil
		}
	}
	belongs := func(raw, quote string) {
		if len(found) == 0 {
			found = append(found, Evidence{})
		}
		more = append(more, raw)
		if last := &found[len(found)-1]; last.Quote == "" {
			last.Quote = quote
		}
	}
	endCode := func() {
		if block := strings.TrimSpace(strings.Join(code, "\n")); block != "" {
			belongs(block, block)
		}
		code = nil
	}
	for _, line := range lines {
		if line.code {
			code = append(code, line.text)
			continue
		}
		endCode()
		text, item := mdItem(line.text)
		if line.fence || text == "" {
			continue
		}
		if quoted, ok := strings.CutPrefix(text, ">"); ok {
			belongs(text, strings.TrimSpace(quoted))
			continue
		}
		places := evidenceOf(text)
		if places[0].Path == "" && !item && len(found) > 0 {
			belongs(text, places[0].Quote)
			continue
		}
		settle()
		found = append(found, places...)
	}
	endCode()
	settle()
	return found
}

// supports tells whether the evidence can be looked up: a file, with a line, a
// quote, or the statement that something is not there.
func (e Evidence) supports() bool {
	return e.Path != "" && (e.Line > 0 || e.Quote != "" || absence(e.Raw))
}

func absence(raw string) bool { return strings.Contains(strings.ToLower(raw), "no match") }

// evidenceOf reads one line. A line without a place gives one Evidence that
// has no path.
func evidenceOf(text string) []Evidence {
	var places, quotes []evidenceSpan
	for _, span := range evidenceSpans(text) {
		if span.path != "" {
			places = append(places, span)
		} else {
			quotes = append(quotes, span)
		}
	}
	if len(places) == 0 {
		e := Evidence{Raw: text}
		if len(quotes) > 0 {
			e.Quote = quotes[0].quote
		}
		return []Evidence{e}
	}
	// Quotes stand after their places, or before them when the line begins with one.
	before := len(quotes) > 0 && quotes[0].from < places[0].from
	found := make([]Evidence, 0, len(places))
	for i, place := range places {
		from, to := place.from, len(text)
		if i == 0 {
			from = 0
		}
		if i+1 < len(places) {
			to = places[i+1].from
		}
		quoteFrom, quoteTo := place.to, to
		if before {
			quoteFrom, quoteTo = 0, place.from
			if i > 0 {
				quoteFrom = places[i-1].to
			}
		}
		e := Evidence{Path: place.path, Line: place.line, Raw: strings.Trim(text[from:to], " \t;,")}
		for len(quotes) > 0 && quotes[0].from < quoteFrom {
			quotes = quotes[1:]
		}
		if len(quotes) > 0 && quotes[0].to <= quoteTo && !absence(e.Raw) {
			e.Quote = quotes[0].quote
		}
		found = append(found, e)
	}
	return found
}

var (
	evidencePlace  = lazily(`^([^\s:;,"` + "`" + `]+)(?::|#L?)(\d+)`)
	evidenceCode   = lazily(`^([^:"]+?)(?::|#L?)(\d+)[-–:#,L\d]*$`)
	evidenceSuffix = lazily(`^(?::|#L?|[\s,(]*(?i:lines?|ln?\.?)[\s:]*)(\d+)`)
	evidenceExt    = lazily(`[^./\s][^/\s]*\.[A-Za-z][A-Za-z0-9]{0,9}$`)
)

// evidenceSpans finds the places and quotes of a line, in order, in time
// proportional to its length whatever it holds. Nothing inside a quote is a
// place.
func evidenceSpans(text string) []evidenceSpan {
	const decoration = "*(["
	var spans []evidenceSpan
	placed := false  // a place was found
	leading := true  // nothing but decoration so far
	boundary := true // a word may begin here
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		span, ok := evidenceSpan{}, false
		if end := quoteEnd(text, at); end > 0 {
			span, ok = quoteOrPlace(text, at, end, placed), true
		} else if boundary && !unicode.IsSpace(r) {
			span, ok = barePlace(text, at, leading)
		}
		if ok {
			spans = append(spans, span)
			placed = placed || span.path != ""
			at, boundary, leading = span.to, false, false
			continue
		}
		if r == '`' { // a run that nothing closes
			size = len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		}
		decorates := boundary && strings.ContainsRune(decoration, r)
		boundary = unicode.IsSpace(r) || strings.ContainsRune(";,", r) || decorates
		leading = leading && decorates
		at += size
	}
	return spans
}

// barePlace reads a place that stands in plain text at a word boundary. At the
// very start of the evidence a path needs no line; later a word with a slash
// or a dot in it is a place only with one.
func barePlace(text string, at int, leading bool) (evidenceSpan, bool) {
	const longest = 4096 // bytes of a path, as Linux has it
	word := text[at:min(len(text), at+longest)]
	if decorated(word) {
		return evidenceSpan{}, false // the place begins behind the decoration
	}
	if m := evidencePlace().FindStringSubmatch(word); m != nil && pathLike(m[1], leading) {
		end := at + len(m[0])
		if link := linkTarget().FindString(text[end:]); link != "" { // it repeats the place
			end += len(link)
		}
		return evidenceSpan{from: at, to: end, path: m[1], line: lineNumber(m[2])}, true
	}
	if end := strings.IndexFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";,", r) }); end >= 0 {
		word = word[:end]
	}
	path := strings.TrimRight(word, ":.)*")
	if strings.ContainsAny(path, "\":") || !pathLike(path, false) {
		return evidenceSpan{}, false
	}
	end := at + len(path)
	if m := evidenceSuffix().FindStringSubmatch(text[end:]); m != nil {
		return evidenceSpan{from: at, to: end + len(m[0]), path: path, line: lineNumber(m[1])}, true
	}
	return evidenceSpan{from: at, to: end, path: path}, leading
}

var linkTarget = lazily(`^\]\([^\s)]*\)`)

// decorated tells whether a word begins with emphasis or with a bracket that
// is not part of a path, as the one in (main)/page.tsx is.
func decorated(word string) bool {
	closing := map[byte]string{'*': "", '(': ")", '[': "]"}
	bracket, ok := closing[word[0]]
	if !ok || bracket == "" {
		return ok
	}
	path, _, _ := strings.Cut(word, ":")
	return !strings.Contains(path, bracket)
}

// quoteOrPlace reads what quoteEnd found. Only backticks may hold a place, and
// a name without a line number is one only while the line has none yet: after
// a place it is quoted code.
func quoteOrPlace(text string, from, to int, placed bool) evidenceSpan {
	if text[from] != '`' {
		return evidenceSpan{from: from, to: to, quote: strings.TrimSpace(unquote(text[from:to]))}
	}
	code := strings.TrimSpace(strings.Trim(text[from:to], "`"))
	blank := strings.ContainsFunc(code, unicode.IsSpace)
	if m := evidenceSuffix().FindStringSubmatch(text[to:]); m != nil && pathLike(code, !blank) {
		return evidenceSpan{from: from, to: to + len(m[0]), path: code, line: lineNumber(m[1])}
	}
	if m := evidenceCode().FindStringSubmatch(code); m != nil && pathLike(m[1], !blank) {
		return evidenceSpan{from: from, to: to, path: m[1], line: lineNumber(m[2])}
	}
	if !placed && !blank && !strings.Contains(code, `"`) && pathLike(code, false) {
		return evidenceSpan{from: from, to: to, path: code}
	}
	return evidenceSpan{from: from, to: to, quote: code}
}

// pathLike tells whether a word can name a file. A sure position lets a plain
// name such as Makefile pass; elsewhere a slash or a file extension is needed.
func pathLike(word string, sure bool) bool {
	if !strings.ContainsFunc(word, unicode.IsLetter) || strings.Contains(word, "://") {
		return false
	}
	return sure || strings.Contains(word, "/") || evidenceExt().MatchString(word)
}

// lineNumber reads the digits of a line; a number no file can have is none.
func lineNumber(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

var quotePairs = map[rune]string{'"': `"`, '“': `”"`, '„': `“”`, '«': `»`, '「': `」`}

// quoteEnd returns the offset after the quote that begins at at, 0 when none
// does. A quote that is not closed goes to the end of the line.
func quoteEnd(text string, at int) int {
	r, size := utf8.DecodeRuneInString(text[at:])
	if r == '`' {
		run := text[at : len(text)-len(strings.TrimLeft(text[at:], "`"))]
		if end := strings.Index(text[at+len(run):], run); end > 0 {
			return at + len(run) + end + len(run)
		}
		return 0
	}
	closers, ok := quotePairs[r]
	if !ok {
		return 0
	}
	// Code in quotes has quotes of its own. The closing one is followed by the
	// end of the line, a blank or a separator; failing that the last one closes.
	fallback := len(text)
	for i, c := range text[at+size:] {
		if !strings.ContainsRune(closers, c) {
			continue
		}
		fallback = at + size + i + utf8.RuneLen(c)
		next, _ := utf8.DecodeRuneInString(text[fallback:])
		if fallback == len(text) || unicode.IsSpace(next) || strings.ContainsRune(";—", next) {
			return fallback
		}
	}
	return fallback
}

// unquote removes the quotation marks of a quote found by quoteEnd.
func unquote(quoted string) string {
	r, size := utf8.DecodeRuneInString(quoted)
	quoted = quoted[size:]
	last, size := utf8.DecodeLastRuneInString(quoted)
	if quoted != "" && strings.ContainsRune(quotePairs[r], last) {
		quoted = quoted[:len(quoted)-size]
	}
	return quoted
}
