package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

var plansInit = supervisor.PlansAction{Action: "init"}

// raw opens a connection and writes to it.
func (s *scene) raw(text string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func answerOf(t *testing.T, conn net.Conn) answer {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return newAnswer(response)
}

func TestALargeBodyIsRefusedBeforeItIsRead(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	// Not a byte of the 100 MB comes, and the answer does.
	conn := s.raw("POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n")
	if response := answerOf(t, conn); response.status != http.StatusRequestEntityTooLarge || response.media != "application/problem+json" {
		t.Errorf("answered %+v", response)
	}
	// Of a body whose size is not announced no more is read than may be.
	conn = s.raw("POST /v1/calls HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	var writing sync.WaitGroup
	writing.Go(func() {
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat(" ", 1<<16))
		for range 100 << 4 {
			if _, err := io.WriteString(conn, chunk); err != nil {
				return
			}
		}
		t.Error("100 MB were taken")
	})
	if response := answerOf(t, conn); response.status != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %+v", response)
	}
	_ = conn.Close()
	writing.Wait()
}

func TestARequestThatComesTooSlowlyIsGivenUp(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(s *scene) {
		s.options.HeaderTimeout, s.options.BodyTimeout = 50*time.Millisecond, 50*time.Millisecond
	})
	for name, c := range map[string]struct{ text, want string }{
		"in its header":       {"GET /v1/health HTTP/1.1\r\nHos", ""},
		"in its body":         {"POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", "408"},
		"in a body of no use": {"GET /v1/health HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", "400"},
	} {
		t.Run(name, func(t *testing.T) {
			// Were there no bound, this would wait for the rest until the test's deadline.
			data, err := io.ReadAll(s.raw(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(data), c.want) {
				t.Errorf("answered %q, want %s", data, c.want)
			}
		})
	}
	// A client that is silent after its request is none of these.
	session, open := s.gated()
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	stream.until("the round", typed(api.EventStarted))
	time.AfterFunc(200*time.Millisecond, open)
	stream.until("a result", typed(api.EventResult))
}

func TestManyConnectionsThatSayNothingKeepNobodyOut(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for range 300 {
		s.raw("")
	}
	if _, err := s.client().Plans(t.Context(), s.session, plansInit); err != nil {
		t.Error(err)
	}
}

func TestMistakesInRequestsAreToldInOneSentence(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	valid := post("c1", s.session)
	with := func(key string, value any) map[string]any {
		changed := map[string]any{}
		for k, v := range valid {
			changed[k] = v
		}
		changed[key] = value
		return changed
	}
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
		words        string
	}{
		"no JSON":                {"POST", "/v1/calls", "text", 400, "not a call"},
		"an unknown key":         {"POST", "/v1/calls", with("toool", 1), 400, "toool"},
		"an unknown tool":        {"POST", "/v1/calls", with("tool", "rm"), 400, "refine, analyze_refs and plans"},
		"an unknown parameter":   {"POST", "/v1/calls", with("params", map[string]any{"plan": "x"}), 400, "plan"},
		"a bad model":            {"POST", "/v1/calls", with("params", map[string]any{"planPath": "x", "model": "gpt"}), 400, "provider/model"},
		"a bad id":               {"POST", "/v1/calls", with("id", "../../etc"), 400, "call id"},
		"a bad session id":       {"POST", "/v1/calls", with("session", map[string]any{"id": "a/b", "workdir": "/"}), 400, "session.id"},
		"a relative workdir":     {"POST", "/v1/calls", with("session", map[string]any{"workdir": "x"}), 400, "absolute"},
		"a bad number":           {"GET", "/v1/calls/x/events?from=-1", nil, 400, "from"},
		"an unknown call":        {"GET", "/v1/calls/x", nil, 404, "no call"},
		"events of unknown call": {"GET", "/v1/calls/x/events", nil, 404, "no call"},
		"ack of unknown call":    {"POST", "/v1/calls/x/ack", nil, 404, "no call"},
		"cancel of unknown call": {"DELETE", "/v1/calls/x", nil, 404, "no call"},
		"unknown transcript":     {"GET", "/v1/lanes/x/general/transcript", nil, 404, "no call"},
		"runs without workdir":   {"GET", "/v1/runs", nil, 400, "workdir"},
		"an unknown path":        {"GET", "/v2/calls", nil, 404, "openapi.json"},
		"a wrong method":         {"PUT", "/v1/health", nil, 404, "PUT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var problem api.Problem
			if status := s.ask(c.method, c.path, c.body, &problem); status != c.status || problem.Status != c.status {
				t.Errorf("status %d, in the body %d, want %d", status, problem.Status, c.status)
			}
			contains(t, problem.Detail, c.words)
			if strings.Contains(problem.Detail, "\n") {
				t.Errorf("%q is more than a sentence", problem.Detail)
			}
		})
	}
}

func TestADaemonThatNobodyAsksBecomesIdle(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, open := s.gated()
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	stream.until("the round", typed(api.EventStarted))
	stream.leave() // a call at work keeps it busy, watched or not
	idle := make(chan error, 1)
	go func() { idle <- s.server.AwaitIdle(t.Context(), time.Millisecond) }()
	for range 20 {
		s.ask("GET", "/v1/health", nil, new(any))
	}
	select {
	case err := <-idle:
		t.Errorf("idle with a call at work (%v)", err)
	default:
	}
	open()
	if err := <-idle; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the end"))
	if err := s.server.AwaitIdle(ctx, time.Hour); err == nil || err.Error() != "the end" {
		t.Errorf("waited with %v", err)
	}
}

func TestManyClientsInManyWorkspacesGetEachTheirOwn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const clients, workspaces = 30, 5
	var sessions []supervisor.Session
	for i := range workspaces {
		sessions = append(sessions, s.workspace(fmt.Sprint("w", i)))
	}
	var all sync.WaitGroup
	for i := range clients {
		session := sessions[i%workspaces]
		session.ID = fmt.Sprint("session-", i%workspaces) // those of one workspace share its run
		req := refine(session)
		req.Reviewers, req.Focus = 1, fmt.Sprint("focus ", i)
		client := s.client()
		all.Go(func() {
			var round string
			result, err := client.Refine(t.Context(), req, func(event any) {
				if m, ok := event.(supervisor.RoundStarted); ok {
					round = m.RoundID
				}
			})
			switch {
			case err != nil:
				t.Errorf("client %d: %v", i, err)
			case result.RoundID != round || result.Complete() != 1:
				t.Errorf("client %d saw round %s begin and got %+v", i, round, result)
			case !strings.HasPrefix(*result.Lanes[0].ResultFile, session.Workdir):
				t.Errorf("client %d in %s got %s", i, session.Workdir, *result.Lanes[0].ResultFile)
			}
		})
	}
	all.Wait()
	if n := s.childrenStarted(); n != clients {
		t.Errorf("%d children for %d lanes", n, clients)
	}
}
