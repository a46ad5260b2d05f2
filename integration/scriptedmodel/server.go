// Package scriptedmodel is a chat-completions server whose answers are written
// down beforehand, so that agents can be run for real, offline and with every
// fault a provider shows in the field.
//
// A request is answered by the script in its last user message that carries one,
// `<<SIM step>>` or `<<SIM [step, step, …]>>`, or else by the rules given at the
// start, or else with the text "ok". The step is chosen by the number of
// assistant messages since that user message; the last step repeats. A request
// that a real service would refuse (tool calls and results that do not pair, no
// messages) and a script that cannot be read are answered with status 400.
//
// Besides POST /v1/chat/completions there are GET /v1/models, GET /stats and
// POST /reset. The server listens on the loopback interface unless told
// otherwise and knows no authentication.
package scriptedmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxBody bounds a request's size in bytes.
const maxBody = 64 << 20

// errClosing is the cause that tells a request ended by Close from one that its
// client left.
var errClosing = errors.New("server is closing")

// Options configure Start; the zero value is a server on a free loopback port
// without rules.
type Options struct {
	// Addr is host:port, by default 127.0.0.1:0.
	Addr string
	// Rules script the conversations that carry no script of their own.
	Rules []Rule
	// Log gets one JSON line for each begin and end of a request. It is written
	// by one goroutine at a time and not used after Close.
	Log io.Writer
}

// Server answers requests until Close.
type Server struct {
	baseURL string
	rules   []compiledRule
	journal journal

	http   http.Server
	stop   context.CancelCauseFunc // ends the steps that wait
	serve  chan error              // the end of the accept loop
	conns  sync.WaitGroup          // connections whose goroutine still runs
	closed sync.Once
	err    error
}

// Start listens and serves. It fails when a rule cannot be read or the address
// cannot be had.
func Start(opts Options) (*Server, error) {
	rules, err := compileRules(opts.Rules)
	if err != nil {
		return nil, fmt.Errorf("start scripted model: %w", err)
	}
	addr := opts.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("start scripted model: %w", err)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	s := &Server{
		baseURL: "http://" + listener.Addr().String() + "/v1",
		rules:   rules,
		journal: journal{attempts: map[string]int{}, changed: make(chan struct{}), log: opts.Log},
		stop:    stop,
		serve:   make(chan error, 1),
	}
	s.http = http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConn,
		ConnState:         s.track,
	}
	go func() { s.serve <- s.http.Serve(listener) }()
	return s, nil
}

// BaseURL is the address that a provider entry takes, with /v1 at its end.
func (s *Server) BaseURL() string { return s.baseURL }

// Requests returns a copy of the requests so far, in the order of their begin.
func (s *Server) Requests() []Request { return s.journal.list() }

// Stats counts the requests so far.
func (s *Server) Stats() Stats {
	stats, _ := s.journal.snapshot()
	return stats
}

// Await returns as soon as the counts satisfy reached, which may be at once. It
// fails only with the context, and then names the counts there were.
func (s *Server) Await(ctx context.Context, reached func(Stats) bool) error {
	for {
		stats, changed := s.journal.snapshot()
		if reached(stats) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("await scripted model, now at %+v: %w", stats, context.Cause(ctx))
		}
	}
}

// Reset forgets the requests, the counts and the attempts (Step.Times), except
// for requests that are still open.
func (s *Server) Reset() { s.journal.reset() }

// Close cuts every connection and returns when all goroutines of the server have
// ended. The error is the first failure to serve or to write the log. Further
// calls return the same.
func (s *Server) Close() error {
	s.closed.Do(func() {
		s.stop(errClosing)
		closeErr := s.http.Close()
		serveErr := <-s.serve
		if errors.Is(serveErr, http.ErrServerClosed) {
			serveErr = nil
		}
		s.conns.Wait()
		s.err = errors.Join(closeErr, serveErr, s.journal.logErr)
	})
	return s.err
}

// track counts connections. The accept loop reports a new one before it starts
// the connection's goroutine, which reports the end as its last act: once the
// loop is over, the count can only fall.
func (s *Server) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed:
		s.conns.Done()
	case http.StateActive, http.StateIdle, http.StateHijacked:
	}
}

type connKey struct{}

// withConn keeps the connection within a handler's reach, for scripted resets.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		var list []any
		for _, m := range models {
			list = append(list, map[string]any{"id": m.ID, "object": "model"})
		}
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list})
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Stats())
	})
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, _ *http.Request) {
		s.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// complete answers one model call and books its outcome.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.refuse(w, fmt.Errorf("read request: %w", err))
		return
	}
	c, err := parseCompletion(body)
	if err != nil {
		s.refuse(w, err)
		return
	}
	q, err := cueFor(c, s.rules)
	if err != nil {
		s.refuse(w, err)
		return
	}

	id, record := s.journal.begin(c, q)
	a := &answer{w: w, flush: http.NewResponseController(w).Flush, request: r, completion: c, id: id, step: q.step.forAttempt(record.Attempt)}
	err = a.play()
	switch {
	case err == nil:
		s.journal.end(id, record, completed)
	case errors.Is(err, errDropped) || errors.Is(context.Cause(r.Context()), errClosing):
		s.journal.end(id, record, dropped)
		panic(http.ErrAbortHandler) // the documented way to cut a connection without an end of the response
	default: // the client is gone
		s.journal.end(id, record, aborted)
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) refuse(w http.ResponseWriter, reason error) {
	s.journal.refuse(reason)
	writeError(w, http.StatusBadRequest, "scripted model: "+reason.Error(), "invalid_request_error")
}

func writeError(w http.ResponseWriter, status int, message, code string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"message": message, "type": "scripted", "code": code}})
}

// writeJSON sends a small whole response. A failed write means that the client
// has left, which nobody here can act on.
func writeJSON(w http.ResponseWriter, status int, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
