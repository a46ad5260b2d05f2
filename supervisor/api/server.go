package api

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"pilothouse/supervisor"
)

// Bounds of what one client can hold.
const (
	maxBody        = 4 << 20   // an environment may have 2 MB (ARG_MAX); plans are read from disk
	maxSessionBody = 256 << 20 // of a hook that brings a whole session along
	maxHeader      = 64 << 10
	headerTimeout  = 10 * time.Second
	bodyTimeout    = 30 * time.Second
	writeTimeout   = 30 * time.Second // for a client to take what it is sent
	idleTimeout    = 2 * time.Minute
	maxConnections = 1024
)

// ackGrace is how long a stopping daemon stays for clients that were just sent their
// results to acknowledge them.
const ackGrace = time.Second

// Options of a [Server]. Zero fields take the default named with them.
type Options struct {
	// System does the work.
	System *supervisor.System
	// Spool is the directory where results wait for their acknowledgement. One daemon
	// at a time uses it.
	Spool string
	// Version of the program, for people.
	Version string
	// Logger for what operators read; nothing by default.
	Logger *slog.Logger
	// Now is the wall clock for what is written down; time.Now by default.
	Now func() time.Time
	// HeaderTimeout and BodyTimeout bound how slowly a request may come; 10 and 30
	// seconds by default.
	HeaderTimeout, BodyTimeout time.Duration
}

// Server answers for a [supervisor.System]. Serve it, then Shutdown, then close the
// System.
type Server struct {
	calls       *calls
	system      *supervisor.System
	logger      *slog.Logger
	now         func() time.Time
	http        *http.Server
	version     string
	started     time.Time
	bodyTimeout time.Duration
	stopAsked   chan struct{} // closed when a client asks for the end
	askOnce     sync.Once
	leaving     chan struct{} // closed when readers that follow without an end must go
	leaveOnce   sync.Once
	activity    *activity
}

// NewServer makes a server and takes over the results that an earlier one left.
func NewServer(o Options) (*Server, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HeaderTimeout == 0 {
		o.HeaderTimeout = headerTimeout
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = bodyTimeout
	}
	kept, err := openSpool(o.Spool, o.System.Turns())
	if err != nil {
		return nil, err
	}
	known, err := newCalls(o.System, kept, o.Logger, o.Now)
	if err != nil {
		return nil, err
	}
	s := &Server{
		calls: known, system: o.System, logger: o.Logger, now: o.Now, version: o.Version, started: o.Now(), bodyTimeout: o.BodyTimeout,
		stopAsked: make(chan struct{}), leaving: make(chan struct{}), activity: newActivity(),
	}
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: o.HeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: withPeer,
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug), DisableGeneralOptionsHandler: true,
	}
	return s, nil
}

// Serve accepts connections of this user until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(guard(l, maxConnections, s.logger)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// StopAsked is closed when a client has asked for the end of the daemon.
func (s *Server) StopAsked() <-chan struct{} { return s.stopAsked }

// errStopped is the cause of the end of calls that a stopping daemon cancels.
var errStopped = errors.New("the pilothouse daemon was stopped")

// Shutdown refuses new calls, gives those at work the time drain to end by themselves,
// cancels what is left, waits until waiting clients have their results, and closes all
// connections. It takes no longer than ctx beyond drain; results that were not
// delivered by then wait for the next daemon.
func (s *Server) Shutdown(ctx context.Context, drain time.Duration) error {
	s.calls.close()
	idle := func() bool { return s.calls.atWork() == 0 }
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	_ = s.calls.await(draining, idle) // those that do not end are cancelled next
	cancel()
	s.calls.cancelAll(errStopped)
	err := s.calls.await(ctx, idle)
	if err != nil {
		err = fmt.Errorf("end the calls at work: %w", err)
	}
	acks, cancel := context.WithTimeout(ctx, ackGrace)
	_ = s.calls.await(acks, s.calls.acknowledged) // what is not acknowledged waits for the next daemon
	cancel()
	s.leaveOnce.Do(func() { close(s.leaving) })
	if closing := s.http.Shutdown(ctx); closing != nil {
		err = errors.Join(err, fmt.Errorf("close connections: %w", closing), s.http.Close())
	}
	return err
}

