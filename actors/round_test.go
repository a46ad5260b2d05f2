package actors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
	"pilothouse/lanes/pijson"
	"pilothouse/lanes/proc"
)

// planned makes n lanes, three to a batch.
func planned(n int) []actors.Lane {
	var all []actors.Lane
	for i := range n {
		id := fmt.Sprintf("ref-%d", i+1)
		all = append(all, actors.Lane{
			Batch: i/lanes.BatchSize + 1,
			Spec: lanes.Spec{
				ID: id, Name: "refs-" + id, Dir: "/", Tools: []string{"read"}, Task: "Task: " + id, Limits: lanes.Limits{RetryDelay: 1},
			},
		})
	}
	return all
}

// play starts the role actor of a round.
func play(t *testing.T, all []actors.Lane, host lanes.Host, fault lanestest.Fault) *lanestest.Stage {
	t.Helper()
	return lanestest.Play(t, actors.NewRound("r1", actors.RefAnalyst, all, host), fault)
}

// holding stops at "work" before it answers.
func holding(c *lanestest.Child) proc.Exit {
	if _, ok := c.Task(); !ok {
		return lanestest.Code(143)
	}
	c.Print(lanestest.Opening()...)
	if !c.Hold("work") {
		return lanestest.Code(143)
	}
	c.Print(lanestest.Join(lanestest.Says("the answer of "+c.Spec.ID), lanestest.Closing())...)
	return lanestest.Code(0)
}

// judged waits for the end of a round and returns how each lane ended, in order:
// every lane once and RoundFinished last.
func judged(t *testing.T, stage *lanestest.Stage, all []actors.Lane) map[string]string {
	t.Helper()
	stage.AwaitEnd(t)
	ends, err := endsOf(stage, all)
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

func endsOf(stage *lanestest.Stage, all []actors.Lane) (map[string]string, error) {
	ends := map[string]string{}
	finished := 0
	for _, heard := range stage.Heard() {
		switch m := heard.(type) {
		case actors.LaneJudged:
			r := m.Outcome.Result
			if finished > 0 {
				return nil, fmt.Errorf("lane %s is judged after the end of the round", r.LaneID)
			}
			if _, twice := ends[r.LaneID]; twice {
				return nil, fmt.Errorf("lane %s is judged twice", r.LaneID)
			}
			if m.RoundID != "r1" || m.Outcome.Lane.Spec.ID != r.LaneID || !r.Status.Terminal() || (r.Error == nil) != (r.Status == lanes.Complete) {
				return nil, fmt.Errorf("the record makes no sense: %+v", m)
			}
			ends[r.LaneID] = string(r.Status)
			if r.Status == lanes.Failed {
				ends[r.LaneID] = string(r.Error.Class)
			}
		case actors.RoundFinished:
			finished++
		}
	}
	if finished != 1 {
		return nil, fmt.Errorf("the round finished %d times", finished)
	}
	if len(ends) != len(all) {
		return nil, fmt.Errorf("%d of %d lanes are judged", len(ends), len(all))
	}
	return ends, nil
}

func TestAtMostThreeLanesWorkAtOnceAndBatchesFollowEachOther(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding)
	all := planned(10)
	stage := play(t, all, host, nil)
	stage.Send(lanes.Begin{})
	for batch := range 4 {
		var children []*lanestest.Child
		for i := batch * 3; i < min(batch*3+3, len(all)); i++ {
			child := host.Next(t, all[i].Spec.ID)
			child.At(t, "work")
			children = append(children, child)
		}
		if host.Alive() != len(children) || len(host.Children()) != batch*3+len(children) {
			t.Errorf("batch %d: %d children alive of %d started", batch+1, host.Alive(), len(host.Children()))
		}
		for _, child := range children {
			child.Release("work")
		}
	}
	for id, end := range judged(t, stage, all) {
		if end != "complete" {
			t.Errorf("lane %s: %s", id, end)
		}
	}
	if host.Peak() != 3 {
		t.Errorf("%d children at once, want 3", host.Peak())
	}
}

