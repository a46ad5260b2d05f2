package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"pilothouse/supervisor/api"
)

// defaultWatchAddr is where the page is served unless --addr says otherwise.
const defaultWatchAddr = "127.0.0.1:0"

const (
	pagePause = 250 * time.Millisecond // at least, between two looks at the state
	pageGrace = 2 * time.Second        // for requests at work when the page ends
	pageWrite = 30 * time.Second       // for a browser to take what it is sent
	maxOrder  = 4 << 10                // bytes of a request with a body
)

//go:embed watch
var watchPage embed.FS

// watchServer serves the page. Every request has to name the secret as the first part
// of its path, and this server as its host: a page elsewhere that gets a name to point
// here (DNS rebinding) has neither.
type watchServer struct {
	watcher *watcher
	secret  string
	hosts   []string
	leaving context.Context // ends streams
}

// serveWatch serves the page until ctx ends.
func (a *app) serveWatch(ctx context.Context, w *watcher, addr string) error {
	listener, err := listenLoopback(ctx, addr)
	if err != nil {
		return err
	}
	leaving, stop := context.WithCancel(ctx)
	defer stop()
	s := newWatchServer(leaving, w, listener.Addr().String())
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	fmt.Fprintf(a.out, "http://%s/%s/\n", listener.Addr(), s.secret)
	fmt.Fprintln(a.err, "Open this address in a browser on this machine; Ctrl-C ends it.")
	var shutdown error
	var g group
	g.add(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the page: %w", err)
		}
		return nil
	}, func() {
		stop()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), pageGrace)
		defer cancel()
		if err := server.Shutdown(closing); err != nil { // a browser that does not take what it is sent
			shutdown = server.Close()
		}
	})
	g.add(func() error { w.follow(leaving); return nil }, stop)
	return errors.Join(g.run(), shutdown)
}

// listenLoopback opens an address that only this machine can reach.
func listenLoopback(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--addr %q is no address; use one such as %s", addr, defaultWatchAddr)}
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, &usageError{fmt.Errorf("--addr %s could be reached from elsewhere; use one such as %s", addr, defaultWatchAddr)}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve the page at --addr %s: %w", addr, err)
	}
	return listener, nil
}

func newWatchServer(leaving context.Context, w *watcher, addr string) *watchServer {
	_, port, _ := net.SplitHostPort(addr) // addr is that of a listener
	return &watchServer{
		watcher: w, secret: strings.ToLower(rand.Text()), leaving: leaving,
		hosts: []string{addr, net.JoinHostPort("localhost", port)},
	}
}

func (s *watchServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", file("index.html", "text/html; charset=utf-8"))
	mux.HandleFunc("GET /watch.css", file("watch.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /watch.js", file("watch.js", "text/javascript; charset=utf-8"))
	mux.HandleFunc("GET /icon.svg", file("icon.svg", "image/svg+xml"))
	mux.HandleFunc("GET /events", s.getEvents)
	mux.HandleFunc("GET /transcript", s.getTranscript)
	mux.HandleFunc("POST /cancel", s.postCancel)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !s.named(r.Host) {
			http.Error(w, "this page is served under another name; open the address that `pilothouse watch --web` printed", http.StatusMisdirectedRequest)
			return
		}
		given, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(s.secret)) != 1 {
			http.Error(w, "there is nothing here; open the address that `pilothouse watch --web` printed", http.StatusNotFound)
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+rest, ""
		mux.ServeHTTP(w, inner)
	})
}

func (s *watchServer) named(host string) bool {
	for _, own := range s.hosts {
		if strings.EqualFold(host, own) {
			return true
		}
	}
	return false
}

func file(name, contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		data, err := watchPage.ReadFile(path.Join("watch", name))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError) // it is built in
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(data) // a browser that is gone needs none
	}
}

// getEvents sends what there is to see as server-sent events "view", now and after
// changes.
func (s *watchServer) getEvents(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(s.leaving, stop)()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	_ = s.watcher.each(ctx, pagePause, func(v watchView) error { // it ends with the browser or with us
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := control.SetWriteDeadline(time.Now().Add(pageWrite)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "event: view\ndata: %s\n\n", data); err != nil {
			return err
		}
		return control.Flush()
	})
}

// getTranscript sends what the transcript of a lane has from an offset on.
func (s *watchServer) getTranscript(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, err := strconv.ParseInt(query.Get("from"), 10, 64)
	if err != nil || from < 0 {
		http.Error(w, "from is not a number from 0", http.StatusBadRequest)
		return
	}
	text, err := s.watcher.client.Transcript(r.Context(), query.Get("call"), query.Get("lane"), from)
	if err != nil {
		refuse(w, err)
		return
	}
	defer text.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	_, _ = io.Copy(w, text) // what does not arrive is asked for again
}

// postCancel cancels a lane, {"call":"…","lane":"…"}, or without one the whole call.
func (s *watchServer) postCancel(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Call string `json:"call"`
		Lane string `json:"lane"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder)).Decode(&order); err != nil || order.Call == "" {
		http.Error(w, "the request names no call", http.StatusBadRequest)
		return
	}
	if err := s.watcher.cancel(r.Context(), order.Call, order.Lane); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// refuse passes on what the daemon says.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if problem, ok := errors.AsType[*api.Problem](err); ok {
		status = problem.Status
	}
	http.Error(w, err.Error(), status)
}
