package compaction

import (
	"strings"
)

const (
	maxGoals    = 6
	scopeMark   = "[Scope change] "
	maxScope    = 2
	scopeWindow = 200 // characters at the beginning of a message in which a change of scope shows
)

var (
	listMark  = pattern(`^\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)\s+`)
	smallTalk = pattern(`(?i)^(?:hi|hello|hey|thanks?|thank you|ok(?:ay)?|yes|no|sure|great|perfect|nice|cool|continue|go on|go ahead|proceed|please continue|` +
		`good (?:morning|evening|job|work)|sounds good|looks good|lgtm|你好|谢谢|好的|继续|可以)[\s.!,。！，~]*$`)
	notProse   = pattern("^(?:```|~~~|<[/a-zA-Z!]|https?://|[{}\\[\\]();=]|\\$ |import |from \\S+ import |const |let |var |func |def |class |return |#include)|[\u2500-\u259f]|[;{}]$")
	barePath   = pattern(`^@?(?:~|\.{1,2})?/?[\w.@-]+(?:/[\w.@-]+)+/?$`)
	scopeWords = pattern(`(?i)\b(?:instead|actually|change of plan|scratch that|forget (?:that|it|about)|never ?mind|switch to|let'?s (?:now|switch|move|focus)|` +
		`new (?:task|goal|plan|requirement)|now (?:let'?s|we|i want|please)|rather than|on second thought|different (?:approach|direction))\b|改为|改成|换成|另外|接下来|现在(?:请|来|我们)`)
	actionVerb = pattern(`(?i)^(?:please |now |then |also |and |can you |could you |let'?s )*(?:add|allow|build|change|check|clean|convert|create|debug|delete|deploy|design|` +
		`document|drop|enable|extend|extract|finish|fix|generate|handle|implement|improve|integrate|investigate|make|merge|migrate|move|optimi[sz]e|port|refactor|` +
		`release|remove|rename|replace|review|rewrite|set up|simplify|split|support|test|update|upgrade|use|verify|write)\b|^(?:请|帮我)?(?:添加|增加|实现|修复|修改|重构|删除|编写|创建|更新|测试|优化)`)
)

// goals are what the user wants: the first message that says something, and the last
// change of it.
func goals(blocks []block) []string {
	var goals, scope []string
	for _, b := range blocks {
		if b.kind != userText {
			continue
		}
		lines := usableLines(b.text())
		switch {
		case len(lines) == 0:
		case goals == nil:
			goals = first(lines, maxGoals)
		case changesScope(b, lines[0]):
			scope = nil
			for _, line := range first(lines, maxScope) {
				scope = append(scope, scopeMark+line)
			}
		}
	}
	return unique(append(goals, scope...))
}

func changesScope(b block, line string) bool {
	text := b.text()
	return scopeWords().MatchString(text[:offset(text, scopeWindow)]) || length(line) > 15 && actionVerb().MatchString(line)
}

// usableLines are the lines of a text that read like a wish, without list marks.
func usableLines(text string) (lines []string) {
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		line = flat(listMark().ReplaceAllString(line, ""))
		if n := length(line); n < 6 || n > 200 || smallTalk().MatchString(line) || notProse().MatchString(line) || barePath().MatchString(line) {
			continue
		}
		if lines = append(lines, line); len(lines) == maxGoals {
			break
		}
	}
	return lines
}
