package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pilothouse/lanes"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, cancel
}

func spell(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestResultsSurviveTheDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	event, _ := s.follow("POST", "/v1/calls", post("kept", s.session)).until("a result", typed(api.EventResult))
	round := result(t, event)
	s.follow("POST", "/v1/calls", post("taken", s.session)).until("a result", typed(api.EventResult))
	s.ask("POST", "/v1/calls/taken/ack", nil, new(any))
	s.end()
	s.begin()

	// A reader that knows the numbers of the earlier life misses nothing.
	event, _ = s.follow("GET", "/v1/calls/kept/events?from=9999", nil).until("a result", last)
	if r := result(t, event); spell(t, r) != spell(t, round) {
		t.Errorf("the kept result is %+v, was %+v", r, round)
	}
	started, _ := s.follow("GET", "/v1/calls/kept/events", nil).until("the round", typed(api.EventStarted))
	if started.Started.RoundID != round.RoundID {
		t.Errorf("the kept call announces round %s, was %s", started.Started.RoundID, round.RoundID)
	}
	event, _ = s.follow("GET", "/v1/calls/taken/events", nil).until("the end", last)
	if _, ok := errors.AsType[*api.DeliveredError](event.Problem); !ok {
		t.Errorf("a delivered call ends with %+v after a restart", event)
	}
	if status := s.ask("POST", "/v1/calls/kept/ack", nil, new(any)); status != http.StatusOK {
		t.Errorf("acknowledged with %d after a restart", status)
	}
	// Whoever lost the answer may post again, and pays nothing.
	before := s.childrenStarted()
	event, _ = s.follow("POST", "/v1/calls", post("kept", s.session)).until("the end", last)
	if _, ok := errors.AsType[*api.DeliveredError](event.Problem); !ok || s.childrenStarted() != before {
		t.Errorf("posted again: %+v, %d children more", event, s.childrenStarted()-before)
	}
}

// A daemon that is killed leaves its spool as it is at that moment.
func TestACallThatDiedWithItsDaemonIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, _ := s.gated()
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	started, _ := stream.until("the round", typed(api.EventStarted))
	crashed := filepath.Join(s.dir, "crashed")
	if err := os.CopyFS(crashed, os.DirFS(s.spool)); err != nil {
		t.Fatal(err)
	}
	s.end()
	s.spool = crashed
	s.begin()
	before := s.childrenStarted()
	event, _ := s.follow("POST", "/v1/calls", post("c1", session)).until("the end", last)
	lost, ok := errors.AsType[*api.LostCallError](event.Problem)
	if !ok || lost.RunID != started.Started.RunID || lost.RoundID != started.Started.RoundID {
		t.Fatalf("the call ended with %+v", event)
	}
	contains(t, lost.Error(), "what was stored is safe", lost.RoundID)
	if s.childrenStarted() != before {
		t.Error("a lost call was begun again")
	}
	var calls api.Calls
	if s.ask("GET", "/v1/calls", nil, &calls); len(calls.Calls) != 1 || calls.Calls[0].State != api.StateLost {
		t.Errorf("calls %+v", calls)
	}
}

// relay stands for a daemon that can die and come back: it passes connections on.
type relay struct {
	t     *testing.T
	path  string
	to    string
	stop  func()
	conns sync.WaitGroup
}

func (r *relay) begin() {
	r.t.Helper()
	listener, err := net.Listen("unix", r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.conns.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", r.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			r.conns.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			r.conns.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
			r.conns.Go(func() { <-ctx.Done(); _ = in.Close(); _ = out.Close() })
		}
	})
	r.stop = func() {
		_ = listener.Close()
		cancel()
		r.conns.Wait()
	}
}

func TestAClientReturnsToItsCallWhenTheDaemonIsBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r := &relay{t: t, path: filepath.Join(s.dir, "run", "relay.sock"), to: s.socket}
	r.begin()
	client, err := api.Connect(t.Context(), r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, open := s.gated()
	var starts int
	working := make(chan struct{})
	var once sync.Once
	type outcome struct {
		result supervisor.RoundResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := client.Refine(t.Context(), refine(session), func(event any) {
			switch m := event.(type) {
			case supervisor.RoundStarted:
				starts++
			case lanes.Progress:
				if m.Phase == "responding" {
					once.Do(func() { close(working) })
				}
			}
		})
		done <- outcome{result, err}
	}()
	<-working
	r.stop()
	open()
	var calls api.Calls
	s.ask("GET", "/v1/calls", nil, &calls)
	s.follow("GET", "/v1/calls/"+calls.Calls[0].ID+"/events", nil).until("a result", typed(api.EventResult))
	r.begin()
	defer r.stop()
	o := <-done
	if o.err != nil || o.result.Complete() != 3 || starts != 1 || s.childrenStarted() != 3 {
		t.Errorf("result %+v (%v), announced %d times, %d children", o.result, o.err, starts, s.childrenStarted())
	}
	if s.ask("GET", "/v1/calls", nil, &calls); len(calls.Calls) != 0 {
		t.Errorf("the client did not acknowledge: %+v", calls)
	}
}

