package pijson

import "encoding/json"

// Response is Pi's answer to a command in RPC mode. One to a command that could not be
// read has no id.
type Response struct {
	ID      string          `json:"id"`
	Command string          `json:"command"`
	Success bool            `json:"success"`
	Error   string          `json:"error"`
	Data    json.RawMessage `json:"data"`
}

// Dialog is what an extension wants of the user in RPC mode.
type Dialog struct {
	ID     string `json:"id"`
	Method string `json:"method"` // select, confirm, input, editor, notify, setStatus, …
	Title  string `json:"title"`
	// Message is the text of a confirm and of a notify.
	Message string `json:"message"`
	// Options are those of a select.
	Options []string `json:"options"`
}

// NeedsAnswer tells whether the extension waits for an answer.
func (d Dialog) NeedsAnswer() bool {
	switch d.Method {
	case "select", "confirm", "input", "editor":
		return true
	}
	return false
}

// decodeResponse and decodeDialog read a line that is known to be JSON; a key of an
// unexpected type reads as absent.
func decodeResponse(line []byte) *Response {
	r := &Response{}
	_ = json.Unmarshal(line, r)
	return r
}

func decodeDialog(line []byte) *Dialog {
	d := &Dialog{}
	_ = json.Unmarshal(line, d)
	return d
}
