package compaction

import "strings"

const maxCommits = 8

var (
	commitCommand = pattern(`\bgit\b[^\n;&|]*?\bcommit\b[^\n]*?\s(?:-[a-zA-Z]*m|--message)[\s=]*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')`)
	commitHash    = pattern(`\b[0-9a-f]{7,12}\b`)
)

// commits are the messages of git commits, with their hashes where a result tells.
func commits(blocks []block) (lines []string) {
	for i, b := range blocks {
		if b.kind != toolCall || b.use() != useShell {
			continue
		}
		command := b.command()
		if !strings.Contains(command, "commit") {
			continue
		}
		for _, match := range commitCommand().FindAllStringSubmatch(command, -1) {
			message := strings.TrimSpace(match[1] + match[2])
			line, _, _ := strings.Cut(message, "\n")
			if line = clip(flat(line), 200); line == "" {
				continue
			}
			if hash := hashIn(blocks[i+1:]); hash != "" {
				line = hash + " " + line
			}
			lines = append(lines, line)
		}
	}
	return last(unique(lines), maxCommits)
}

// hashIn finds a hash in a result among the next two blocks.
func hashIn(blocks []block) string {
	for _, b := range first(blocks, 2) {
		if b.kind == toolResult {
			text := b.text()
			if hash := commitHash().FindString(text[:offset(text, 2000)]); hash != "" {
				return hash
			}
		}
	}
	return ""
}
