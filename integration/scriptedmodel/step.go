package scriptedmodel

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Step is what the server does for one model call. The zero Step answers with
// an empty message and finish reason "stop". Every field is also a key of the
// `<<SIM …>>` notation, under the name in its json tag.
type Step struct {
	// Text is the answer; Chunks is the number of stream chunks it is cut into
	// (at least 1, at most one a character).
	Text   string `json:"text,omitempty"`
	Chunks int    `json:"chunks,omitempty"`
	// TextBytes replaces Text by Unit repeated up to that many characters.
	TextBytes int    `json:"textBytes,omitempty"`
	Unit      string `json:"unit,omitempty"`
	// Thinking is sent before the text as reasoning_content.
	Thinking       string `json:"thinking,omitempty"`
	ThinkingChunks int    `json:"thinkingChunks,omitempty"`
	// BeforeMs passes before anything is answered, DelayMs after each chunk of
	// text or thinking. Milliseconds.
	BeforeMs int `json:"beforeMs,omitempty"`
	DelayMs  int `json:"delayMs,omitempty"`

	// Tool with Args calls one tool, Tools calls several and wins over Tool.
	// The arguments are cut into ArgChunks chunks (default 2).
	Tool      string     `json:"tool,omitempty"`
	Args      any        `json:"args,omitempty"`
	Tools     []ToolCall `json:"tools,omitempty"`
	ArgChunks int        `json:"argChunks,omitempty"`

	// Finish replaces the finish reason ("length", "content_filter", …).
	Finish string `json:"finish,omitempty"`
	// Usage replaces the computed usage object; Cached is the number of cached
	// prompt tokens in the computed one.
	Usage  map[string]any `json:"usage,omitempty"`
	Cached int            `json:"cached,omitempty"`
	// NoUsage and NoDone leave out the usage chunk and the [DONE] mark.
	// NoFinish ends the stream cleanly where the finish reason was due.
	NoUsage  bool `json:"noUsage,omitempty"`
	NoDone   bool `json:"noDone,omitempty"`
	NoFinish bool `json:"noFinish,omitempty"`
	// ResponseModel is reported in place of the requested model.
	ResponseModel string `json:"responseModel,omitempty"`

	// Status answers with that HTTP status and a JSON error of Message and
	// Code, or with Body as it is. RetryAfter is seconds or an HTTP date.
	Status     int               `json:"status,omitempty"`
	RetryAfter any               `json:"retryAfter,omitempty"`
	Message    string            `json:"message,omitempty"`
	Code       string            `json:"code,omitempty"`
	Body       string            `json:"body,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`

	// Times limits the step to its first attempts: later requests for the same
	// step of the same conversation get Then (default: a text that says so).
	Times int   `json:"times,omitempty"`
	Then  *Step `json:"then,omitempty"`

	// Stall goes silent and keeps the connection open until the client leaves.
	Stall Stall `json:"stall,omitempty"`
	// Reset "headers" resets the TCP connection before any response byte.
	Reset string `json:"reset,omitempty"`
	// DropAfter cuts the connection, EndAfter ends the stream cleanly but
	// unfinished, after that many chunks of the text or of the thinking.
	DropAfter int `json:"dropAfter,omitempty"`
	EndAfter  int `json:"endAfter,omitempty"`
	// Malformed puts "json", "html", "utf8" or "errorevent" rubbish into the
	// stream after the text; RawBase64 puts in these very bytes.
	Malformed string `json:"malformed,omitempty"`
	RawBase64 string `json:"rawBase64,omitempty"`
	// SplitBytes writes text chunks in pieces of that many bytes, so that
	// characters are torn between packets.
	SplitBytes int `json:"splitBytes,omitempty"`

	// LogSystem and LogMessages add the system text and the whole conversation
	// to the request's line in the log.
	LogSystem   bool `json:"logSystem,omitempty"`
	LogMessages bool `json:"logMessages,omitempty"`
}

// ToolCall is one call in an answer. A string in Args is sent as it is, so that
// arguments can be broken JSON; anything else is sent as its JSON.
type ToolCall struct {
	Name string `json:"name"`
	Args any    `json:"args,omitempty"`
}