func TestAClientWhoseDaemonStaysAwaySaysHowToGoOn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r := &relay{t: t, path: filepath.Join(s.dir, "run", "relay.sock"), to: s.socket}
	r.begin()
	client, err := api.Connect(t.Context(), r.path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, _ := s.gated()
	var round supervisor.RoundStarted
	_, err = client.Refine(t.Context(), refine(session), func(event any) {
		if m, ok := event.(supervisor.RoundStarted); ok {
			round = m
			r.stop()
		}
	})
	lost, ok := errors.AsType[*api.LostCallError](err)
	if !ok || lost.RoundID != round.RoundID || lost.RunID != round.RunID || round.RoundID == "" {
		t.Errorf("round %+v ended with %v", round, err)
	}
}

func TestAShutdownLetsCallsComeToTheirEnd(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]time.Duration{"cancels at once": 0, "drains": patience} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			session, open := s.gated()
			client := s.client()
			working := make(chan struct{})
			var once sync.Once
			done := make(chan supervisor.RoundResult, 1)
			go func() {
				result, err := client.Refine(context.Background(), refine(session), func(event any) {
					if _, ok := event.(supervisor.RoundStarted); ok {
						once.Do(func() { close(working) })
					}
				})
				if err != nil {
					t.Error(err)
				}
				done <- result
			}()
			<-working
			ended := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				ended <- s.server.Shutdown(ctx, drain)
			}()
			if drain > 0 {
				s.untilStopping()
				_, err := s.client().Refine(t.Context(), refine(s.session), nil)
				if _, ok := errors.AsType[*supervisor.ClosedError](err); !ok {
					t.Errorf("new work while it drains: %v", err)
				}
				open()
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			result := <-done
			want := lanes.Cancelled
			if drain > 0 {
				want = lanes.Complete
			}
			for _, lane := range result.Lanes {
				if lane.Status != want {
					t.Errorf("lane %s is %s, want %s (%+v)", lane.LaneID, lane.Status, want, lane.Error)
				}
			}
			s.end()
			s.begin() // the client acknowledged before the daemon left
			var calls api.Calls
			if s.ask("GET", "/v1/calls", nil, &calls); len(calls.Calls) != 0 {
				t.Errorf("delivered and still waiting: %+v", calls)
			}
		})
	}
}

// untilStopping waits until the daemon says that it takes no new work.
func (s *scene) untilStopping() {
	s.t.Helper()
	for {
		var health api.Health
		if s.ask("GET", "/v1/health", nil, &health); health.Stopping {
			return
		}
	}
}

func TestACorruptRecordIsLeftAlone(t *testing.T) {
	t.Parallel()
	const text = `{"schema":1,"call":{"id":"c1"`
	s := newScene(t, func(s *scene) {
		if err := os.Mkdir(s.spool, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(s.spool, "c1.json"), text)
	})
	contains(t, s.log.String(), "c1.json is corrupt")
	var problem api.Problem
	if status := s.ask("POST", "/v1/calls", post("c1", s.session), &problem); status != http.StatusBadRequest {
		t.Errorf("the id of a corrupt record was taken with %d", status)
	}
	if data, err := os.ReadFile(filepath.Join(s.spool, "c1.json")); err != nil || string(data) != text {
		t.Errorf("the corrupt record is now %q (%v)", data, err)
	}
	s.follow("POST", "/v1/calls", post("c2", s.session)).until("a result", typed(api.EventResult))
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	event, _ := s.follow("POST", "/v1/calls", post("c", s.session)).until("a result", typed(api.EventResult))
	s.end()
	data, err := os.ReadFile(filepath.Join(s.spool, "c.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	call, ok := record["call"].(map[string]any)
	if !ok {
		t.Fatalf("record %s", data)
	}
	ended, err := time.Parse(time.RFC3339, fmt.Sprint(call["ended"]))
	if err != nil {
		t.Fatal(err)
	}
	// 300 more: those with odd numbers were delivered, and all ended before the first.
	for i := range 300 {
		call["id"], call["state"] = fmt.Sprintf("c%03d", i), "finished"
		if i%2 == 1 {
			call["state"] = "delivered"
		}
		call["ended"] = ended.Add(-time.Duration(300-i) * time.Second).Format(time.RFC3339Nano)
		write(t, filepath.Join(s.spool, fmt.Sprintf("c%03d.json", i)), spell(t, record))
	}
	s.begin()
	left := func() int {
		files, err := filepath.Glob(filepath.Join(s.spool, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	if left() != 256 {
		t.Errorf("%d records are kept", left())
	}
	for id, want := range map[string]int{"c": 200, "c000": 200, "c298": 200, "c001": 404, "c089": 404, "c091": 200} {
		if status := s.ask("GET", "/v1/calls/"+id, nil, new(any)); status != want {
			t.Errorf("call %s has status %d, want %d", id, status, want)
		}
	}
	s.end()
	s.options.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
	s.begin()
	if left() != 0 {
		t.Errorf("%d records are kept after 8 days", left())
	}
	// The answers themselves are the run's, and stay.
	for _, lane := range result(t, event).Lanes {
		if _, err := os.Stat(*lane.ResultFile); err != nil {
			t.Error(err)
		}
	}
}

func TestASpoolThatCannotBeWrittenKeepsTheDaemonFromStarting(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	system, err := supervisor.New(supervisor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = system.Close(context.Background()) }()
	_, err = api.NewServer(api.Options{System: system, Spool: filepath.Join(file, "calls")})
	if err == nil || !strings.Contains(err.Error(), file) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("started with %v", err)
	}
}
