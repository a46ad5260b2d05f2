package extension_test

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

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// session is a Pi that is driven over its RPC protocol, as an editor would.
type session struct {
	t       testing.TB
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  lockedBuffer
	reading sync.WaitGroup
	ended   bool
	next    int // id of the next command
	cursor  int // the first event that await has not passed

	mu      sync.Mutex
	events  []value
	over    bool
	changed chan struct{} // closed and replaced with each event
}

// open starts Pi in the workspace; it keeps no session unless the arguments say so.
func (s *scene) open(args ...string) *session {
	s.t.Helper()
	pi := piharness.NewPi(s.t)
	if len(args) == 0 {
		args = []string{"--no-session"}
	}
	words := append(append(pi[1:len(pi):len(pi)], "--mode", "rpc"), args...)
	p := &session{t: s.t, cmd: exec.Command(pi[0], words...), changed: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = s.dir, s.env, &p.stderr
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
			p.kill()
		}
	})
	return p
}

func (p *session) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		p.mu.Lock()
		if line != "" {
			p.events = append(p.events, parse([]byte(line)))
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

// kill ends Pi as a crash would.
func (p *session) kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill() // it may have ended
	p.reading.Wait()
	_ = p.cmd.Wait() // killed, or ended by itself
	p.ended = true
}

// close ends Pi in the orderly way.
func (p *session) close() {
	p.t.Helper()
	if err := p.stdin.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.reading.Wait()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("pi ended with %v:\n%s", err, p.stderr.String())
	}
	p.ended = true
}

// send gives Pi a command and returns its id.
func (p *session) send(command map[string]any) string {
	p.t.Helper()
	p.next++
	id := fmt.Sprint(p.next)
	if command["id"] == nil {
		command["id"] = id
	}
	line, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		p.t.Fatalf("write to pi: %v\n%s", err, p.stderr.String())
	}
	return id
}

// ask gives Pi a command and returns the data of its response.
func (p *session) ask(command map[string]any) value {
	p.t.Helper()
	id := p.send(command)
	response := p.find(func(e value) bool { return e.at("type").text() == "response" && e.at("id").text() == id })
	if !response.at("success").truth() {
		p.t.Fatalf("pi refuses %v: %s", command, response)
	}
	return response.at("data")
}

// prompt types a message whose answers are scripted.
func (p *session) prompt(text string, steps ...scriptedmodel.Step) {
	p.t.Helper()
	if len(steps) > 0 {
		text += " " + scriptedmodel.Script(steps...)
	}
	p.ask(map[string]any{"type": "prompt", "message": text})
}

// await returns the next event of a type that satisfies the condition, if there is one,
// and passes over those before it.
func (p *session) await(kind string, conditions ...func(value) bool) value {
	p.t.Helper()
	event, index := p.search(p.cursor, func(e value) bool {
		if e.at("type").text() != kind {
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

// find returns an event wherever it is.
func (p *session) find(match func(value) bool) value {
	p.t.Helper()
	event, _ := p.search(0, match)
	return event
}

func (p *session) search(from int, match func(value) bool) (value, int) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		events, over, changed := p.events, p.over, p.changed
		p.mu.Unlock()
		for ; from < len(events); from++ {
			if match(events[from]) {
				return events[from], from
			}
			if e := events[from]; e.at("type").text() == "extension_error" {
				p.t.Fatalf("an extension has failed: %s", e)
			}
		}
		why := ""
		select {
		case <-changed:
			if !over {
				continue
			}
			why = "pi has ended"
		case <-deadline:
			why = "it takes too long"
		}
		p.t.Fatalf("an event does not come: %s; stderr:\n%s\nevents:\n%s", why, p.stderr.String(), p.tail())
	}
}

// seen lists the events that have come and match.
func (p *session) seen(match func(value) bool) []value {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []value
	for _, e := range p.events {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

func (p *session) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, e := range p.events[max(0, len(p.events)-30):] {
		lines = append(lines, fmt.Sprintf("%.600s", e.String()))
	}
	return strings.Join(lines, "\n")
}

// toolEnd waits for the end of a call of a tool.
func (p *session) toolEnd(tool string) value {
	p.t.Helper()
	return p.await("tool_execution_end", func(e value) bool { return e.at("toolName").text() == tool })
}

// dialog waits for a question to the user.
func (p *session) dialog(method string) value {
	p.t.Helper()
	return p.await("extension_ui_request", func(e value) bool { return e.at("method").text() == method })
}

// reply answers a dialog; a nil value dismisses it.
func (p *session) reply(dialog value, value any) {
	p.t.Helper()
	response := map[string]any{"type": "extension_ui_response", "id": dialog.at("id").text()}
	switch v := value.(type) {
	case nil:
		response["cancelled"] = true
	case bool:
		response["confirmed"] = v
	default:
		response["value"] = v
	}
	p.send(response)
}

// notice waits for a notice that says words.
func (p *session) notice(words string) value {
	p.t.Helper()
	return p.await("extension_ui_request", func(e value) bool {
		return e.at("method").text() == "notify" && strings.Contains(e.at("message").text(), words)
	})
}

func (p *session) settled() value {
	p.t.Helper()
	return p.await("agent_settled")
}