func TestABatchWaitsForTheLastChildOfTheOneBefore(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		_, _ = c.Task()
		c.Print(lanestest.Answer("ok")...)
		if c.Spec.ID == "ref-2" {
			c.CloseStdout()
			c.HoldThrough("exit")
		}
		return lanestest.Code(0)
	})
	all := planned(4)
	stage := play(t, all, host, func(_ string, message any) any {
		if _, ok := message.(*actor.Started); ok && len(host.Children()) >= 3 && host.Alive() != 0 {
			t.Error("the second batch starts while a child of the first is alive")
		}
		return nil
	})
	stage.Send(lanes.Begin{})
	child := host.Next(t, "ref-2")
	child.At(t, "exit")
	lanestest.Await(t, stage, func(m actors.LaneJudged) bool { return m.Outcome.Result.LaneID == "ref-3" })
	if n := host.Starts("ref-4"); n != 0 {
		t.Error("the second batch started before the first was gone")
	}
	child.Release("exit")
	judged(t, stage, all)
}

func TestALaneThatIsRefusedFailsWithoutAChild(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding)
	host.Prepare = func(c *lanestest.Child) { c.Release("work") }
	all := planned(5)
	all[0].Refused, all[3].Refused, all[4].Refused = "reference directory not found: /x", "reference directory not found: /y", "reference directory not found: /z"
	stage := play(t, all, host, nil)
	stage.Send(lanes.Begin{})
	want := map[string]string{
		"ref-1": "start_failure", "ref-2": "complete", "ref-3": "complete", "ref-4": "start_failure", "ref-5": "start_failure",
	}
	if diff := cmp.Diff(want, judged(t, stage, all)); diff != "" {
		t.Error(diff)
	}
	first := lanestest.All[actors.LaneJudged](stage)[0].Outcome.Result
	if first.LaneID != "ref-1" || first.Error.Message != all[0].Refused || first.Attempts != 0 {
		t.Errorf("the refused lane: %+v", first)
	}
	if len(host.Children()) != 2 {
		t.Errorf("%d children, want 2", len(host.Children()))
	}
}

func TestARoundWithoutLanesFinishes(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"empty": false, "all refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []actors.Lane
			if refused {
				all = planned(2)
				all[0].Refused, all[1].Refused = "no", "no"
			}
			stage := play(t, all, lanestest.NewHost(t, holding), nil)
			stage.Send(lanes.Begin{})
			judged(t, stage, all)
		})
	}
}

func TestARoundIsCancelled(t *testing.T) {
	t.Parallel()
	t.Run("before it begins", func(t *testing.T) {
		t.Parallel()
		host := lanestest.NewHost(t, holding)
		all := planned(4)
		all[1].Refused = "no such directory"
		stage := play(t, all, host, nil)
		stage.Send(lanes.Cancel{Reason: "enough"})
		stage.Send(lanes.Begin{})
		want := map[string]string{"ref-1": "cancelled", "ref-2": "start_failure", "ref-3": "cancelled", "ref-4": "cancelled"}
		if diff := cmp.Diff(want, judged(t, stage, all)); diff != "" {
			t.Error(diff)
		}
		if len(host.Children()) != 0 {
			t.Errorf("%d children were started", len(host.Children()))
		}
	})
	t.Run("while a second batch waits", func(t *testing.T) {
		t.Parallel()
		host := lanestest.NewHost(t, holding)
		all := planned(7)
		stage := play(t, all, host, nil)
		stage.Send(lanes.Begin{})
		host.Next(t, "ref-2").Release("work")
		lanestest.Await(t, stage, func(m actors.LaneJudged) bool { return m.Outcome.Result.LaneID == "ref-2" })
		host.Next(t, "ref-1").At(t, "work")
		host.Next(t, "ref-3").At(t, "work")
		stage.Send(lanes.Cancel{Reason: "enough"})
		stage.Send(lanes.Cancel{Reason: "really"})
		want := map[string]string{"ref-2": "complete"}
		for _, id := range []string{"ref-1", "ref-3", "ref-4", "ref-5", "ref-6", "ref-7"} {
			want[id] = "cancelled"
		}
		if diff := cmp.Diff(want, judged(t, stage, all)); diff != "" {
			t.Error(diff)
		}
		for _, m := range lanestest.All[actors.LaneJudged](stage) {
			if r := m.Outcome.Result; r.Error != nil && !strings.HasPrefix(r.Error.Message, "enough") {
				t.Errorf("lane %s: %q, want the first reason", r.LaneID, r.Error.Message)
			}
		}
		if len(host.Children()) != 3 {
			t.Errorf("%d children, want those of the first batch", len(host.Children()))
		}
	})
}

