package api_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

func TestLanesAtWorkAreListed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, open := s.gated()
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	started, _ := stream.until("the round", typed(api.EventStarted))
	responding := map[string]bool{}
	stream.until("three lanes responding", func(e api.Event) bool {
		if e.Progress != nil && e.Progress.Phase == "responding" {
			responding[e.Progress.LaneID] = true
		}
		return len(responding) == 3
	})
	var listed api.Lanes
	s.ask("GET", "/v1/lanes", nil, &listed)
	if len(listed.Lanes) != 3 {
		t.Fatalf("lanes %+v", listed)
	}
	for i, lane := range listed.Lanes {
		if want := actors.ReviewerLanes(3)[i]; lane.LaneID != want || lane.Call != "c1" || lane.RoundID != started.Started.RoundID ||
			lane.Role != actors.Reviewer || lane.Status != lanes.Running || lane.Phase != "responding" || lane.Attempt != 1 {
			t.Errorf("lane %d is %+v", i, lane)
		}
	}
	var health api.Health
	s.ask("GET", "/v1/health", nil, &health)
	if want := (api.LaneCount{Running: 3}); health.Lanes != want || health.Calls.Running != 1 || health.PID != os.Getpid() || health.Version != "1.2.3" {
		t.Errorf("health %+v", health)
	}
	open()
	stream.until("a result", typed(api.EventResult))
	if s.ask("GET", "/v1/lanes", nil, &listed); len(listed.Lanes) != 0 {
		t.Errorf("lanes after the end: %+v", listed)
	}
	if s.ask("GET", "/v1/health", nil, &health); health.Calls.Running != 0 || health.Calls.Waiting != 1 {
		t.Errorf("health after the end: %+v", health)
	}
}

func TestATranscriptIsReadFromAnyOffsetWhileItGrows(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, open := s.gated()
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	stream.until("a lane at work", func(e api.Event) bool { return e.Progress != nil && e.Progress.Phase == "responding" })
	response := s.request("GET", "/v1/lanes/c1/correctness/transcript?follow=1", nil)
	open()
	whole, err := io.ReadAll(response.body) // ends with the lane
	if err != nil {
		t.Fatal(err)
	}
	event, _ := stream.until("a result", typed(api.EventResult))
	kept, err := os.ReadFile(*result(t, event).Lanes[0].Transcript)
	if err != nil || len(kept) == 0 || string(kept) != string(whole) {
		t.Errorf("followed %q, the file has %q (%v)", whole, kept, err)
	}
	rest, err := io.ReadAll(s.request("GET", "/v1/lanes/c1/correctness/transcript?from=10", nil).body)
	if err != nil || string(rest) != string(kept[10:]) {
		t.Errorf("from 10 on: %q (%v)", rest, err)
	}
	for _, lane := range []string{"nobody", "..%2f..%2fetc%2fpasswd"} {
		if status := s.ask("GET", "/v1/lanes/c1/"+lane+"/transcript", nil, new(any)); status != http.StatusNotFound {
			t.Errorf("the transcript of %s has status %d", lane, status)
		}
	}
}

func TestRunsAreThoseOfTheSystem(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client := s.client()
	if _, err := client.Refine(t.Context(), refine(s.session), nil); err != nil {
		t.Fatal(err)
	}
	direct, more, err := s.system.RecentRuns(t.Context(), s.session, 1)
	if err != nil {
		t.Fatal(err)
	}
	through, moreThrough, err := client.RecentRuns(t.Context(), s.session, 1)
	if err != nil || len(through) != 1 || more != moreThrough {
		t.Fatalf("runs %+v, %d more (%v)", through, moreThrough, err)
	}
	if diff := cmp.Diff(direct, through); diff != "" {
		t.Errorf("runs (-direct +through):\n%s", diff)
	}
	for _, id := range []string{"", through[0].RunID} {
		direct, err := s.system.Show(t.Context(), s.session, id)
		if err != nil {
			t.Fatal(err)
		}
		through, err := client.Show(t.Context(), s.session, id)
		if err != nil {
			t.Fatal(err)
		}
		if one, other := spell(t, direct), spell(t, through); one != other {
			t.Errorf("run %q directly:\n%s\nthrough the daemon:\n%s", id, one, other)
		}
	}
}

func TestErrorsAreThoseOfTheSystem(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client := s.client()
	unanswered := refine(s.session)
	unanswered.Model = supervisor.ModelAnswer{}
	missing := refine(s.session)
	missing.PlanPath = "missing.md"
	pi := refine(s.session)
	pi.Pi = "no-such-pi 'x"
	elsewhere := refine(s.session)
	elsewhere.Workdir = t.TempDir()
	for name, req := range map[string]supervisor.RefineRequest{
		"a gate": unanswered, "a missing plan": missing, "a bad pi": pi, "no plan there": elsewhere,
	} {
		_, direct := s.system.Refine(t.Context(), req, nil)
		_, through := client.Refine(t.Context(), req, nil)
		if direct == nil || through == nil || direct.Error() != through.Error() {
			t.Errorf("%s: directly %v, through the daemon %v", name, direct, through)
		}
	}
	_, err := client.Refine(t.Context(), unanswered, nil)
	if gate, ok := errors.AsType[*actors.GateError](err); !ok || gate.Gate != actors.GateModel || gate.Role != actors.Reviewer {
		t.Errorf("the gate came as %#v", err)
	}
	_, err = client.Refine(t.Context(), missing, nil)
	if _, ok := errors.AsType[*supervisor.InputError](err); !ok {
		t.Errorf("the wrong input came as %#v", err)
	}
	_, err = client.Show(t.Context(), s.session, "no/such?run")
	if _, ok := errors.AsType[*supervisor.InputError](err); !ok {
		t.Errorf("the wrong run came as %#v", err)
	}
}

