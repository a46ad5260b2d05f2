package compaction

import (
	"slices"
	"strings"
)

// files are the paths that a session has touched, in the order of their first touch.
type files struct{ modified, created, read []string }

const (
	filesShown    = 10
	legacyRecords = 10
)

// readFiles collects from what Pi has seen and from the calls. What was modified does
// not count as created.
func readFiles(ops fileOps, blocks []block) files {
	f := files{modified: tidyPaths(ops.edited), created: tidyPaths(ops.written), read: tidyPaths(ops.read)}
	for _, b := range blocks {
		if b.kind != toolCall {
			continue
		}
		path := b.path()
		switch b.use() {
		case useRead:
			f.read = append(f.read, path)
		case useEdit, useWrite:
			f.modified = append(f.modified, path)
		}
	}
	f.modified, f.read = unique(f.modified), unique(f.read)
	f.created = without(unique(f.created), f.modified)
	return f
}

func tidyPaths(paths []string) []string {
	tidy := make([]string, len(paths))
	for i, path := range paths {
		tidy[i] = clip(flat(clean(path)), 200)
	}
	return tidy
}

func without(list, drop []string) (kept []string) {
	gone := map[string]bool{}
	for _, s := range drop {
		gone[s] = true
	}
	for _, s := range list {
		if !gone[s] {
			kept = append(kept, s)
		}
	}
	return kept
}

// fileGroups are the lines of the section, by the word at their beginning.
var fileGroups = []string{"Modified: ", "Created: ", "Read: "}

func (f files) groups() [][]string { return [][]string{f.modified, f.created, f.read} }

// lines are the lines of the section: the paths that came last, at most as many as are
// shown, and the number of the others.
func (f files) lines(shown int) (lines []string) {
	for i, paths := range f.groups() {
		if len(paths) > 0 {
			lines = append(lines, fileGroups[i]+counted(last(paths, shown), len(paths)-shown))
		}
	}
	return lines
}

// parseFiles reads lines back; what is no such line is left over.
func parseFiles(lines []string) (f files, rest []string) {
	lists := []*[]string{&f.modified, &f.created, &f.read}
	for _, line := range lines {
		group := slices.IndexFunc(fileGroups, func(word string) bool { return strings.HasPrefix(line, word) })
		if group < 0 || strings.Contains(line, legacySummaryMark) {
			rest = append(rest, line)
			continue
		}
		paths := strings.TrimPrefix(line, fileGroups[group])
		if i := strings.LastIndex(paths, " (+"); i >= 0 && strings.HasSuffix(paths, " more)") {
			paths = paths[:i]
		}
		*lists[group] = append(*lists[group], strings.Split(paths, ", ")...)
	}
	return f, rest
}

// merge puts what was touched later behind.
func (f files) merge(later files) files {
	m := files{
		modified: unique(append(slices.Clone(f.modified), later.modified...)),
		read:     unique(append(slices.Clone(f.read), later.read...)),
	}
	m.created = without(unique(append(slices.Clone(f.created), later.created...)), m.modified)
	return m
}

const legacySummaryMark = " Extracted information summary: "

// legacyReads are the read records that compactions of older versions left in their
// details, as lines; they are told but not written again.
func legacyReads(compactions []entry) (lines []string) {
	for _, e := range compactions {
		e.body.member("details").member("readRecords").items(func(record value) {
			path := flat(clean(record.member("path").text()))
			if path == "" {
				return
			}
			line := "Read: " + path
			if lineRange := flat(clean(record.member("range").text())); lineRange != "" {
				line += " line " + lineRange
			}
			if summary := flat(clean(record.member("summary").text())); summary != "" {
				line += legacySummaryMark + summary
			}
			lines = append(lines, clip(line, lineLimit))
		})
	}
	return last(unique(lines), legacyRecords)
}

// hardFloors are the reasons why compactions of older versions could not get small.
func hardFloors(compactions []entry) (lines []string) {
	for _, e := range compactions {
		if reason := flat(clean(e.body.member("details").member("metrics").member("hardFloorReason").text())); reason != "" {
			lines = append(lines, clip("Previous compaction hard floor: "+reason, lineLimit))
		}
	}
	return last(unique(lines), 5)
}
