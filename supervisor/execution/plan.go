package execution

import (
	"fmt"
	"slices"
	"strings"
)

// The sections of a plan file that an execution reads, and the ids in them.
const (
	checklistTitle = "Verifier Checklist"
	itemsTitle     = "Implementation Items"

	checkKind = "VC-"
	itemKind  = "I-"
)

// Plan is what an execution takes from a plan file (spec: execution 5.1).
type Plan struct {
	Checks []Check // the verifier checklist, in the order of the file
	Items  []Item  // the implementation items, in the order of the file; may be empty
	// Problems are lines that look as if they should count but do not.
	Problems []Problem
}

// Check is one item of the verifier checklist.
type Check struct {
	ID string // VC-<digits>
	// Text is the whole item behind its check box.
	Text string
	Done bool // ticked in the file
	// Covers are the implementation items that the check verifies, each once.
	Covers []string
	Line   int
}

// Item is one implementation item.
type Item struct {
	ID   string // I-<digits>
	Text string
	Line int
}

// Problem is what is wrong with one line of a plan. As an error it tells why a plan
// has nothing that could be verified.
type Problem struct {
	Line    int // 0 for the file as a whole
	Message string
}

func (p Problem) Error() string {
	if p.Line == 0 {
		return p.Message
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Message)
}

// Parse reads a plan. What stands in fenced code is quoted text, neither a heading
// nor an item. Of several lines with the same id the first counts.
func Parse(text string) Plan {
	lines := linesOf(text)
	var plan Plan
	plan.readItems(section(lines, itemsTitle))
	checklist := section(lines, checklistTitle)
	if checklist == nil {
		plan.problem(noChecklist(lines))
		return plan
	}
	plan.readChecks(checklist)
	if len(plan.Checks) == 0 {
		plan.problem(Problem{checklist[0].number, "the verifier checklist has no item such as \"- [ ] `VC-001` covers `I-1`; …\""})
	}
	return plan
}

// Executable is nil for a plan that has something to verify, else a [Problem] with
// the line to mend.
func (p Plan) Executable() error {
	if len(p.Checks) > 0 {
		return nil
	}
	return p.Problems[len(p.Problems)-1] // Parse says why
}

// section returns the lines from the heading of a section up to the next section, nil
// when there is none.
func section(lines []line, title string) []line {
	start := slices.IndexFunc(lines, func(l line) bool { return !l.code && isHeading(l.text, title) })
	if start < 0 {
		return nil
	}
	rest := lines[start+1:]
	if end := slices.IndexFunc(rest, func(l line) bool { return !l.code && endsSection(l.text) }); end >= 0 {
		rest = rest[:end]
	}
	return lines[start : start+1+len(rest)]
}

// noChecklist tells where a checklist that is not found may be.
func noChecklist(lines []line) Problem {
	for _, l := range lines {
		if isHeading(l.text, checklistTitle) {
			return Problem{l.number, fmt.Sprintf("the verifier checklist is inside the code block that line %d opens", l.opened)}
		}
	}
	return Problem{0, "there is no section \"## " + checklistTitle + "\""}
}

func (p *Plan) problem(found Problem) { p.Problems = append(p.Problems, found) }

func (p *Plan) readItems(section []line) {
	seen := map[string]int{}
	for _, l := range section {
		text, listed := listItem(l.text)
		if l.code || !listed {
			continue
		}
		id, text, ok := strings.Cut(strings.TrimPrefix(text, "`"), "`")
		text, colon := strings.CutPrefix(strings.TrimLeft(text, " \t"), ":")
		if !ok || !colon || !isID(id, itemKind) || strings.TrimLeft(text, " \t") == text {
			continue
		}
		if first, again := seen[id]; again {
			p.problem(Problem{l.number, fmt.Sprintf("%s stands on line %d already; this line does not count", id, first)})
			continue
		}
		seen[id] = l.number
		p.Items = append(p.Items, Item{ID: id, Text: strings.TrimSpace(text), Line: l.number})
	}
}

func (p *Plan) readChecks(section []line) {
	seen := map[string]int{}
	for _, l := range section[1:] {
		text, listed := listItem(l.text)
		if l.code || !listed {
			continue
		}
		text, done, boxed := checkBox(text)
		id := checkID(text)
		switch {
		case !boxed && id == "":
			continue
		case !boxed:
			p.problem(Problem{l.number, id + " has no check box, so it is not tracked; write \"- [ ] `" + id + "` …\""})
			continue
		case id == "":
			p.problem(Problem{l.number, "this item has no id such as `VC-001`, so it is not tracked"})
			continue
		}
		if first, again := seen[id]; again {
			p.problem(Problem{l.number, fmt.Sprintf("%s stands on line %d already; this line does not count", id, first)})
			continue
		}
		seen[id] = l.number
		check := Check{ID: id, Text: strings.TrimSpace(text), Done: done, Covers: covers(text), Line: l.number}
		for _, item := range check.Covers {
			if len(p.Items) > 0 && !slices.ContainsFunc(p.Items, func(i Item) bool { return i.ID == item }) {
				p.problem(Problem{l.number, fmt.Sprintf("%s covers %s, which is no implementation item", id, item)})
			}
		}
		p.Checks = append(p.Checks, check)
	}
}

// listItem returns what follows the dash of a list item.
func listItem(text string) (rest string, ok bool) {
	text, ok = strings.CutPrefix(strings.TrimLeft(text, " \t"), "-")
	rest = strings.TrimLeft(text, " \t")
	return rest, ok && rest != text
}

// checkBox returns what follows the check box of an item.
func checkBox(text string) (rest string, done, ok bool) {
	for _, box := range []string{"[ ]", "[x]", "[X]"} {
		if after, found := strings.CutPrefix(text, box); found {
			rest = strings.TrimLeft(after, " \t")
			return rest, box != "[ ]", rest != after
		}
	}
	return text, false, false
}

// checkID is the first id in backticks, else the first one as a word.
func checkID(text string) string {
	ids := idsIn(text, checkKind)
	for _, id := range ids {
		if strings.Contains(text, "`"+id+"`") {
			return id
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// covers are the implementation items that a check names before its first semicolon,
// each once.
func covers(text string) []string {
	text, _, _ = strings.Cut(text, ";")
	var ids []string
	for _, id := range idsIn(text, itemKind) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// longestShown is how many characters of an item are shown where there is little room.
const longestShown = 80

// Shorten makes one line of at most 80 characters of the text of an item.
func Shorten(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= longestShown {
		return string(runes)
	}
	return string(runes[:longestShown-1]) + "…"
}
