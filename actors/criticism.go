package actors

import (
	"fmt"
	"strconv"
	"strings"
)

// The limits of a criticism (spec: subagents 4.6).
const (
	maxQuestions        = 5
	maxSummarySentences = 3
)

// Question is one question to the author of a plan.
type Question struct {
	Number int    `json:"number"` // as the answer numbers it
	Text   string `json:"text"`
	Why    string `json:"why"` // why it matters
}

// Criticism is what a criticizer's answer says.
type Criticism struct {
	Summary   string     `json:"summary"`
	Questions []Question `json:"questions"`
	// Holds is true only for an answer with a summary that says that there are
	// no questions. An empty or unreadable answer does not hold.
	Holds bool `json:"holds"`
	// WellFormed is true when Problems is empty: the answer keeps the contract
	// in full.
	WellFormed bool     `json:"wellFormed"`
	Problems   []string `json:"problems"` // what is off, in plain words
}

// ParseCriticism reads a criticizer's answer. It takes the form the
// criticizer's prompt sets and the usual departures from it: no headings,
// questions as headings, the reason on the question's own line. It never
// fails, but says in Problems what it missed.
func ParseCriticism(output string) Criticism {
	p := criticismParser{criticism: Criticism{Questions: []Question{}, Problems: []string{}}}
	lines, open := mdLines(output)
	for _, line := range lines {
		if !line.code && !line.fence {
			p.line(line.text)
		}
	}
	p.endQuestion()
	if open {
		p.problem("a code block is never closed, so the answer may be cut off")
	}
	return p.judge()
}

// The parts of a criticism, and the field of a question.
const (
	partOpening   = "" // before the first heading
	partSummary   = "summary"
	partQuestions = "questions"
	partOther     = "other"
	fieldWhy      = "why"
)

var criticismLabels = map[string]string{
	"summary": partSummary, "criticismsummary": partSummary, "criticism": partSummary,
	"questions": partQuestions, "openquestions": partQuestions,
	"why": fieldWhy, "whyitmatters": fieldWhy, "whythismatters": fieldWhy,
}

// criticismParser reads an answer line by line.
type criticismParser struct {
	criticism Criticism
	part      string
	opening   []string // prose before the first heading: the summary when nothing else is
	summary   []string
	question  *Question // the one being read, nil between questions
	text      []string  // its lines
	why       []string
	inWhy     bool
	blank     bool // the line before was blank
	none      bool // the answer says that there are no questions
}

func (p *criticismParser) problem(format string, args ...any) {
	p.criticism.Problems = append(p.criticism.Problems, fmt.Sprintf(format, args...))
}

func (p *criticismParser) line(line string) {
	blank := p.blank
	p.blank = strings.TrimSpace(line) == ""
	if p.blank || mdRule().MatchString(line) {
		return
	}
	if level, heading := mdHeading(line); level > 0 && p.heading(level, heading) {
		return
	}
	if m := questionNumber().FindStringSubmatch(line); m != nil && p.part != partOther {
		p.begin(m[1], m[2])
		return
	}
	field, value, labelled := mdLabel(line, criticismLabels)
	indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
	text, item := mdItem(line)
	switch {
	case labelled && field == fieldWhy:
		if p.question != nil {
			p.inWhy = true
			p.why = append(p.why, value)
		}
	case labelled:
		p.endQuestion()
		p.part = field
		if value != "" && field == partSummary {
			p.summary = append(p.summary, value)
		}
	case p.question != nil && blank && !indented && !item:
		p.endQuestion() // a paragraph of its own after the question
	case p.question != nil && p.inWhy:
		p.why = append(p.why, text)
	case p.question != nil:
		p.text = append(p.text, text)
	case mdStates(line, "no questions"):
		p.none = true
	case p.part == partSummary:
		p.summary = append(p.summary, text)
	case p.part == partOpening:
		p.opening = append(p.opening, text)
	}
}

// heading acts on a heading; false means that the line is ordinary text.
func (p *criticismParser) heading(level int, heading string) bool {
	if m := questionNumber().FindStringSubmatch(heading); m != nil && p.part != partOther {
		if _, ok := criticismLabels[mdKey(m[2])]; !ok { // "## 1. Summary" is a part
			p.begin(m[1], m[2])
			return true
		}
	}
	field, ok := criticismLabels[mdKey(heading)]
	switch {
	case ok && field == fieldWhy:
		p.inWhy = p.question != nil
	case ok:
		p.endQuestion()
		p.part = field
	case level == mdBoldLevel:
		return false
	case mdKey(heading) == "noquestions":
		p.endQuestion()
		p.none, p.part = true, partQuestions
	default:
		p.endQuestion()
		if p.part != partOpening || level > 1 {
			p.part = partOther // anything but a title
		}
	}
	return true
}

