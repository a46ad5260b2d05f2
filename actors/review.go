package actors

import (
	"fmt"
	"strings"
	"unicode"
)

// maxHighFindings is how many findings of a review may be of high severity
// (spec: subagents 4.6).
const maxHighFindings = 5

// Finding is one fault that a reviewer reports (spec: subagents 4.6).
type Finding struct {
	ID          string     `json:"id"`       // F-###, three digits or more
	Severity    string     `json:"severity"` // high, medium or low; "" when the answer gives none of them
	Title       string     `json:"title"`
	Affects     []string   `json:"affects"` // plan ids, or "plan" for the plan as a whole
	Evidence    []Evidence `json:"evidence"`
	Impact      string     `json:"impact"`
	Fix         string     `json:"fix"`
	Disposition string     `json:"disposition"` // accept, reject or needs-discussion; "" when the answer gives none of them
}

// Review is what a reviewer's answer says.
type Review struct {
	Findings []Finding `json:"findings"` // in the order of the answer
	Checked  []string  `json:"checked"`  // what the reviewer says it verified
	// Holds is true only for an answer that says that there are no findings
	// and lists what was checked. An empty or unreadable answer does not hold.
	Holds bool `json:"holds"`
	// WellFormed is true when Problems is empty: the answer keeps the contract
	// in full. Findings of an answer that does not are still given as far as
	// they could be read.
	WellFormed bool     `json:"wellFormed"`
	Problems   []string `json:"problems"` // what is off, in plain words
}

// ParseReview reads a reviewer's answer. It takes the form the reviewer's
// prompt sets and the usual departures from it; it never fails, but says in
// Problems what it missed. Headings and fields inside code blocks and block
// quotes are quoted text and count for nothing.
func ParseReview(output string) Review {
	p := reviewParser{review: Review{Findings: []Finding{}, Checked: []string{}, Problems: []string{}}}
	lines, open := mdLines(output)
	for _, line := range lines {
		p.line(line)
	}
	p.endFinding()
	if open {
		p.problem("a code block is never closed, so the answer may be cut off")
	}
	return p.judge()
}

const (
	fieldAffects     = "affects"
	fieldEvidence    = "evidence"
	fieldImpact      = "impact"
	fieldFix         = "fix"
	fieldDisposition = "disposition"
	fieldSeverity    = "severity"
	fieldChecked     = "checked"
)

// reviewLabels maps the keys of the labels, and of what models write instead,
// to the fields of a finding.
var reviewLabels = map[string]string{
	"affects": fieldAffects, "affected": fieldAffects, "affectedids": fieldAffects, "affectedplanids": fieldAffects, "affecteditems": fieldAffects,
	"evidence": fieldEvidence,
	"impact":   fieldImpact,
	"fix":      fieldFix, "recommendedfix": fieldFix, "suggestedfix": fieldFix, "recommendation": fieldFix,
	"disposition": fieldDisposition, "suggesteddisposition": fieldDisposition,
	"severity": fieldSeverity,
	"checked":  fieldChecked, "whatwaschecked": fieldChecked, "whatichecked": fieldChecked,
}

// reviewParser reads an answer line by line.
type reviewParser struct {
	review   Review
	finding  *Finding // the one being read, nil between findings
	fields   map[string][]mdLine
	field    string     // the field that further lines of the finding belong to, "" for none
	checking bool       // in the list of what was checked
	entries  [][]string // that list, each entry by its lines
	none     bool       // the answer says that there are no findings
}

func (p *reviewParser) problem(format string, args ...any) {
	p.review.Problems = append(p.review.Problems, fmt.Sprintf(format, args...))
}

func (p *reviewParser) line(line mdLine) {
	if line.code || line.fence {
		p.extend(line)
		return
	}
	level, heading := mdHeading(line.text)
	if level > 0 && p.heading(level, heading) {
		return
	}
	if id, severity, title, ok := boldFinding(line.text); ok {
		p.begin(id, severity, title)
		return
	}
	if mdRule().MatchString(line.text) {
		p.field = ""
		return
	}
	field, value, labelled := mdLabel(line.text, reviewLabels)
	switch {
	case labelled && field == fieldChecked:
		p.check()
		p.checked(value)
	case p.checking:
		p.checked(line.text)
	case p.finding != nil && labelled:
		p.field = field
		p.extend(mdLine{text: value})
	case p.finding != nil:
		p.extend(line)
	case mdStates(line.text, "no findings"):
		p.none = true
	}
}

// heading acts on a heading; false means that the line is ordinary text.
func (p *reviewParser) heading(level int, heading string) bool {
	if id, severity, title, ok := findingTitle(heading); ok {
		p.begin(id, severity, title)
		return true
	}
	field, labelled := reviewLabels[mdKey(heading)]
	switch {
	case labelled && field == fieldChecked:
		p.check()
	case labelled && p.finding != nil:
		p.field = field
	case level == mdBoldLevel:
		return false
	default:
		p.endFinding()
		p.checking = false
		p.none = p.none || mdKey(heading) == "nofindings"
	}
	return true
}

