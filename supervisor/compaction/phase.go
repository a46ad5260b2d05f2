package compaction

import "strings"

const (
	phaseVCs   = 12
	phaseItems = 16
)

var currentMark = pattern(`\[(I-\d+):current\]`)

// The beginnings of lines that tell the phase. Those of an earlier summary are
// dropped: they were true then.
const (
	executeLine  = "Execute accepted plan "
	continueLine = "Continue planning run "
	currentLine  = "Current implementation item: "
	vcLine       = "Remaining verification: "
	itemLine     = "Implementation items: "
	planLine     = "Latest plan: "
	artifactLine = "Artifact directory: "
)

func isPhaseLine(line string) bool {
	for _, begin := range []string{executeLine, continueLine, currentLine, vcLine, itemLine, planLine, artifactLine} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

// goal is the line of the phase among the goals.
func (p *Phase) goal() []string {
	switch {
	case p == nil:
		return nil
	case p.Kind == Execution:
		return told(executeLine, p.PlanPath)
	}
	return told(continueLine, p.RunID)
}

// outstanding are the lines of the phase among what is outstanding.
func (p *Phase) outstanding(blocks []block) (lines []string) {
	if p == nil {
		return nil
	}
	if p.Kind == Execution {
		lines = append(lines, told(currentLine, p.CurrentI)...)
		lines = append(lines, told(vcLine, counted(first(p.RemainingVCs, phaseVCs), len(p.RemainingVCs)-phaseVCs))...)
		return append(lines, told(itemLine, counted(first(p.ImplIDs, phaseItems), len(p.ImplIDs)-phaseItems))...)
	}
	lines = append(lines, told(planLine, p.PlanPath)...)
	lines = append(lines, told(artifactLine, p.ArtifactDir)...)
	return append(lines, told(currentLine, lastCurrent(blocks))...)
}

// told is a line with a fact, none without the fact.
func told(begin, fact string) []string {
	if fact = flat(clean(fact)); fact == "" {
		return nil
	}
	return []string{clip(begin+fact, lineLimit)}
}

// lastCurrent is the item that the assistant has last marked as its current one.
func lastCurrent(blocks []block) string {
	for i := len(blocks) - 1; i >= 0; i-- {
		if blocks[i].kind != assistantText {
			continue
		}
		if marks := currentMark().FindAllStringSubmatch(blocks[i].text(), -1); marks != nil {
			return marks[len(marks)-1][1]
		}
	}
	return ""
}