var questionNumber = lazily(`^ {0,3}(?:[-*+]\s+)?\**(?:[Qq](?:uestion)?\s*)?(\d{1,3})\s*(?:[.):：—]|\s-\s)\s*\**[\s\x{a0}]*(.*)$`)

func (p *criticismParser) begin(number, text string) {
	p.endQuestion()
	n, _ := strconv.Atoi(number) // at most three digits
	p.question = &Question{Number: n}
	if text != "" {
		p.text = append(p.text, text)
	}
}

var whyInline = lazily(`(?i)[\s(\[*_—–-]+why(?: (?:it|this) matters)?[*_]*\s*[:：]\s*[*_]*\s*`)

func (p *criticismParser) endQuestion() {
	if p.question == nil {
		return
	}
	q := *p.question
	text, why := p.text, p.why
	p.question, p.text, p.why, p.inWhy = nil, nil, nil, false
	if len(why) == 0 {
		text, why = splitReason(text)
	}
	q.Text = strings.TrimSpace(strings.ReplaceAll(strings.Join(text, " "), "**", ""))
	q.Why = strings.TrimSpace(strings.Join(why, " "))
	p.criticism.Questions = append(p.criticism.Questions, q)
	if q.Text == "" {
		p.problem("question %d is empty", q.Number)
	}
	if q.Why == "" {
		p.problem("question %d does not say why it matters", q.Number)
	}
}

// splitReason finds the reason in a question that has no line with the label:
// after "Why:" inside the text, else in the lines after the one that ends with
// a question mark.
func splitReason(lines []string) (text, why []string) {
	for i, line := range lines {
		if at := whyInline().FindStringIndex(line); at != nil {
			reason := strings.TrimRight(line[at[1]:], ")] ")
			return append(lines[:i:i], line[:at[0]]), append([]string{reason}, lines[i+1:]...)
		}
	}
	for i, line := range lines[:max(0, len(lines)-1)] {
		for _, mark := range []string{"?", "？", "؟", "\u037e"} {
			if strings.HasSuffix(strings.TrimRight(line, "*_ "), mark) {
				return lines[:i+1], lines[i+1:]
			}
		}
	}
	return lines, nil
}

// judge closes the criticism: the rules that need all of the answer.
func (p *criticismParser) judge() Criticism {
	c := &p.criticism
	if len(p.summary) == 0 {
		p.summary = p.opening
	}
	c.Summary = strings.TrimSpace(strings.Join(p.summary, " "))
	if c.Summary == "" {
		p.problem("the summary is missing")
	}
	if n := sentences(c.Summary); n > maxSummarySentences {
		p.problem("the summary has %d sentences, at most %d may be", n, maxSummarySentences)
	}
	count := map[int]int{}
	for _, q := range c.Questions {
		if count[q.Number]++; count[q.Number] == 2 {
			p.problem("the number %d is used by more than one question", q.Number)
		}
	}
	if n := len(c.Questions); n > maxQuestions {
		p.problem("%d questions are asked, at most %d may be", n, maxQuestions)
	}
	switch {
	case p.none && len(c.Questions) > 0:
		p.problem(`the answer says "No questions." and asks questions`)
	case !p.none && len(c.Questions) == 0:
		p.problem(`the answer has no numbered question and does not say "No questions."`)
	}
	c.WellFormed = len(c.Problems) == 0
	c.Holds = c.WellFormed && p.none
	return *c
}

var (
	sentenceEnd  = lazily(`[.!?]["'”’)*_]*(?:\s+["'“‘(*_` + "`" + `]*\p{Lu}|\s*$)|[。！？]`)
	abbreviation = lazily(`(?i)\b(?:e\.g|i\.e|etc|vs|cf|resp|no)\.`)
)

// sentences counts conservatively: a full stop ends a sentence only before a
// capital letter or the end, so that file names and numbers do not.
func sentences(text string) int {
	text = abbreviation().ReplaceAllString(text, "")
	n := len(sentenceEnd().FindAllString(text, -1))
	if n == 0 && text != "" {
		return 1
	}
	return n
}