// sse reads server-sent events.
type sse struct {
	t     *testing.T
	lines *bufio.Scanner
	id    string
}

func (s *scene) watch(header ...string) *sse {
	s.t.Helper()
	lines := bufio.NewScanner(s.request("GET", "/v1/events", nil, header...).body)
	lines.Buffer(nil, 1<<20)
	return &sse{t: s.t, lines: lines}
}

// until reads to the event of a name, whose data it returns.
func (e *sse) until(name string) string {
	e.t.Helper()
	event := ""
	for e.lines.Scan() {
		key, value, _ := strings.Cut(e.lines.Text(), ": ")
		switch key {
		case "id":
			e.id = value
		case "event":
			event = value
		case "data":
			if event == name {
				return value
			}
		}
	}
	e.t.Fatalf("the events ended (%v) before %s", e.lines.Err(), name)
	return ""
}

func TestAWatcherHearsOfAllCallsAndResumes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	watcher := s.watch()
	s.follow("POST", "/v1/calls", post("c1", s.session)).until("a result", typed(api.EventResult))
	contains(t, watcher.until("accepted"), `"call":"c1"`)
	accepted := watcher.id
	watcher.until("started")
	contains(t, watcher.until("lane"), `"status":"complete"`, `"output":""`)
	if data := watcher.until("result"); strings.Contains(data, "lanes") {
		t.Errorf("the result comes with its answers: %s", data)
	}
	end := watcher.id

	resumed := s.watch("Last-Event-ID", accepted)
	resumed.until("started")
	if resumed.until("result"); resumed.id != end {
		t.Errorf("resumed to %s, want %s", resumed.id, end)
	}
	for _, id := range []string{"elsewhere-3", accepted + "000000", "nonsense"} {
		s.watch("Last-Event-ID", id).until("reset")
	}
}

func TestAClientWatchesWhatEveryoneDoes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	client := s.client()
	watched, err := client.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Close()
	until := func(eventType string) api.Event {
		t.Helper()
		for {
			e, err := watched.Next()
			if err != nil {
				t.Fatalf("the events ended before %s: %v", eventType, err)
			}
			if e.Type == eventType {
				return e
			}
		}
	}
	session, open := s.gated()
	s.follow("POST", "/v1/calls", post("c1", session)).leave()
	if started := until(api.EventStarted); started.Call != "c1" || len(started.Started.Lanes) != 3 {
		t.Errorf("started %+v", started)
	}
	until(api.EventProgress)
	if calls, err := client.Calls(t.Context()); err != nil || len(calls) != 1 || calls[0].State != api.StateRunning {
		t.Errorf("calls %+v (%v)", calls, err)
	}
	open()
	if lane := until(api.EventLane); lane.Lane.Status != lanes.Complete || lane.Lane.Output != "" {
		t.Errorf("lane %+v", lane.Lane)
	}
	until(api.EventResult)
	ended, err := client.Lanes(t.Context())
	if err != nil || len(ended) != 3 {
		t.Fatalf("lanes %+v (%v)", ended, err)
	}
	for _, lane := range ended {
		if lane.Call != "c1" || lane.Status != lanes.Complete || lane.Usage.Output != 5 || lane.Model != "stub" || lane.Error != nil {
			t.Errorf("lane %+v", lane)
		}
	}
	rest, err := client.Transcript(t.Context(), "c1", "ordering", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	text, err := io.ReadAll(rest)
	if err != nil || !strings.HasPrefix(string(text), `"attempt":1`) || !strings.Contains(string(text), `"text":"looking"`) {
		t.Errorf("the transcript from its second byte on is %q (%v)", text, err)
	}
	s.end()
	if _, err := watched.Next(); err == nil {
		t.Error("the events go on without a daemon")
	}
}

func TestAClientCancelsACallOfAnother(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, _ := s.gated()
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	stream.until("a lane at work", func(e api.Event) bool { return e.Progress != nil && e.Progress.Phase == "responding" })
	client := s.client()
	if call, err := client.CancelCall(t.Context(), "c1", "enough & done"); err != nil || call.ID != "c1" {
		t.Fatalf("call %+v (%v)", call, err)
	}
	event, _ := stream.until("the end", last)
	for _, lane := range result(t, event).Lanes {
		if lane.Status != lanes.Cancelled || !strings.Contains(lane.Error.Message, "enough & done") {
			t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
		}
	}
	listed, err := client.Lanes(t.Context())
	if err != nil || len(listed) != 3 || listed[0].Error == nil || listed[0].Error.Message == "" {
		t.Errorf("lanes %+v (%v)", listed, err)
	}
	if _, err := client.CancelCall(t.Context(), "none", "enough"); err == nil {
		t.Error("a call that is not there can be cancelled")
	}
}
