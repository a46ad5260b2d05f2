package compaction

import "unicode/utf8"

// entry is one line of a session.
type entry struct {
	id, kind string
	body     value
}

func readEntry(v value) (e entry) {
	e.body = v
	v.members(func(key []byte, member value) {
		switch string(key) {
		case "id":
			e.id = member.text()
		case "type":
			e.kind = member.text()
		}
	})
	return e
}

type role string

const (
	roleUser      role = "user"
	roleAssistant role = "assistant"
	roleResult    role = "toolResult"
	roleBash      role = "bashExecution"
	roleCustom    role = "custom"
	roleBranch    role = "branchSummary"
)

// message is a message that the model sees.
type message struct {
	id      string // of its entry
	role    role
	content value
	body    value // the whole message
	chars   int   // what it takes of the context
	// callIDs are the tool calls that the model sees with an assistant message;
	// answers is the call that a result belongs to.
	callIDs []string
	answers string
	failed  bool // an answer that failed or was aborted, which Pi does not send
	// unique: no entry before it in the branch has its id, so that Pi finds it by it.
	unique bool
}

// imageChars is what an image takes of the context, as Pi reckons.
const imageChars = 4800

// readMessage reads the message of an entry. Entries without one for the model, and
// such of kinds that nobody knows yet, have none.
func readMessage(e entry) (message, bool) {
	m := message{id: e.id}
	switch e.kind {
	case "message":
		m.body = e.body.member("message")
	case "custom_message":
		m.body, m.role = e.body, roleCustom
	case "branch_summary":
		m.role = roleBranch
		return m, true
	default:
		return m, false
	}
	excluded := false // what a user ran out of the model's sight stays there
	m.body.members(func(key []byte, member value) {
		switch string(key) {
		case "role":
			if m.role == "" {
				m.role = role(member.text())
			}
		case "content":
			m.content = member
		case "toolCallId":
			m.answers = member.text()
		case "stopReason":
			reason := member.text()
			m.failed = reason == "error" || reason == "aborted"
		case "excludeFromContext":
			excluded = member.isTrue()
		}
	})
	switch m.role {
	case roleUser, roleAssistant, roleResult, roleBash, roleCustom:
	default:
		return m, false
	}
	m.readCalls()
	m.measure()
	return m, !excluded
}

func (m *message) readCalls() {
	m.callIDs = nil
	if m.role != roleAssistant || m.failed {
		return
	}
	m.content.items(func(block value) {
		if block.member("type").text() == "toolCall" {
			m.callIDs = append(m.callIDs, block.member("id").text())
		}
	})
}

// replaceContent is what a context_edit entry does (Pi: a content replaced for the
// model only).
func (m *message) replaceContent(content value) {
	m.content = content
	m.readCalls()
	m.measure()
}

func (m *message) measure() {
	switch m.role {
	case roleResult:
		m.chars = utf8.RuneCount(m.content)
	case roleBash:
		m.chars = m.body.member("command").chars() + m.body.member("output").chars()
	default:
		m.chars = contentChars(m.content)
	}
}

func contentChars(content value) int {
	if content.isString() {
		return content.chars()
	}
	chars := 0
	content.items(func(block value) {
		var kind string
		var text, thinking, name, args value
		block.members(func(key []byte, member value) {
			switch string(key) {
			case "type":
				kind = member.text()
			case "text":
				text = member
			case "thinking":
				thinking = member
			case "name":
				name = member
			case "arguments":
				args = member
			}
		})
		switch kind {
		case "text":
			chars += text.chars()
		case "thinking":
			chars += thinking.chars()
		case "toolCall":
			chars += name.chars() + utf8.RuneCount(args)
		case "image":
			chars += imageChars
		}
	})
	return chars
}
