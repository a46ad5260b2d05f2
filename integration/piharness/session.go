package piharness

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"pilothouse/integration/scriptedmodel"
)

// Session is a Pi that is driven over its RPC protocol, as an editor would.
type Session struct {
	t       testing.TB
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  Buffer // of the process
	reading sync.WaitGroup
	ended   bool
	next    int // id of the next command
	cursor  int // the first event that Await has not passed

	mu      sync.Mutex
	events  []Value
	over    bool
	changed chan struct{} // closed and replaced with each event
}

// Open starts Pi in a directory of the scene; it keeps no session unless the arguments
// say so. It is killed at the end of the test, if it has not ended before.
func (s *Scene) Open(dir string, args ...string) *Session {
	s.t.Helper()
	pi := NewPi(s.t)
	if len(args) == 0 {
		args = []string{"--no-session"}
	}
	p := &Session{t: s.t, cmd: exec.Command(pi[0], append(append(pi[1:len(pi):len(pi)], "--mode", "rpc"), args...)...), changed: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, s.Env, &p.stderr
	p.cmd.WaitDelay = Patience // a survivor may hold its standard error
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p.reading.Go(func() { p.read(stdout) })
	s.t.Cleanup(func() {
		if !p.ended {
			p.Kill()
		}
	})
	return p
}

func (p *Session) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		p.mu.Lock()
		if line != "" {
			p.events = append(p.events, Parse([]byte(line)))
		}
		p.over = err != nil
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Kill ends Pi as a crash would.
func (p *Session) Kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill() // it may have ended
	p.reading.Wait()
	_ = p.cmd.Wait() // killed, or ended by itself
	p.ended = true
}

// Close ends Pi in the orderly way.
func (p *Session) Close() {
	p.t.Helper()
	if err := p.stdin.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.reading.Wait()
	err := p.cmd.Wait()
	p.ended = true
	if err != nil {
		p.t.Errorf("pi ended with %v:\n%s", err, p.stderr.String())
	}
}

// Send gives Pi a command and returns its id.
func (p *Session) Send(command map[string]any) string {
	p.t.Helper()
	if command["id"] == nil {
		p.next++
		command["id"] = fmt.Sprint(p.next)
	}
	line, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		p.t.Fatalf("write to pi: %v; stderr:\n%s\nevents:\n%s", err, p.stderr.String(), p.tail())
	}
	return fmt.Sprint(command["id"])
}

// Ask gives Pi a command and returns the data of its response.
func (p *Session) Ask(command map[string]any) Value {
	p.t.Helper()
	id := p.Send(command)
	response := p.Find(func(e Value) bool { return e.At("type").Text() == "response" && e.At("id").Text() == id })
	if !response.At("success").Truth() {
		p.t.Fatalf("pi refuses %v: %s", command, response)
	}
	return response.At("data")
}

// Prompt types a message, or a slash command, whose answers may be scripted.
func (p *Session) Prompt(text string, steps ...scriptedmodel.Step) {
	p.t.Helper()
	if len(steps) > 0 {
		text += " " + scriptedmodel.Script(steps...)
	}
	p.Ask(map[string]any{"type": "prompt", "message": text})
}

// Await returns the next event of a type that satisfies the conditions, and passes over
// those before it.
func (p *Session) Await(kind string, conditions ...func(Value) bool) Value {
	p.t.Helper()
	event, index := p.search(p.cursor, func(e Value) bool {
		if e.At("type").Text() != kind {
			return false
		}
		for _, holds := range conditions {
			if !holds(e) {
				return false
			}
		}
		return true
	})
	p.cursor = index + 1
	return event
}

// Find returns an event wherever it is, and waits for it.
func (p *Session) Find(match func(Value) bool) Value {
	p.t.Helper()
	event, _ := p.search(0, match)
	return event
}

func (p *Session) search(from int, match func(Value) bool) (Value, int) {
	p.t.Helper()
	deadline := time.After(Patience)
	for {
		p.mu.Lock()
		events, over, changed := p.events, p.over, p.changed
		p.mu.Unlock()
		for ; from < len(events); from++ {
			if match(events[from]) {
				return events[from], from
			}
			if e := events[from]; e.At("type").Text() == "extension_error" {
				p.t.Fatalf("an extension has failed: %s", e)
			}
		}
		why := "it takes too long"
		select {
		case <-changed:
			if !over {
				continue
			}
			why = "pi has ended"
		case <-deadline:
		}
		p.t.Fatalf("an event does not come: %s; stderr:\n%s\nevents:\n%s", why, p.stderr.String(), p.tail())
	}
}

// Seen lists the events that have come and match.
func (p *Session) Seen(match func(Value) bool) []Value {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []Value
	for _, e := range p.events {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

func (p *Session) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, e := range p.events[max(0, len(p.events)-30):] {
		lines = append(lines, fmt.Sprintf("%.600s", e.String()))
	}
	return strings.Join(lines, "\n")
}

// ToolEnd waits for the end of a call of a tool.
func (p *Session) ToolEnd(tool string) Value {
	p.t.Helper()
	return p.Await("tool_execution_end", func(e Value) bool { return e.At("toolName").Text() == tool })
}

// Dialog waits for a question to the user: select, confirm, input or editor.
func (p *Session) Dialog(method string) Value {
	p.t.Helper()
	return p.Await("extension_ui_request", func(e Value) bool { return e.At("method").Text() == method })
}

// Dialogs are the questions that the user was asked so far.
func (p *Session) Dialogs() []Value {
	return p.Seen(func(e Value) bool {
		switch e.At("method").Text() {
		case "select", "confirm", "input", "editor":
			return e.At("type").Text() == "extension_ui_request"
		}
		return false
	})
}

// Reply answers a dialog; a nil value dismisses it.
func (p *Session) Reply(dialog Value, value any) {
	p.t.Helper()
	response := map[string]any{"type": "extension_ui_response", "id": dialog.At("id").Text()}
	switch v := value.(type) {
	case nil:
		response["cancelled"] = true
	case bool:
		response["confirmed"] = v
	default:
		response["value"] = v
	}
	p.Send(response)
}

// Notice waits for a notice that says words.
func (p *Session) Notice(words string) Value {
	p.t.Helper()
	return p.Await("extension_ui_request", func(e Value) bool {
		return e.At("method").Text() == "notify" && strings.Contains(e.At("message").Text(), words)
	})
}

// Settled waits until the agent rests.
func (p *Session) Settled() Value {
	p.t.Helper()
	return p.Await("agent_settled")
}
