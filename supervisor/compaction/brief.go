package compaction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	userClip      = 256
	assistantClip = 600
	commandClip   = 240
	briefLines    = 120

	userHeading      = "[user]"
	assistantHeading = "[assistant]"
)

var (
	fillers = pattern(`(?i)\b(?:just|basically|actually|simply|really|certainly|of course|absolutely|definitely|perfect|great|alright|okay|let me|i(?:'ll| will) now)\b[,!]?[ \t]*`)
	omitted = pattern(`^\(… (\d+) older lines omitted\)$`)
	setting = pattern(`^(?:cd|export|set|source|\.|unset|umask|ulimit)\b[^;&|]*$`)
)

// render is a block as it stands in the brief, without its heading; "" for nothing.
func render(b block) string {
	text := ""
	switch b.kind {
	case userText:
		text = clip(flat(b.text()), userClip)
	case assistantText:
		text = b.text()
		text = clip(flat(fillers().ReplaceAllString(text[:offset(text, 4*assistantClip)], "")), assistantClip)
	case toolCall:
		if text = "* " + clip(b.name, 60); b.name == "" {
			return ""
		}
		if about := b.about(); about != "" {
			text += ` "` + about + `"`
		}
	case bashRun:
		if text = `* ! "` + compressed(b.command()) + `"`; b.failed {
			text += " failed"
		}
	}
	if text == "" {
		return ""
	}
	return text + " (#" + strconv.Itoa(b.message) + ")"
}

// about is what a call is about, on one line.
func (b block) about() string {
	if b.use() == useShell {
		return compressed(b.command())
	}
	if path := b.path(); path != "" {
		return path
	}
	return clip(flat(b.argument("command", "query", "pattern", "name", "action", "question", "prompt", "text")), commandClip)
}

// compressed is a command without the lines that only prepare it.
func compressed(command string) string {
	var kept []string
	for line := range strings.Lines(command) {
		for step := range strings.SplitSeq(line, " && ") {
			if step = flat(step); step != "" && !setting().MatchString(step) {
				kept = append(kept, step)
			}
		}
	}
	if kept == nil {
		return clip(flat(command), commandClip)
	}
	return clip(strings.Join(kept, " && "), commandClip)
}

func heading(b block) string {
	if b.kind == userText || b.kind == bashRun {
		return userHeading
	}
	return assistantHeading
}

// brief is the transcript of the chosen blocks as lines, with a heading where the
// speaker changes.
func brief(blocks []block) (lines []string) {
	speaker := ""
	for _, b := range blocks {
		if h := heading(b); h != speaker {
			if speaker = h; lines != nil {
				lines = append(lines, "")
			}
			lines = append(lines, h)
		}
		lines = append(lines, wrap(render(b))...)
	}
	return lines
}

// newestLines bounds a brief to its last lines; a note at the beginning counts those
// that are gone, now and before.
func newestLines(lines []string, most int) []string {
	gone := 0
	kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		match := omitted().FindStringSubmatch(line)
		if match == nil {
			return false
		}
		n, err := strconv.Atoi(match[1])
		if err == nil && gone+n >= gone {
			gone += n
		}
		return true
	})
	switch {
	case len(kept) <= most && gone == 0:
		return kept
	case most <= 1: // a note alone tells nothing
		return nil
	}
	over := max(len(kept)-(most-1), 0)
	gone, kept = gone+over, kept[over:]
	for len(kept) > 0 && kept[0] == "" {
		kept = kept[1:]
	}
	return slices.Concat([]string{fmt.Sprintf("(… %d older lines omitted)", gone)}, kept)
}