// Stall says when a step goes silent: never (0), after that many chunks
// (positive), or at one of the two named places. In JSON it is a number,
// "headers" or true.
type Stall int

const (
	// StallHeaders never sends even the response headers.
	StallHeaders Stall = -1
	// StallStart sends the headers and the empty first chunk.
	StallStart Stall = -2
)

// MarshalJSON writes the notation that UnmarshalJSON reads.
func (s Stall) MarshalJSON() ([]byte, error) {
	switch s {
	case StallHeaders:
		return []byte(`"headers"`), nil
	case StallStart:
		return []byte(`true`), nil
	}
	return json.Marshal(int(s))
}

// UnmarshalJSON reads a count of chunks, "headers", true or false.
func (s *Stall) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"headers"`:
		*s = StallHeaders
		return nil
	case "true":
		*s = StallStart
		return nil
	case "false":
		*s = 0
		return nil
	}
	var n int
	if err := json.Unmarshal(data, &n); err != nil || n < 0 {
		return fmt.Errorf(`stall must be a number of chunks, "headers" or true, not %s`, data)
	}
	*s = Stall(n)
	return nil
}

// Script renders steps in the notation that a user message carries, for prompts
// written in Go. It is the inverse of what the server reads.
func Script(steps ...Step) string {
	data, err := json.Marshal(steps)
	if err != nil {
		// Only a value in Args or Usage that has no JSON form gets here: a
		// mistake in the caller's source, not a condition of the run.
		panic(fmt.Sprintf("scriptedmodel: step has no JSON form: %v", err))
	}
	return scriptOpen + " " + string(data) + scriptClose
}

const (
	scriptOpen  = "<<SIM"
	scriptClose = ">>"
)

var errNoScript = errors.New("no script")

// parseScript reads the steps out of a message. errNoScript: the message holds
// none. A script that cannot be read is an error, never a silent default: a
// test with a typo has to fail.
func parseScript(message string) ([]Step, error) {
	_, rest, found := strings.Cut(message, scriptOpen)
	if !found || !strings.Contains(rest, scriptClose) {
		return nil, errNoScript
	}
	// The value's own end is looked for, not the first ">>": a shell command in
	// a step may hold one.
	dec := json.NewDecoder(strings.NewReader(rest))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf("script is not JSON: %w", err)
	}
	if tail := strings.TrimLeft(rest[dec.InputOffset():], " \t\r\n"); !strings.HasPrefix(tail, scriptClose) {
		return nil, fmt.Errorf("script must end with %s after its JSON value", scriptClose)
	}
	if raw[0] != '[' {
		raw = bytes.Join([][]byte{[]byte("["), raw, []byte("]")}, nil)
	}
	steps, err := decodeSteps(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return steps, nil
}

func decodeSteps(r io.Reader) ([]Step, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber() // numbers in tool arguments arrive as they were written
	dec.DisallowUnknownFields()
	var steps []Step
	if err := dec.Decode(&steps); err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	return steps, checkSteps(steps)
}

func checkSteps(steps []Step) error {
	for i := range steps {
		if err := steps[i].check(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// check refuses values that the server would otherwise have to guess about.
func (s *Step) check() error {
	if s.Reset != "" && s.Reset != "headers" {
		return fmt.Errorf(`reset must be "headers", not %q`, s.Reset)
	}
	switch s.Malformed {
	case "", "json", "html", "utf8", "errorevent":
	default:
		return fmt.Errorf(`malformed must be "json", "html", "utf8" or "errorevent", not %q`, s.Malformed)
	}
	if _, err := base64.StdEncoding.DecodeString(s.RawBase64); err != nil {
		return fmt.Errorf("rawBase64: %w", err)
	}
	if s.Status != 0 && (s.Status < 200 || s.Status > 599) {
		return fmt.Errorf("status must be between 200 and 599, not %d", s.Status)
	}
	if s.Then != nil {
		return s.Then.check()
	}
	return nil
}
