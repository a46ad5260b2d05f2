package actors

import (
	"fmt"
	"strings"
)

// RefSections is what a ref-analyst's answer says, section by section (spec:
// subagents 4.6). The text of a section is Markdown as the model wrote it.
type RefSections struct {
	Overview   string `json:"overview"`
	Mechanisms string `json:"mechanisms"`
	Adoptable  string `json:"adoptable"`
	Pitfalls   string `json:"pitfalls"`
	Citations  string `json:"citations"`
	Coverage   string `json:"coverage"`
	Gaps       string `json:"gaps"`
	// WellFormed is true when Problems is empty: the answer keeps the contract
	// in full.
	WellFormed bool     `json:"wellFormed"`
	Problems   []string `json:"problems"` // what is off, in plain words
}

// refHeadings are the headings of the sections, in their order.
var refHeadings = [...]string{
	"Overview",
	"Key Mechanisms And Design Tradeoffs",
	"Adoptable Ideas For The Target Repo",
	"Pitfalls And Anti-Patterns",
	"Evidence Citations",
	"Coverage",
	"Evidence Gaps",
}

const refCitations = 4 // index of Evidence Citations

// ParseRefAnalysis reads a ref-analyst's answer. Headings are recognised by
// their letters, at whatever level the answer uses for its sections. Nothing
// is lost: text under a heading that should not be there stays with the
// section before it. It never fails, but says in Problems what it missed.
func ParseRefAnalysis(output string) RefSections {
	problems := []string{}
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	lines, open := mdLines(output)
	level := sectionLevel(lines)

	var sections [len(refHeadings)][]string
	var seen [len(refHeadings)]bool
	current, furthest := -1, -1
	for _, line := range lines {
		if !line.code && !line.fence {
			at, heading := mdHeading(line.text)
			if at == level {
				if section := refSection(heading); section >= 0 {
					switch {
					case seen[section]:
						problem("the section %q appears more than once", refHeadings[section])
					case section < furthest:
						problem("the section %q comes after %q", refHeadings[section], refHeadings[furthest])
					}
					current, seen[section], furthest = section, true, max(furthest, section)
					continue
				}
			}
			if at > 0 && at <= level && at != mdBoldLevel && current >= 0 {
				problem("the heading %s is none of the seven sections", mdExcerpt(heading))
			}
		}
		if current >= 0 {
			sections[current] = append(sections[current], line.text)
		}
	}

	var text [len(refHeadings)]string
	for i, heading := range refHeadings {
		text[i] = strings.TrimSpace(strings.Join(sections[i], "\n"))
		switch {
		case !seen[i]:
			problem("the section %q is missing", heading)
		case text[i] == "":
			problem("the section %q is empty", heading)
		case i == refCitations && !citesPlace(sections[i]):
			problem("the section %q cites no place in the reference", heading)
		}
	}
	if open {
		problem("a code block is never closed, so the answer may be cut off")
	}
	return RefSections{
		Overview: text[0], Mechanisms: text[1], Adoptable: text[2], Pitfalls: text[3],
		Citations: text[refCitations], Coverage: text[5], Gaps: text[6],
		WellFormed: len(problems) == 0, Problems: problems,
	}
}

// sectionLevel is the highest level at which the answer has one of the seven
// headings: a deeper heading of the same name belongs to the text of a section.
func sectionLevel(lines []mdLine) int {
	level := mdBoldLevel
	for _, line := range lines {
		if line.code || line.fence {
			continue
		}
		if at, heading := mdHeading(line.text); at > 0 && refSection(heading) >= 0 {
			level = min(level, at)
		}
	}
	return level
}

// refSection is the index of the section that a heading names, -1 for none.
func refSection(heading string) int {
	key := mdKey(heading)
	for i, name := range refHeadings {
		if key == mdKey(name) {
			return i
		}
	}
	return -1
}

// citesPlace tells whether any line cites a file that can be looked up.
func citesPlace(lines []string) bool {
	for _, line := range lines {
		text, _ := mdItem(line)
		for _, e := range evidenceOf(text) {
			if e.supports() {
				return true
			}
		}
	}
	return false
}