func (p *reviewParser) begin(id, severity, title string) {
	p.endFinding()
	p.checking = false
	p.finding = &Finding{ID: id, Severity: severity, Title: title}
	p.fields = map[string][]mdLine{}
}

func (p *reviewParser) check() {
	p.endFinding()
	p.checking = true
}

// checked adds a line to the list of what was checked; an indented line goes
// on with the entry before it.
func (p *reviewParser) checked(text string) {
	entry, item := mdItem(text)
	indented := strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t")
	switch mdKey(entry) {
	case "", "none", "nothing", "na":
		return
	}
	if n := len(p.entries); n > 0 && indented && !item {
		p.entries[n-1] = append(p.entries[n-1], entry)
		return
	}
	p.entries = append(p.entries, []string{entry})
}

func (p *reviewParser) extend(line mdLine) {
	if p.finding != nil && p.field != "" {
		p.fields[p.field] = append(p.fields[p.field], line)
	}
}

// endFinding turns the fields of the finding being read into their values and
// notes what is missing.
func (p *reviewParser) endFinding() {
	if p.finding == nil {
		return
	}
	f := *p.finding
	f.Affects = planIDs(fieldText(p.fields[fieldAffects]))
	f.Evidence = parseEvidence(p.fields[fieldEvidence])
	f.Impact = fieldText(p.fields[fieldImpact])
	f.Fix = fieldText(p.fields[fieldFix])
	disposition := fieldText(p.fields[fieldDisposition])
	f.Disposition = dispositionOf(disposition)
	stated := fieldText(p.fields[fieldSeverity])
	if f.Severity == "" {
		f.Severity, _ = cutSeverity(stated)
	}
	p.finding, p.fields, p.field = nil, nil, ""
	p.review.Findings = append(p.review.Findings, f)

	if f.Severity == "" {
		p.problem("%s: the severity is none of high, medium and low", f.ID)
	}
	if f.Title == "" {
		p.problem("%s: the title is missing", f.ID)
	}
	if len(f.Affects) == 0 {
		p.problem("%s: Affects names no plan id", f.ID)
	}
	if text := evidenceProblem(f.Evidence); text != "" {
		p.problem("%s: %s", f.ID, text)
	}
	if f.Impact == "" {
		p.problem("%s: Impact is missing", f.ID)
	}
	if f.Fix == "" {
		p.problem("%s: Fix is missing", f.ID)
	}
	switch {
	case disposition == "":
		p.problem("%s: Disposition is missing", f.ID)
	case f.Disposition == "":
		p.problem("%s: Disposition %s is none of accept, reject and needs-discussion", f.ID, mdExcerpt(disposition))
	}
}

// judge closes the review: the rules that need all of the answer.
func (p *reviewParser) judge() Review {
	r := &p.review
	for _, entry := range p.entries {
		r.Checked = append(r.Checked, strings.Join(entry, " "))
	}
	count, high := map[string]int{}, 0
	for _, f := range r.Findings {
		if count[f.ID]++; count[f.ID] == 2 {
			p.problem("%s: the id is used by more than one finding", f.ID)
		}
		if f.Severity == "high" {
			high++
		}
	}
	if high > maxHighFindings {
		p.problem("%d findings are high, at most %d may be", high, maxHighFindings)
	}
	switch {
	case p.none && len(r.Findings) > 0:
		p.problem(`the answer says "No findings." and lists findings`)
	case p.none && len(r.Checked) == 0:
		p.problem(`the answer says "No findings." and does not list what was checked`)
	case !p.none && len(r.Findings) == 0:
		p.problem(`the answer has no finding that could be read and does not say "No findings."`)
	}
	r.WellFormed = len(r.Problems) == 0
	r.Holds = r.WellFormed && p.none
	return *r
}

func evidenceProblem(evidence []Evidence) string {
	if len(evidence) == 0 {
		return "Evidence is missing"
	}
	for _, e := range evidence {
		if e.supports() {
			return ""
		}
	}
	for _, e := range evidence {
		if e.Path != "" {
			return "Evidence names " + mdExcerpt(e.Path) + " without a line or a quote"
		}
	}
	return "Evidence names no file"
}

// fieldText joins the lines of a field. Code blocks and nested lists in it
// stay Markdown.
func fieldText(lines []mdLine) string {
	text := make([]string, len(lines))
	for i, line := range lines {
		text[i] = strings.TrimRight(strings.TrimPrefix(line.text, "  "), " \t")
	}
	return strings.TrimSpace(strings.Join(text, "\n"))
}

