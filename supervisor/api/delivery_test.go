package api_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pilothouse/lanes"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

func TestAClientSeesWhatACallerOfTheSystemSees(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var started supervisor.RoundStarted
	var ended []string
	result, err := s.client().Refine(t.Context(), refine(s.session), func(event any) {
		switch m := event.(type) {
		case supervisor.RoundStarted:
			started = m
		case supervisor.LaneEnded:
			ended = append(ended, m.Lane.LaneID)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if result.Complete() != 3 || len(ended) != 3 || started.RoundID != result.RoundID || len(started.Lanes) != 3 {
		t.Fatalf("started %+v, ended %v, result %+v", started, ended, result)
	}
	if output := result.Lanes[0].Output; !strings.Contains(output, "<b> & all") {
		t.Errorf("the answer came as %q", output)
	}
	// The same round asked for again, without and with the daemon: nothing runs, and
	// both results are the same.
	again := refine(s.session)
	again.ResumeRoundID = result.RoundID
	direct, err := s.system.Refine(t.Context(), again, nil)
	if err != nil {
		t.Fatal(err)
	}
	through, err := s.client().Refine(t.Context(), again, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(direct, through, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("result through the daemon (-direct +through):\n%s", diff)
	}
	if s.childrenStarted() != 3 {
		t.Errorf("%d children were started for 3 lanes", s.childrenStarted())
	}
}

func TestACallGoesOnWithoutItsClientAndIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, open := s.gated()
	session.ID = "session-1"
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	stream.until("the round", typed(api.EventStarted))
	stream.leave()
	open()

	first, before := s.follow("GET", "/v1/calls/c1/events", nil).until("a result", last)
	if r := result(t, first); r.Complete() != 3 {
		t.Fatalf("the round came to %+v", r)
	}
	if before[0].Type != api.EventAccepted || before[1].Type != api.EventStarted {
		t.Errorf("the stream began with %s, %s", before[0].Type, before[1].Type)
	}
	for i := range before[1:] {
		if before[i+1].Seq <= before[i].Seq {
			t.Errorf("event %d comes after %d", before[i+1].Seq, before[i].Seq)
		}
	}

	// It waits for the next asker of its session, and of no other.
	var calls api.Calls
	s.ask("GET", "/v1/calls?session=session-1", nil, &calls)
	if len(calls.Calls) != 1 || calls.Calls[0].State != api.StateFinished || calls.Calls[0].RoundID == "" {
		t.Fatalf("waiting for session-1: %+v", calls)
	}
	s.ask("GET", "/v1/calls?session=session-2", nil, &calls)
	if len(calls.Calls) != 0 {
		t.Fatalf("waiting for session-2: %+v", calls)
	}
	var detail api.CallDetail
	if status := s.ask("GET", "/v1/calls/c1", nil, &detail); status != http.StatusOK || detail.Result == nil {
		t.Fatalf("status %d, call %+v", status, detail)
	}
	if status := s.ask("POST", "/v1/calls/c1/ack", nil, &api.Call{}); status != http.StatusOK {
		t.Fatalf("acknowledged with %d", status)
	}

	// The second asker is told so, whichever way it asks.
	var problem api.Problem
	if status := s.ask("POST", "/v1/calls/c1/ack", nil, &problem); status != http.StatusGone {
		t.Errorf("acknowledged again with %d", status)
	}
	var delivered *api.DeliveredError
	if !errors.As(&problem, &delivered) || delivered.Call != "c1" || delivered.At.IsZero() {
		t.Errorf("acknowledged again: %v", &problem)
	}
	event, _ := s.follow("GET", "/v1/calls/c1/events", nil).until("the end", last)
	if event.Problem == nil || !errors.As(event.Problem, &delivered) {
		t.Errorf("the stream of a delivered call ends with %+v", event)
	}
	detail = api.CallDetail{}
	if s.ask("GET", "/v1/calls/c1", nil, &detail); detail.State != api.StateDelivered || detail.Result != nil {
		t.Errorf("a delivered call is %+v", detail)
	}
	if s.ask("GET", "/v1/calls", nil, &calls); len(calls.Calls) != 0 {
		t.Errorf("a delivered call is still listed: %+v", calls)
	}
}

func TestOfManyAskersOneGetsTheResult(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.follow("POST", "/v1/calls", post("c1", s.session)).until("a result", typed(api.EventResult))
	const askers = 16
	granted := make(chan int, askers)
	var all sync.WaitGroup
	for range askers {
		all.Go(func() { granted <- s.ask("POST", "/v1/calls/c1/ack", nil, new(any)) })
	}
	all.Wait()
	close(granted)
	count := map[int]int{}
	for status := range granted {
		count[status]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusGone] != askers-1 {
		t.Errorf("statuses %v", count)
	}
}

func TestACallIsStartedOncePerID(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, open := s.gated()
	first := s.follow("POST", "/v1/calls", post("c1", session))
	first.until("the round", typed(api.EventStarted))
	// Another environment is no other call: the same session has come back.
	back := session
	back.Environ = append([]string{"BACK=1"}, back.Environ...)
	second := s.follow("POST", "/v1/calls?from=2", post("c1", back))
	started, before := second.until("the round", typed(api.EventStarted))
	if len(before) != 0 {
		t.Errorf("from=2 began with %+v", before)
	}
	open()
	for _, stream := range []*events{first, second} {
		event, _ := stream.until("a result", last)
		if r := result(t, event); r.RoundID != started.Started.RoundID {
			t.Errorf("round %s, want %s", r.RoundID, started.Started.RoundID)
		}
	}
	if n := s.childrenStarted(); n != 3 {
		t.Errorf("%d children for 3 lanes", n)
	}
	other := post("c1", session)
	other["params"] = map[string]any{"planPath": "other.md"}
	var problem api.Problem
	if status := s.ask("POST", "/v1/calls", other, &problem); status != http.StatusConflict {
		t.Errorf("another call under the same id: %d %v", status, &problem)
	}
	contains(t, problem.Detail, "c1", "another call")
}

func TestACancelledCallComesToItsResult(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(*scene){
		"by the client": nil,
		"by anybody": func(s *scene) {
			var calls api.Calls
			s.ask("GET", "/v1/calls", nil, &calls)
			var call api.Call
			if status := s.ask("DELETE", "/v1/calls/"+calls.Calls[0].ID+"?reason=enough", nil, &call); status != http.StatusAccepted {
				s.t.Errorf("cancelled with %d", status)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			session, _ := s.gated()
			working := make(chan struct{})
			ctx, stop := contextWithCause(t)
			done := make(chan struct{})
			var round supervisor.RoundResult
			var err error
			go func() {
				defer close(done)
				responding := map[string]bool{}
				round, err = s.client().Refine(ctx, refine(session), func(event any) {
					if p, ok := event.(lanes.Progress); ok && p.Phase == "responding" && !responding[p.LaneID] {
						if responding[p.LaneID] = true; len(responding) == 3 {
							close(working)
						}
					}
				})
			}()
			<-working
			want := "enough"
			if cancel == nil {
				want = "the user left"
				stop(errors.New(want))
			} else {
				cancel(s)
			}
			<-done
			if err != nil {
				t.Fatal(err)
			}
			for _, lane := range round.Lanes {
				if lane.Status != lanes.Cancelled || lane.Error == nil || !strings.Contains(lane.Error.Message, want) {
					t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
				}
			}
		})
	}
}

func TestTheEnvironmentOfASessionStaysInMemory(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-correct-horse"
	s := newScene(t)
	session, open := s.gated()
	session.Environ = append(session.Environ, "API_KEY="+secret)
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	stream.until("the round", typed(api.EventStarted))
	look := func(when string) {
		for _, path := range []string{"/v1/calls", "/v1/calls/c1", "/v1/lanes", "/v1/health"} {
			var told map[string]any
			if s.ask("GET", path, nil, &told); strings.Contains(spell(t, told), secret) {
				t.Errorf("%s: GET %s tells the secret", when, path)
			}
		}
		files, err := filepath.Glob(filepath.Join(s.spool, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: the spool has %v (%v)", when, files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), secret) {
				t.Errorf("%s: %s tells the secret", when, file)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has mode %v (%v)", when, file, info.Mode(), err)
			}
		}
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("%s: the log tells the secret", when)
		}
	}
	look("at work")
	open()
	stream.until("a result", typed(api.EventResult))
	look("finished")
	contains(t, s.log.String(), "call accepted", "call ended")
}
