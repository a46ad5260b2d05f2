package actors

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// MergedFinding is what one or several reviewers of a round report as the same fault. The
// finding itself is the most severe of them, with the affected ids and the evidence of all.
type MergedFinding struct {
	Finding
	// Agreement counts the reviewers who report it.
	Agreement int `json:"agreement"`
	// Sources are the findings behind it, in the order of the lanes.
	Sources []FindingSource `json:"sources"`
}

// FindingSource names a finding of a reviewer.
type FindingSource struct {
	LaneID string `json:"laneId"`
	ID     string `json:"id"`
}

// LaneFindings are the findings of one reviewer.
type LaneFindings struct {
	LaneID   string
	Findings []Finding
}

// Consolidate merges the findings of the reviewers of a round, each of which ends in
// exactly one of the results. Two are the same fault when they affect the same id of the
// plan and rest on the same place; those of one reviewer are always different. The worst
// come first, among them those on which most agree. The order of the lanes makes no
// difference.
func Consolidate(lanes []LaneFindings) []MergedFinding {
	lanes = slices.SortedStableFunc(slices.Values(lanes), func(a, b LaneFindings) int { return strings.Compare(a.LaneID, b.LaneID) })
	var faults []*fault
	for _, lane := range lanes {
		for _, f := range lane.Findings {
			at := slices.IndexFunc(faults, func(known *fault) bool { return known.last() != lane.LaneID && known.has(f) })
			if at < 0 {
				at = len(faults)
				faults = append(faults, &fault{})
			}
			faults[at].add(lane.LaneID, f)
		}
	}
	merged := make([]MergedFinding, len(faults))
	for i, known := range faults {
		merged[i] = known.merged()
	}
	slices.SortStableFunc(merged, func(a, b MergedFinding) int {
		return cmp.Or(cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)), cmp.Compare(b.Agreement, a.Agreement))
	})
	return merged
}

// fault is what findings of different reviewers tell of.
type fault struct {
	findings []Finding
	sources  []FindingSource
}

func (t *fault) last() string { return t.sources[len(t.sources)-1].LaneID }

// has tells whether a finding is about this fault.
func (t *fault) has(f Finding) bool {
	return slices.ContainsFunc(t.findings, func(known Finding) bool {
		return slices.ContainsFunc(f.Affects, func(id string) bool { return slices.Contains(known.Affects, id) }) &&
			slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return slices.ContainsFunc(known.Evidence, e.samePlace) })
	})
}

func (t *fault) add(laneID string, f Finding) {
	t.findings = append(t.findings, f)
	t.sources = append(t.sources, FindingSource{laneID, f.ID})
}

// merged is the first of the most severe findings, with what all of them rest on.
func (t *fault) merged() MergedFinding {
	m := MergedFinding{
		Finding: slices.MinFunc(t.findings, func(a, b Finding) int {
			return cmp.Compare(severityRank(a.Severity), severityRank(b.Severity))
		}),
		Agreement: len(t.sources), Sources: t.sources,
	}
	m.Affects, m.Evidence = []string{}, []Evidence{}
	for _, f := range t.findings {
		for _, id := range f.Affects {
			if !slices.Contains(m.Affects, id) {
				m.Affects = append(m.Affects, id)
			}
		}
		for _, e := range f.Evidence {
			if !slices.ContainsFunc(m.Evidence, e.samePlace) {
				m.Evidence = append(m.Evidence, e)
			}
		}
	}
	return m
}

// severityRank orders severities, the worst first and unknown ones last.
func severityRank(severity string) int {
	if rank := slices.Index([]string{"high", "medium", "low"}, severity); rank >= 0 {
		return rank
	}
	return 3
}

// nearLines is how far apart two reviewers may cite the same place of a file.
const nearLines = 5

// samePlace tells whether two pieces of evidence cite one place: lines of a file that are
// close together, or the same words in it. What names no file is compared by its words.
func (e Evidence) samePlace(other Evidence) bool {
	if citedPath(e.Path) != citedPath(other.Path) {
		return false
	}
	if e.Line > 0 && other.Line > 0 {
		return max(e.Line, other.Line)-min(e.Line, other.Line) <= nearLines
	}
	words, others := citedWords(e), citedWords(other)
	return words != "" && words == others || e.Path != "" && words == "" && others == ""
}

func citedPath(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(strings.ReplaceAll(p, "\\", "/"))
}

// citedWords are what is quoted; without a file, all that is said.
func citedWords(e Evidence) string {
	words := e.Quote
	if words == "" && e.Path == "" {
		words = e.Raw
	}
	return strings.Join(strings.Fields(strings.ToLower(words)), " ")
}
