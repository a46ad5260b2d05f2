package compaction

import "strings"

type blockKind int

const (
	userText blockKind = iota
	assistantText
	toolCall
	toolResult
	bashRun // a command that the user ran
)

// block is a part of a message as the summary sees it. Thinking is none.
type block struct {
	kind    blockKind
	message int    // index of its message among those that are summarised
	name    string // of the tool
	args    value  // of the call
	failed  bool   // a result that is an error, a command that did not exit with 0
	content value  // text, or the content of a message or of a result
}

// readBlocks reads the blocks of the messages that are summarised.
func readBlocks(messages []message) (blocks []block) {
	for i, m := range messages {
		switch m.role {
		case roleUser:
			blocks = append(blocks, block{kind: userText, message: i, content: m.content})
		case roleAssistant:
			if m.content.isString() {
				blocks = append(blocks, block{kind: assistantText, message: i, content: m.content})
			}
			m.content.items(func(part value) {
				switch part.member("type").text() {
				case "text":
					blocks = append(blocks, block{kind: assistantText, message: i, content: part.member("text")})
				case "toolCall":
					blocks = append(blocks, block{
						kind: toolCall, message: i, name: flat(clean(part.member("name").text())), args: part.member("arguments"),
					})
				}
			})
		case roleResult:
			blocks = append(blocks, block{kind: toolResult, message: i, failed: m.body.member("isError").isTrue(), content: m.content})
		case roleBash:
			code := m.body.member("exitCode")
			failed := !code.isNull() && string(code) != "0"
			blocks = append(blocks, block{kind: bashRun, message: i, failed: failed, content: m.body.member("command")})
		}
	}
	return blocks
}

// text is the text of a block, cleaned. Images show as what they are.
func (b block) text() string {
	if b.content.isString() {
		return clean(b.content.text())
	}
	var parts []string
	b.content.items(func(part value) {
		switch part.member("type").text() {
		case "text":
			parts = append(parts, part.member("text").text())
		case "image":
			parts = append(parts, "[image: "+part.member("mimeType").text()+"]")
		}
	})
	return clean(strings.Join(parts, "\n"))
}

// argument is the first of the arguments of a call that is there and no empty text.
func (b block) argument(keys ...string) string {
	found := make([]string, len(keys))
	b.args.members(func(key []byte, member value) {
		for i, wanted := range keys {
			if string(key) == wanted {
				found[i] = member.text()
			}
		}
	})
	for _, text := range found {
		if text != "" {
			return clean(text)
		}
	}
	return ""
}

// path is the file or address that a call is about.
func (b block) path() string {
	return clip(flat(b.argument("path", "file", "filePath", "file_path", "filename", "url")), 200)
}

// command is what a shell call or a user's command runs.
func (b block) command() string {
	if b.kind == bashRun {
		return b.text()
	}
	return b.argument("command", "cmd", "script")
}

// use is what a tool does to a file or otherwise.
type use int

const (
	useOther use = iota
	useRead
	useEdit
	useWrite
	useShell
)

func (b block) use() use {
	switch strings.ToLower(b.name) {
	case "read", "read_file", "readfile", "view", "cat", "open_file":
		return useRead
	case "edit", "edit_file", "multiedit", "multi_edit", "apply_patch", "applypatch", "patch", "str_replace", "replace", "insert":
		return useEdit
	case "write", "write_file", "writefile", "create", "create_file":
		return useWrite
	case "bash", "shell", "sh", "exec", "run", "powershell", "terminal":
		return useShell
	}
	return useOther
}
