package api_test

import (
	"errors"
	"net/http"
	"testing"

	"pilothouse/lanes"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

func TestOneLaneOfACallIsCancelledOverTheSocket(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session, open := s.gated()
	stream := s.follow("POST", "/v1/calls", post("c1", session))
	responding := map[string]bool{}
	stream.until("three lanes that respond", func(e api.Event) bool {
		if e.Progress != nil && e.Progress.Phase == "responding" {
			responding[e.Progress.LaneID] = true
		}
		return len(responding) == 3
	})
	client := s.client()
	if err := client.CancelLane(t.Context(), "c1", "ordering", "not this one"); err != nil {
		t.Fatal(err)
	}
	ended, _ := stream.until("the end of the lane", typed(api.EventLane))
	if ended.Lane.LaneID != "ordering" || ended.Lane.Status != lanes.Cancelled || ended.Lane.Error.Message != "not this one" {
		t.Errorf("%+v", ended.Lane)
	}
	for what, lane := range map[string]string{"a lane that has ended": "ordering", "a lane that there is not": "no/body?"} {
		var absent *supervisor.NoLaneError
		if err := client.CancelLane(t.Context(), "c1", lane, ""); !errors.As(err, &absent) || absent.LaneID != lane || absent.RoundID == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
	var problem api.Problem
	if status := s.ask("DELETE", "/v1/calls/c1/lanes/nobody", nil, &problem); status != http.StatusNotFound || problem.Type != "urn:pilothouse:no-lane" {
		t.Errorf("status %d: %+v", status, problem)
	}
	contains(t, problem.Detail, `no lane "nobody" at work`, "pilothouse show")
	if status := s.ask("DELETE", "/v1/calls/none/lanes/ordering", nil, &problem); status != http.StatusNotFound {
		t.Errorf("a call that there is not: status %d", status)
	}
	open()
	end, _ := stream.until("the result", last)
	for _, lane := range result(t, end).Lanes {
		want := lanes.Complete
		if lane.LaneID == "ordering" {
			want = lanes.Cancelled
		}
		if lane.Status != want {
			t.Errorf("lane %s is %s, want %s", lane.LaneID, lane.Status, want)
		}
	}
}

// A call of plans has no round, and so no lanes.
func TestACallWithoutARoundHasNoLaneToCancel(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.follow("POST", "/v1/calls", map[string]any{
		"id": "p1", "tool": "plans", "session": map[string]any{"workdir": s.session.Workdir}, "params": map[string]any{"action": "show"},
	}).until("its end", last)
	var problem api.Problem
	if status := s.ask("DELETE", "/v1/calls/p1/lanes/general", nil, &problem); status != http.StatusNotFound {
		t.Errorf("status %d", status)
	}
	contains(t, problem.Detail, `no lane "general" at work`)
}
