package compaction

import (
	"slices"
	"strings"
)

// sections are a summary in parts.
type sections struct {
	phaseGoals  []string // of the phase at hand, always first
	goals       []string
	files       files
	records     []string // what older versions recorded of reads
	commits     []string
	phaseFacts  []string // of the phase at hand, always first
	outstanding []string
	preferences []string
	brief       []string
}

// The headers, in order.
const (
	goalHeader        = "[Session Goal]"
	filesHeader       = "[Files And Changes]"
	commitsHeader     = "[Commits]"
	outstandingHeader = "[Outstanding Context]"
	preferencesHeader = "[User Preferences]"

	noItems   = "- (none)"
	separator = "---"
)

var headers = []string{goalHeader, filesHeader, commitsHeader, outstandingHeader, preferencesHeader}

// What of each section is kept when summaries are merged.
const (
	mergedItems       = 8
	mergedPreferences = 15
)

// compile makes the sections of the messages that are summarised.
func compile(r Request, messages []message, compactions []entry, g gauge) sections {
	blocks := readBlocks(messages)
	f := readFiles(r.fileOps, blocks)
	goals := goals(blocks)
	return sections{
		phaseGoals: r.Phase.goal(), goals: goals,
		files: f, records: legacyReads(compactions),
		commits:    commits(blocks),
		phaseFacts: r.Phase.outstanding(blocks), outstanding: append(hardFloors(compactions), trouble(blocks)...),
		preferences: preferences(blocks, goals),
		brief:       brief(chooseParts(blocks, f, g)),
	}
}

// parseSections reads a summary of ours back; false if it is somebody else's.
func parseSections(summary string) (s sections, ours bool) {
	items := map[string][]string{}
	header := ""
	rest := clean(summary)
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimRight(line, " ")
		if line == separator {
			break
		}
		if slices.Contains(headers, line) {
			header, ours = line, true
		} else if item, ok := strings.CutPrefix(line, "- "); ok && header != "" && line != noItems && !isPhaseLine(item) {
			items[header] = append(items[header], item)
		}
	}
	s.goals, s.commits = items[goalHeader], items[commitsHeader]
	s.outstanding, s.preferences = items[outstandingHeader], items[preferencesHeader]
	s.files, s.records = parseFiles(items[filesHeader])
	if rest = strings.Trim(rest, "\n"); rest != "" {
		for line := range strings.SplitSeq(rest, "\n") {
			s.brief = append(s.brief, wrap(line)...)
		}
	}
	return s, ours
}

// after merges an earlier summary into this one.
func (s sections) after(earlier sections) sections {
	join := func(a, b []string, most int) []string { return last(unique(slices.Concat(a, b)), most) }
	s.goals = join(earlier.goals, s.goals, mergedItems)
	s.files = earlier.files.merge(s.files)
	s.records = join(earlier.records, s.records, legacyRecords)
	s.commits = join(earlier.commits, s.commits, mergedItems)
	s.outstanding = join(earlier.outstanding, s.outstanding, mergedItems)
	s.preferences = join(earlier.preferences, s.preferences, mergedPreferences)
	if len(earlier.brief) > 0 && len(s.brief) > 0 {
		s.brief = slices.Concat(earlier.brief, []string{""}, s.brief)
	} else {
		s.brief = append(earlier.brief, s.brief...)
	}
	return s
}

// pageChars are what a summary may always have. What it replaces may be less, and
// the frame with the facts of the phase has to have room.
const pageChars = 2048

// text is the summary with at most limit characters, or pageChars where that is
// more. First the oldest lines of the brief give way, then items of the sections.
func (s sections) text(limit int) string {
	limit = max(limit, pageChars)
	items := mergedPreferences + 1 // more than any section has
	head := s.head(items)
	for length(head) > limit && items > 0 {
		items /= 2
		head = s.head(items)
	}
	room := limit - length(head)
	lines := newestLines(s.brief, briefLines)
	for len(lines) > 0 {
		tail := "\n\n" + separator + "\n\n" + strings.Join(lines, "\n")
		if length(tail) <= room {
			return head + tail
		}
		lines = newestLines(lines, len(lines)-1)
	}
	return head
}

// head is the five sections with at most so many items each, those of the phase not
// counted.
func (s sections) head(items int) string {
	bodies := [][]string{
		slices.Concat(s.phaseGoals, last(s.goals, items)),
		slices.Concat(s.files.lines(min(items, filesShown)), last(s.records, items)),
		last(s.commits, items),
		slices.Concat(s.phaseFacts, last(s.outstanding, items)),
		last(s.preferences, items),
	}
	var b strings.Builder
	for i, header := range headers {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(header)
		if len(bodies[i]) == 0 {
			b.WriteString("\n" + noItems)
		}
		for _, item := range bodies[i] {
			b.WriteString("\n- " + item)
		}
	}
	return b.String()
}
