package api

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"pilothouse/supervisor"
)

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, s.health())
}

func (s *Server) health() Health {
	h := Health{Version: s.version, Protocol: Protocol, PID: os.Getpid(), Started: s.started, Stopping: s.calls.isClosing()}
	for _, c := range s.calls.list() {
		switch c.describe().State {
		case StateRunning:
			h.Calls.Running++
		case StateFinished, StateLost:
			h.Calls.Waiting++
		}
		queued, running := c.unended()
		h.Lanes.Queued += queued
		h.Lanes.Running += running
	}
	return h
}

// postStop asks whoever runs the daemon to end it, in the orderly way.
func (s *Server) postStop(w http.ResponseWriter, _ *http.Request) error {
	s.askOnce.Do(func() { close(s.stopAsked) })
	return writeJSON(w, http.StatusAccepted, s.health())
}

// postCall starts a call, or joins it, and streams its events from ?from on.
func (s *Server) postCall(w http.ResponseWriter, r *http.Request) error {
	from, err := numberOf(r, "from")
	if err != nil {
		return err
	}
	data, err := body(w, r)
	if err != nil {
		return err
	}
	var req CallRequest
	if err := decodeStrict(data, &req); err != nil {
		return inputErrorf("the request is not a call: %v", err)
	}
	// The call outlives the request; only the trace goes on in it.
	ctx := propagation.TraceContext{}.Extract(context.WithoutCancel(r.Context()), propagation.HeaderCarrier(r.Header))
	c, err := s.calls.start(ctx, req)
	if err != nil {
		return err
	}
	return s.stream(w, r, c, from)
}

// getCalls lists the calls that run and those that wait for an acknowledgement, those
// of one session with ?session.
func (s *Server) getCalls(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	return writeJSON(w, http.StatusOK, s.waiting(func(call Call) bool {
		return !query.Has("session") || query.Get("session") == call.Session
	}))
}

// waiting lists those calls whose results nobody has taken yet.
func (s *Server) waiting(wanted func(Call) bool) Calls {
	listed := Calls{Calls: []Call{}}
	for _, c := range s.calls.list() {
		if call := c.describe(); call.State != StateDelivered && wanted(call) {
			listed.Calls = append(listed.Calls, call)
		}
	}
	return listed
}

func (s *Server) getCall(w http.ResponseWriter, r *http.Request) error {
	c, err := s.calls.find(r.PathValue("call"))
	if err != nil {
		return err
	}
	detail := c.detail()
	if detail.Result != nil || detail.Problem != nil {
		c.offer()
	}
	return writeJSON(w, http.StatusOK, detail)
}

// deleteCall cancels a call as an interrupt at its command line would. The call still
// comes to its result.
func (s *Server) deleteCall(w http.ResponseWriter, r *http.Request) error {
	reason := r.URL.Query().Get("reason")
	if reason == "" {
		reason = "the client cancelled"
	}
	call, err := s.calls.cancel(r.PathValue("call"), fmt.Sprintf("%.200s", reason))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, call)
}

// deleteLane cancels one lane of a call; the others go on.
func (s *Server) deleteLane(w http.ResponseWriter, r *http.Request) error {
	reason := r.URL.Query().Get("reason")
	if reason == "" {
		reason = "the client cancelled the lane"
	}
	call, err := s.calls.cancelLane(r.Context(), r.PathValue("call"), r.PathValue("lane"), fmt.Sprintf("%.200s", reason))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, call)
}

func (s *Server) postAck(w http.ResponseWriter, r *http.Request) error {
	if _, err := body(w, r); err != nil { // none is needed, and an empty one does no harm
		return err
	}
	call, err := s.calls.acknowledge(r.PathValue("call"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, call)
}

// deleteSession gives back the runs that a session holds, once what it has at work is
// over, and lists the calls whose results it leaves.
func (s *Server) deleteSession(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("session")
	if err := s.system.EndSession(r.Context(), id); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, s.waiting(func(call Call) bool { return call.Session == id }))
}

func (s *Server) getCallEvents(w http.ResponseWriter, r *http.Request) error {
	from, err := numberOf(r, "from")
	if err != nil {
		return err
	}
	c, err := s.calls.find(r.PathValue("call"))
	if err != nil {
		return err
	}
	return s.stream(w, r, c, from)
}

func (s *Server) getRuns(w http.ResponseWriter, r *http.Request) error {
	session, err := workspaceOf(r)
	if err != nil {
		return err
	}
	limit, err := numberOf(r, "limit")
	if err != nil {
		return err
	}
	runs, more, err := s.system.RecentRuns(r.Context(), session, int(min(limit, math.MaxInt32)))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, Runs{runs, more})
}

// activeRun stands for the active run of a workspace in a path; ids of runs start with
// a date.
const activeRun = "active"

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	session, err := workspaceOf(r)
	if err != nil {
		return err
	}
	id := r.PathValue("run")
	if id == activeRun {
		id = ""
	}
	detail, err := s.system.Show(r.Context(), session, id)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, detail)
}

// getLanes lists the lanes at work, with ?ended=1 also those that have ended of the
// calls that getCalls lists.
func (s *Server) getLanes(w http.ResponseWriter, r *http.Request) error {
	listed := Lanes{Lanes: []Lane{}}
	for _, c := range s.calls.list() {
		if r.URL.Query().Get("ended") != "1" {
			listed.Lanes = append(listed.Lanes, c.live(s.now())...)
		} else if c.describe().State != StateDelivered {
			listed.Lanes = append(listed.Lanes, c.all(s.now())...)
		}
	}
	return writeJSON(w, http.StatusOK, listed)
}

// workspaceOf is the session of a request that only names a directory.
func workspaceOf(r *http.Request) (supervisor.Session, error) {
	workdir := r.URL.Query().Get("workdir")
	if !filepath.IsAbs(workdir) {
		return supervisor.Session{}, inputErrorf("workdir %.200q is not an absolute path", workdir)
	}
	return supervisor.Session{Workdir: workdir}, nil
}

// numberOf is a number of the query, 0 when it is not given.
func numberOf(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0, inputErrorf("%s %.80q is not a number from 0", name, text)
	}
	return number, nil
}

// flow writes a response piece by piece. A client that does not take its pieces is
// given up; nothing depends on it.
type flow struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// newFlow starts a response that goes on after the request was read. From here on the
// client may stay silent.
func newFlow(w http.ResponseWriter, contentType string) (flow, error) {
	f := flow{w, http.NewResponseController(w)}
	if err := f.control.SetReadDeadline(time.Time{}); err != nil {
		return f, fmt.Errorf("start a stream: %w", err)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return f, nil
}

func (f flow) write(data []byte) error {
	if err := f.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := f.w.Write(data)
	return err
}

func (f flow) flush() error { return f.control.Flush() }
