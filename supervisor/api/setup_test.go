package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pilothouse/lanes/proc"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	if os.Getenv(strangerMarker) != "" {
		stranger()
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is for things that must happen; no test waits this long when all is well.
const patience = time.Minute

// pi is a program in the place of pi. It reads its task and says that it responds; then
// it waits for the file $GATE, if that is set, and answers as a reviewer.
const pi = `#!/bin/sh
cat >/dev/null
echo x >>"$STARTS"
printf '%s\n' '{"type":"session","version":3,"id":"stub"}'
printf '%s\n' '{"type":"agent_start"}'
printf '%s\n' '{"type":"turn_start"}'
printf '%s\n' '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"looking"}}'
if [ -n "$GATE" ]; then until [ -e "$GATE" ]; do sleep 0.02; done; fi
printf '%s\n' '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"## Findings\n\nNo findings.\n\n## Checked\n\n- <b> & all the rest"}],"model":"stub","stopReason":"stop","usage":{"input":10,"output":5,"cost":{"total":0.25}}}}'
printf '%s\n' '{"type":"agent_end","messages":[],"willRetry":false}'
printf '%s\n' '{"type":"agent_settled","aborted":false}'
`

// scene is a workspace with a plan, and a daemon in this process.
type scene struct {
	t       *testing.T
	dir     string // short: a socket fits below it
	socket  string
	spool   string
	starts  string // file with a line for each child
	session supervisor.Session
	log     *lockedBuffer
	options api.Options
	*daemon
}

// daemon is one life of the daemon of a scene.
type daemon struct {
	system *supervisor.System
	server *api.Server
	end    func()
}

func newScene(t *testing.T, change ...func(*scene)) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("", "ph")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &scene{
		t: t, dir: dir, socket: filepath.Join(dir, "run", "api.sock"), spool: filepath.Join(dir, "calls"), log: &lockedBuffer{},
		starts: filepath.Join(dir, "starts"),
	}
	s.session = s.workspace("workspace")
	for _, f := range change {
		f(s)
	}
	s.begin()
	t.Cleanup(func() { s.end() })
	return s
}

// workspace makes a repository with a plan and returns a session in it.
func (s *scene) workspace(name string) supervisor.Session {
	s.t.Helper()
	workdir := filepath.Join(s.dir, name)
	if out, err := exec.Command("git", "init", "-q", workdir).CombinedOutput(); err != nil {
		s.t.Fatalf("git init: %v\n%s", err, out)
	}
	program := filepath.Join(workdir, "pi.sh")
	write(s.t, program, pi)
	if err := os.Chmod(program, 0o700); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, filepath.Join(workdir, "plan.md"), "# Bake bread\n\n## Items\n- I-001 Bake.\n")
	return supervisor.Session{Workdir: workdir, Pi: program, Environ: append(os.Environ(), "STARTS="+s.starts)}
}

// begin starts a daemon over the scene's spool.
func (s *scene) begin() {
	s.t.Helper()
	system, err := supervisor.New(supervisor.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	o := s.options
	o.System, o.Spool, o.Version = system, s.spool, "1.2.3"
	o.Logger = slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	server, err := api.NewServer(o)
	if err != nil {
		s.t.Fatal(err)
	}
	socket, err := api.Listen(s.t.Context(), s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(socket) }()
	var once sync.Once
	s.daemon = &daemon{system: system, server: server, end: func() {
		once.Do(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := errors.Join(server.Shutdown(ctx, 0), <-served, system.Close(ctx), socket.Release()); err != nil {
				s.t.Errorf("end the daemon: %v", err)
			}
			server.Wait()
		})
	}}
}

func (s *scene) client() *api.Client {
	s.t.Helper()
	c, err := api.Connect(s.t.Context(), s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// gated is the scene's session whose children wait for the returned function.
func (s *scene) gated() (supervisor.Session, func()) {
	gate := filepath.Join(s.dir, "gate")
	session := s.session
	session.Environ = append(session.Environ[:len(session.Environ):len(session.Environ)], "GATE="+gate)
	return session, func() { write(s.t, gate, "") }
}

func refine(session supervisor.Session) supervisor.RefineRequest {
	return supervisor.RefineRequest{Session: session, PlanPath: "plan.md", Reviewers: 3, Model: supervisor.ModelAnswer{Answered: true}}
}

// post is the body of a refine call by three reviewers.
func post(id string, session supervisor.Session) map[string]any {
	return map[string]any{
		"id": id, "tool": "refine",
		"session": map[string]any{"id": session.ID, "workdir": session.Workdir, "environ": session.Environ, "pi": session.Pi},
		"params":  map[string]any{"planPath": "plan.md", "reviewers": 3, "model": "inherit"},
	}
}

// childrenStarted is how many children there were.
func (s *scene) childrenStarted() int {
	s.t.Helper()
	data, err := os.ReadFile(s.starts)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// answer is a response of the daemon. Its body is closed with the test.
type answer struct {
	status int
	media  string
	body   io.ReadCloser
}

func newAnswer(response *http.Response) answer {
	return answer{response.StatusCode, response.Header.Get("Content-Type"), response.Body}
}

// request asks the daemon as a program without our client would.
func (s *scene) request(method, path string, body any, header ...string) answer {
	s.t.Helper()
	data := new(bytes.Buffer)
	if body != nil {
		if err := json.NewEncoder(data).Encode(body); err != nil {
			s.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://daemon"+path, data)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket)
		},
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	return newAnswer(response)
}

// ask reads the answer to a request into value and returns its status.
func (s *scene) ask(method, path string, body, value any) int {
	s.t.Helper()
	response := s.request(method, path, body)
	data, err := io.ReadAll(response.body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	if err := json.Unmarshal(data, value); err != nil {
		s.t.Fatalf("%s %s answered %q: %v", method, path, data, err)
	}
	return response.status
}

// events reads a stream of a call.
type events struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Scanner
}

func (s *scene) follow(method, path string, body any) *events {
	s.t.Helper()
	response := s.request(method, path, body)
	if response.status != http.StatusOK {
		text, _ := io.ReadAll(response.body)
		s.t.Fatalf("%s %s answered %d: %s", method, path, response.status, text)
	}
	lines := bufio.NewScanner(response.body)
	lines.Buffer(nil, 1<<20)
	return &events{s.t, response.body, lines}
}

// until returns the first event that satisfies ok, and all before it.
func (e *events) until(what string, ok func(api.Event) bool) (api.Event, []api.Event) {
	e.t.Helper()
	var before []api.Event
	for e.lines.Scan() {
		var event api.Event
		if err := json.Unmarshal(e.lines.Bytes(), &event); err != nil {
			e.t.Fatalf("event %q: %v", e.lines.Text(), err)
		}
		if ok(event) {
			return event, before
		}
		before = append(before, event)
	}
	e.t.Fatalf("the stream ended (%v) before there was %s", e.lines.Err(), what)
	return api.Event{}, nil
}

func typed(eventType string) func(api.Event) bool {
	return func(e api.Event) bool { return e.Type == eventType }
}

func last(e api.Event) bool { return e.Type == api.EventResult || e.Type == api.EventProblem }

// leave drops the connection.
func (e *events) leave() { _ = e.body.Close() }

// result reads a result of refine.
func result(t *testing.T, e api.Event) supervisor.RoundResult {
	t.Helper()
	if e.Problem != nil {
		t.Fatalf("the call came to a problem: %v", e.Problem)
	}
	var r supervisor.RoundResult
	if err := json.Unmarshal(e.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}