func TestABatchThatPanicsFailsItsLanesOnly(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
		if c.Spec.ID != "ref-1" && c.Spec.ID != "ref-2" {
			c.Release("work")
		}
		return holding(c)
	})
	all := planned(7)
	stage := play(t, all, host, func(_ string, message any) any {
		if _, ok := message.(poke); ok {
			return "poked"
		}
		return nil
	})
	stage.Send(lanes.Begin{})
	lanestest.Await(t, stage, func(m actors.LaneJudged) bool { return m.Outcome.Result.LaneID == "ref-3" })
	host.Next(t, "ref-1").At(t, "work")
	host.Next(t, "ref-2").At(t, "work")
	stage.SendTo(t, "batch-1", poke{})
	want := map[string]string{"ref-1": "internal", "ref-2": "internal"}
	for i := 3; i <= 7; i++ {
		want[fmt.Sprintf("ref-%d", i)] = "complete"
	}
	if diff := cmp.Diff(want, judged(t, stage, all)); diff != "" {
		t.Error(diff)
	}
	got := lanestest.Await(t, stage, func(m actors.LaneJudged) bool { return m.Outcome.Result.LaneID == "ref-1" })
	if message := got.Outcome.Result.Error.Message; !strings.Contains(message, "poked") {
		t.Errorf("the reason is lost: %s", message)
	}
}

type poke struct{}

func TestAnAnswerIsJudgedByItsRole(t *testing.T) {
	t.Parallel()
	for role, which := range map[actors.Role]func(actors.Report) bool{
		actors.Reviewer:   func(r actors.Report) bool { return r.Review != nil && r.Criticism == nil && r.Analysis == nil },
		actors.Criticizer: func(r actors.Report) bool { return r.Criticism != nil && r.Review == nil && r.Analysis == nil },
		actors.RefAnalyst: func(r actors.Report) bool { return r.Analysis != nil && r.Review == nil && r.Criticism == nil },
	} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, func(c *lanestest.Child) proc.Exit {
				_, _ = c.Task()
				if c.Spec.ID == "ref-2" {
					c.Print(lanestest.Join(lanestest.Opening(), lanestest.Fails("401: no"), lanestest.Closing())...)
					return lanestest.Code(0)
				}
				c.Print(lanestest.Answer("LGTM")...)
				return lanestest.Code(0)
			})
			all := planned(2)
			stage := lanestest.Play(t, actors.NewRound("r1", role, all, host), nil)
			stage.Send(lanes.Begin{})
			stage.AwaitEnd(t)
			for _, m := range lanestest.All[actors.LaneJudged](stage) {
				report := m.Outcome.Report
				switch m.Outcome.Result.LaneID {
				case "ref-1":
					if !which(report) || report.WellFormed || len(report.Problems) == 0 || m.Outcome.Result.Output != "LGTM" {
						t.Errorf("an answer without form: %+v", report)
					}
				case "ref-2":
					if diff := cmp.Diff(actors.Report{}, report); diff != "" || m.Outcome.Result.Error.Class != pijson.ClassAuth {
						t.Errorf("a lane without an answer has a report: %s", diff)
					}
				}
			}
		})
	}
}

func TestARoundPassesProgressOn(t *testing.T) {
	t.Parallel()
	host := lanestest.NewHost(t, holding)
	stage := play(t, planned(1), host, nil)
	stage.Send(lanes.Begin{})
	m := lanestest.Await[actors.LaneProgress](t, stage, nil)
	if m.RoundID != "r1" || m.Progress.LaneID != "ref-1" || m.Progress.Status != lanes.Running {
		t.Errorf("%+v", m)
	}
	host.Next(t, "ref-1").Release("work")
	stage.AwaitEnd(t)
}
