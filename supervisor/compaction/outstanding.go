package compaction

import (
	"slices"
	"strings"
)

const (
	troubleWindow = 20    // blocks at the end in which trouble counts
	troubleText   = 4_096 // bytes of each, from its end
	maxTrouble    = 5
	legacyWindow  = 260
)

var troubleWords = pattern(`(?i)\b(?:errors?|fail(?:s|ed|ing|ures?)?|exceptions?|panic(?:s|ked)?|block(?:ed|ers?|ing)|cannot|can't|unable|broken|crash(?:es|ed)?|` +
	`timed? ?out|denied|not found|missing|unresolved|stuck|regressions?|conflicts?|todo|fixme)\b|错误|失败|异常|阻塞|无法|报错|冲突`)

// trouble are the last lines that tell of failures and blockers.
func trouble(blocks []block) (lines []string) {
	for _, b := range slices.Backward(last(blocks, troubleWindow)) {
		if b.kind == toolCall || b.kind == bashRun {
			continue
		}
		text := b.text()
		if cut := len(text) - troubleText; cut > 0 {
			text = strings.ToValidUTF8(text[cut:], "")
		}
		mark := ""
		if b.kind == userText {
			mark = "[user] "
		}
		for _, line := range slices.Backward(strings.Split(text, "\n")) {
			line = flat(line)
			if length(line) < 15 || !troubleWords().MatchString(line) {
				continue
			}
			if line = mark + clipSentence(line, 150); slices.Contains(lines, line) {
				continue
			}
			if lines = append(lines, line); len(lines) == maxTrouble {
				slices.Reverse(lines)
				return lines
			}
		}
	}
	slices.Reverse(lines)
	return lines
}

// legacySummary is a line for an earlier summary that is none of ours.
func legacySummary(summary string) []string {
	var words []string
	for line := range strings.Lines(clean(summary)) {
		words = append(words, strings.TrimLeft(strings.TrimSpace(line), "#> "))
	}
	text := clip(flat(strings.Join(words, " ")), legacyWindow)
	if text == "" {
		return nil
	}
	return []string{"Previous compact summary: " + text}
}