// Wait returns when the goroutines of all calls have ended. Close the System before.
func (s *Server) Wait() { s.calls.work.Wait() }

// AwaitIdle returns when for a time no request was answered, no call was at work and no
// dialog open, or when ctx ends, with its cause.
func (s *Server) AwaitIdle(ctx context.Context, quiet time.Duration) error {
	return s.activity.awaitIdle(ctx, quiet, func() bool { return s.calls.atWork() == 0 && !s.system.Conversing() })
}

// route is one endpoint.
type route struct {
	method, path string
	handle       func(http.ResponseWriter, *http.Request) error
}

func (s *Server) routes() []route {
	return []route{
		{"GET", "/v1/health", s.getHealth},
		{"GET", "/v1/openapi.json", s.getOpenAPI},
		{"POST", "/v1/stop", s.postStop},
		{"POST", "/v1/calls", s.postCall},
		{"GET", "/v1/calls", s.getCalls},
		{"GET", "/v1/calls/{call}", s.getCall},
		{"DELETE", "/v1/calls/{call}", s.deleteCall},
		{"DELETE", "/v1/calls/{call}/lanes/{lane}", s.deleteLane},
		{"GET", "/v1/calls/{call}/events", s.getCallEvents},
		{"POST", "/v1/calls/{call}/ack", s.postAck},
		{"DELETE", "/v1/sessions/{session}", s.deleteSession},
		{"POST", "/v1/hooks/{hook}", s.postHook},
		{"POST", "/v1/conversations", s.postConversation},
		{"POST", "/v1/conversations/{conversation}/answer", s.postAnswer},
		{"DELETE", "/v1/conversations/{conversation}", s.deleteConversation},
		{"GET", "/v1/runs", s.getRuns},
		{"GET", "/v1/runs/{run}", s.getRun},
		{"GET", "/v1/lanes", s.getLanes},
		{"GET", "/v1/lanes/{call}/{lane}/transcript", s.getTranscript},
		{"GET", "/v1/events", s.getEvents},
	}
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		mux.HandleFunc(r.method+" "+r.path, func(w http.ResponseWriter, req *http.Request) {
			if err := r.handle(w, req); err != nil {
				writeProblem(w, problemOf(err))
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		writeProblem(w, refusal(http.StatusNotFound, "there is nothing to %s at %.200s; GET /v1/openapi.json describes what there is", req.Method, req.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer s.activity.begin()()
		// A body that comes too slowly must not hold the connection, whether a handler
		// reads it or the server discards it.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTimeout)); err != nil {
			writeProblem(w, problemOf(err))
			return
		}
		if req.Method != http.MethodPost && req.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			writeProblem(w, refusal(http.StatusBadRequest, "%s takes no body", req.Method))
			return
		}
		mux.ServeHTTP(w, req)
	})
}

// body reads the whole body, bounded in size and time. A body that is announced as
// too large is refused before any of it is read.
func body(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	return boundedBody(w, req, maxBody)
}

func boundedBody(w http.ResponseWriter, req *http.Request, most int64) ([]byte, error) {
	tooLarge := func() error {
		w.Header().Set("Connection", "close")
		return refusal(http.StatusRequestEntityTooLarge, "the request has more than %d MiB", most>>20)
	}
	if req.ContentLength > most {
		return nil, tooLarge()
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, req.Body, most))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, tooLarge()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.Header().Set("Connection", "close")
			return nil, refusal(http.StatusRequestTimeout, "the request came too slowly")
		}
		return nil, refusal(http.StatusBadRequest, "the request broke off: %v", err)
	}
	return data, nil
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	data, err := encode(value)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that is gone needs none
	return nil
}

func writeProblem(w http.ResponseWriter, p *Problem) {
	data, err := encode(p)
	if err != nil {
		http.Error(w, p.Detail, p.Status) // a problem always can be encoded
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(data) // as above
}

//go:embed openapi.json
var openAPI []byte

func (s *Server) getOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // a client that is gone needs none
	return nil
}
