// Package compaction_test has the real Pi compact its sessions with our summaries, and
// measures how long they take to compile.
package compaction_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends a program that hangs; no assertion depends on it.
const patience = 3 * time.Minute

type object = map[string]any

// workspace is a repository with the real Pi, whose compactions `pilothouse compact`
// answers, and a model that refuses a conversation in which calls and results do not
// belong together.
type workspace struct {
	t       *testing.T
	dir     string
	env     []string
	model   *scriptedmodel.Server
	heard   *piharness.Buffer // the log of the model
	record  string            // gets the requests of Pi's compactions
	session string            // Pi's session file

	installed bool // our extension, with the daemon
}

// newWorkspace makes a workspace whose Pi has these compaction settings.
func newWorkspace(t *testing.T, settings object, phase object, rules ...scriptedmodel.Rule) *workspace {
	t.Helper()
	w := &workspace{t: t, dir: piharness.Repo(t), heard: &piharness.Buffer{}, session: filepath.Join(t.TempDir(), "session.jsonl")}
	model, err := scriptedmodel.Start(scriptedmodel.Options{Rules: rules, Log: w.heard})
	if err != nil {
		t.Fatal(err)
	}
	w.model = model
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	agentDir := filepath.Join(t.TempDir(), "agent")
	if err := scriptedmodel.AgentDir(agentDir, model.BaseURL()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(agentDir, "settings.json")
	var all object
	if err := json.Unmarshal(read(t, path), &all); err != nil {
		t.Fatal(err)
	}
	all["compaction"] = settings
	if err := os.WriteFile(path, encode(t, all), 0o600); err != nil {
		t.Fatal(err)
	}
	w.record = filepath.Join(t.TempDir(), "requests.jsonl")
	w.env = append(piharness.Env(t, agentDir), "COMPACT_WITH="+piharness.Binary(t), "COMPACT_RECORD="+w.record, "COMPACT_PHASE="+string(encode(t, phase)))
	return w
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pi is a Pi that works on the session file, with the extension that asks
// `pilothouse compact` or, once that is installed, with ours.
func (w *workspace) pi(args ...string) *exec.Cmd {
	w.t.Helper()
	pi := piharness.NewPi(w.t)
	words := append(pi[1:len(pi):len(pi)], "--session", w.session)
	if !w.installed {
		extension, err := filepath.Abs(filepath.Join("testdata", "compact.ts"))
		if err != nil {
			w.t.Fatal(err)
		}
		words = append(words, "-ne", "-e", extension)
	}
	cmd := exec.Command(pi[0], append(words, args...)...)
	cmd.Dir, cmd.Env = w.dir, w.env
	return cmd
}

// install has Pi use the extension and its daemon, which ends with the test.
func (w *workspace) install() {
	w.t.Helper()
	marker := fmt.Sprintf("pilothouse-compaction-%d-%d-", os.Getpid(), marked.Add(1))
	for _, entry := range w.env {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			w.env = append(w.env, "XDG_RUNTIME_DIR="+home, "PILOTHOUSE_E2E="+marker)
			break
		}
	}
	w.t.Cleanup(func() {
		if left := piharness.Survivors(marker); len(left) > 0 {
			w.t.Errorf("processes outlived the test: %v", left)
		}
	})
	run := func(args ...string) {
		cmd := exec.Command(piharness.Binary(w.t), args...)
		cmd.Dir, cmd.Env = w.dir, w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Errorf("pilothouse %v: %v\n%s", args, err, out)
		}
	}
	w.t.Cleanup(func() { run("serve", "--stop") })
	run("install")
	w.installed = true
}

var marked atomic.Int64

// requests are those of the compactions so far.
func (w *workspace) requests() (all []object) {
	w.t.Helper()
	for line := range bytes.Lines(read(w.t, w.record)) {
		var request object
		if err := json.Unmarshal(line, &request); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, request)
	}
	return all
}

// compactions are the entries of the session file.
func (w *workspace) compactions() (all []object) {
	w.t.Helper()
	for line := range bytes.Lines(read(w.t, w.session)) {
		var entry object
		if err := json.Unmarshal(line, &entry); err != nil {
			w.t.Fatal(err)
		}
		if entry["type"] == "compaction" {
			all = append(all, entry)
		}
	}
	return all
}

// conversation is the last one that the model was asked to continue.
func (w *workspace) conversation() string {
	w.t.Helper()
	last := ""
	for line := range strings.Lines(w.heard.String()) {
		var event struct {
			Event        string
			Reason       string
			Conversation json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			w.t.Fatal(err)
		}
		switch event.Event {
		case "refused":
			w.t.Errorf("the model refuses a request: %s", event.Reason)
		case "request":
			last = string(event.Conversation)
		}
	}
	return last
}

// live is a Pi in rpc mode.
type live struct {
	*workspace
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr piharness.Buffer
	hung   *time.Timer
}

func (w *workspace) live(args ...string) *live {
	w.t.Helper()
	l := &live{workspace: w, cmd: w.pi(append([]string{"--mode", "rpc"}, args...)...)}
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	stdout, err := l.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	l.stdin, l.stdout, l.cmd.Stderr = stdin, bufio.NewReader(stdout), &l.stderr
	if err := l.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	l.hung = time.AfterFunc(patience, func() { _ = l.cmd.Process.Kill() })
	w.t.Cleanup(func() {
		_ = l.stdin.Close() // it is over for Pi then
		_, _ = io.Copy(io.Discard, l.stdout)
		_ = l.cmd.Wait()
		l.hung.Stop()
	})
	return l
}

// send gives Pi a command and reads its events until one satisfies done.
func (l *live) send(command object, done func(event object) bool) object {
	l.t.Helper()
	if _, err := l.stdin.Write(append(encode(l.t, command), '\n')); err != nil {
		l.t.Fatalf("write to pi: %v\n%s", err, l.stderr.String())
	}
	var seen []string
	for {
		line, err := l.stdout.ReadBytes('\n')
		if err != nil {
			l.t.Fatalf("read from pi: %v after %s\n%s", err, strings.Join(seen[max(len(seen)-40, 0):], "\n"), l.stderr.String())
		}
		seen = append(seen, fmt.Sprintf("%.300s", line))
		var event object
		if err := json.Unmarshal(line, &event); err != nil {
			l.t.Fatal(err)
		}
		if event["type"] == "response" && event["success"] == false {
			l.t.Fatalf("pi refuses %v: %v\n%s", command, event["error"], l.stderr.String())
		}
		if done(event) {
			return event
		}
	}
}

// prompt types a message and waits until the agent is at rest.
func (l *live) prompt(text string) {
	l.t.Helper()
	l.send(object{"type": "prompt", "message": text}, func(e object) bool { return e["type"] == "agent_settled" })
}

// compact is /compact and returns what became of it.
func (l *live) compact(instructions string) object {
	l.t.Helper()
	command := object{"type": "compact", "customInstructions": instructions}
	response := l.send(command, func(e object) bool { return e["type"] == "response" && e["command"] == "compact" })
	data, _ := response["data"].(object)
	return data
}