var (
	findingID   = lazily(`^(?i:finding\s+)?[\[(]?[Ff]-(\d+)(?:[\])]|\b)`)
	boldHead    = lazily(`^ {0,3}\*\*(.+)$`)
	headDash    = strings.NewReplacer("\u2010", "-", "\u2011", "-", "\u2012", "-")
	leadingRate = lazily(`^(?i:severity\s*[:：]?\s*)?(?i:(high|medium|low)(?:\s+severity)?)(?:\s*[\])]\s*[:：·•|—–-]*|\s*[:：·•|,/—–]|\s+-\s|\s*$)`)
	trailRate   = lazily(`(?:[\[(]\s*|[:：·•|—–]\s*|\s-\s+)(?i:severity\s*[:：]?\s*)?(?i:(high|medium|low)(?:\s+severity)?)\s*[\])]?\s*$`)
)

// headSeparators stand between the parts of a finding's heading.
const headSeparators = " \t\u00a0·•|:：—–-,/"

// findingTitle reads the text of a finding's heading. Ids are brought to three
// digits, so that F-1 and F-001 are the same finding.
func findingTitle(heading string) (id, severity, title string, ok bool) {
	heading = headDash.Replace(strings.Trim(heading, "*_` "))
	if lead := leadingRate().FindStringSubmatchIndex(strings.TrimLeft(heading, "[(")); lead != nil {
		// "[high] F-001: title" has the severity first.
		inner := strings.TrimLeft(heading, "[(")
		if rest := strings.TrimLeft(inner[lead[1]:], headSeparators); findingID().MatchString(rest) {
			severity, heading = strings.ToLower(inner[lead[2]:lead[3]]), rest
		}
	}
	m := findingID().FindStringSubmatchIndex(heading)
	if m == nil {
		return "", "", "", false
	}
	number := strings.TrimLeft(heading[m[2]:m[3]], "0")
	id = "F-" + strings.Repeat("0", max(0, 3-len(number))) + number
	rest := strings.TrimLeft(strings.Trim(heading[m[1]:], "*_"), headSeparators)
	if severity == "" {
		severity, rest = cutSeverity(rest)
	}
	return id, severity, strings.TrimSpace(strings.Trim(rest, "*")), true
}

// boldFinding reads a finding whose heading is only a line in bold. The id has
// to be followed by a separator: "**F-001** overlaps" is prose.
func boldFinding(line string) (id, severity, title string, ok bool) {
	m := boldHead().FindStringSubmatch(line)
	if m == nil {
		return "", "", "", false
	}
	text := headDash.Replace(m[1])
	at := findingID().FindStringIndex(text)
	if at == nil {
		return "", "", "", false
	}
	rest := strings.TrimLeft(text[at[1]:], "* ")
	if rest == "" || !strings.ContainsAny(string([]rune(rest)[0]), "·•|:：—–-([") {
		return "", "", "", false
	}
	return findingTitle(strings.ReplaceAll(text, "**", ""))
}

// cutSeverity takes a severity off the front of a text, or off its end where a
// separator or a bracket sets it apart. "High load breaks it" has none.
func cutSeverity(text string) (severity, rest string) {
	text = strings.Trim(text, "*_` ")
	// A coloured dot or another sign in front is decoration.
	plain := strings.TrimLeftFunc(text, func(r rune) bool { return strings.ContainsRune("[( ", r) || r >= 0x2000 && !unicode.IsLetter(r) })
	if m := leadingRate().FindStringSubmatchIndex(plain); m != nil {
		return strings.ToLower(plain[m[2]:m[3]]), strings.TrimLeft(plain[m[1]:], headSeparators)
	}
	if m := trailRate().FindStringSubmatchIndex(text); m != nil {
		return strings.ToLower(text[m[2]:m[3]]), strings.TrimRight(text[:m[0]], headSeparators)
	}
	return "", text
}

var (
	planID    = lazily(`\b[A-Za-z]+(?:-[A-Za-z]+)*-\d+(?:\.\d+)*\b`)
	wholePlan = lazily(`(?i)\bplan\b`)
)

// planIDs lists the plan ids of a text, each once; "plan" stands for a text
// that names the plan as a whole.
func planIDs(text string) []string {
	ids, seen := []string{}, map[string]bool{}
	for _, id := range planID().FindAllString(headDash.Replace(text), -1) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 && wholePlan().MatchString(text) {
		return append(ids, "plan")
	}
	return ids
}

var dispositionWord = lazily(`^(?i:(accept|reject)(?:ed)?\b|needs?[-_ ]+discussion\b)`)

func dispositionOf(text string) string {
	m := dispositionWord().FindStringSubmatch(headDash.Replace(strings.TrimLeft(text, "*_`\"- ")))
	switch {
	case m == nil:
		return ""
	case m[1] == "":
		return "needs-discussion"
	}
	return strings.ToLower(m[1])
}
