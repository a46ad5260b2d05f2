package compaction

import (
	"slices"
	"strings"
)

const (
	maxPreferences   = 10
	preferenceWindow = 8_192 // bytes of a message, from its beginning: what is longer was pasted
)

var preferenceWords = pattern(`(?i)\b(?:i(?:'d| would)? prefer|prefer(?:ably)?|(?:do not|don'?t) (?:want|use|add|touch|change|ever|do)|always|never|please|` +
	`avoid|make sure|must not)\s+\S|\bstyle:|偏好|不要|总是|始终|从不|永远|务必|请(?:用|使用|保持|避免|不要)`)

// preferences are what the user wants to hold for all work: at most one line of each
// message that is no question and not a goal already.
func preferences(blocks []block, goals []string) (lines []string) {
	for _, b := range blocks {
		if b.kind != userText {
			continue
		}
		text := b.text()
		for line := range strings.Lines(strings.ToValidUTF8(text[:min(len(text), preferenceWindow)], "")) {
			line = flat(listMark().ReplaceAllString(line, ""))
			if n := length(line); n < 5 || n > 200 || strings.HasSuffix(line, "?") || strings.HasSuffix(line, "？") {
				continue
			}
			if preferenceWords().MatchString(line) && !slices.Contains(goals, line) && !slices.Contains(goals, scopeMark+line) {
				lines = append(lines, line)
				break
			}
		}
	}
	return last(unique(lines), maxPreferences)
}
