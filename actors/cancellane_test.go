package actors_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/lanes/lanestest"
)

func TestOneLaneIsCancelledWhereverItStandsAndTheRoundGoesOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cancel []string
		spares int
		starts []string // lanes of later batches that start a child
	}{
		"at work":                         {[]string{"ref-2"}, 0, []string{"ref-4", "ref-5", "ref-6", "ref-7"}},
		"in a batch that is not there":    {[]string{"ref-5"}, 0, []string{"ref-4", "ref-6", "ref-7"}},
		"alone in its batch":              {[]string{"ref-7"}, 0, []string{"ref-4", "ref-5", "ref-6"}},
		"with its whole batch":            {[]string{"ref-4", "ref-5", "ref-6"}, 0, []string{"ref-7"}},
		"with all that come later":        {[]string{"ref-7", "ref-4", "ref-6", "ref-5"}, 0, nil},
		"while its child waits warm":      {[]string{"ref-5"}, 3, []string{"ref-4", "ref-5", "ref-6", "ref-7"}},
		"with its whole batch while warm": {[]string{"ref-4", "ref-5", "ref-6"}, 3, []string{"ref-4", "ref-5", "ref-6", "ref-7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := lanestest.NewHost(t, holding)
			host.Spares = test.spares
			all := planned(7)
			stage := play(t, all, host, nil)
			stage.Send(lanes.Begin{})
			var first []*lanestest.Child
			for _, id := range []string{"ref-1", "ref-2", "ref-3"} {
				child := host.Next(t, id)
				child.At(t, "work")
				first = append(first, child)
			}
			if test.spares > 0 {
				for _, id := range []string{"ref-4", "ref-5", "ref-6"} {
					host.Next(t, id)
				}
			}
			stage.Send(lanes.CancelLane{LaneID: "nobody", Reason: "enough"})
			for _, id := range test.cancel {
				stage.Send(lanes.CancelLane{LaneID: id, Reason: "enough"})
				m := lanestest.Await(t, stage, func(m actors.LaneJudged) bool { return m.Outcome.Result.LaneID == id })
				if r := m.Outcome.Result; r.Status != lanes.Cancelled || r.Error.Message != "enough" {
					t.Errorf("lane %s ended %s: %+v", id, r.Status, r.Error)
				}
				stage.Send(lanes.CancelLane{LaneID: id, Reason: "it is over"})
			}
			for _, child := range first {
				child.Release("work")
			}
			for _, child := range host.Children() { // the warm ones
				child.Release("work")
			}
			want := map[string]string{}
			for _, lane := range all {
				want[lane.Spec.ID] = string(lanes.Complete)
			}
			for _, id := range test.cancel {
				want[id] = string(lanes.Cancelled)
			}
			for _, id := range test.starts {
				if test.spares == 0 || id == "ref-7" {
					host.Next(t, id).Release("work")
				}
			}
			if diff := cmp.Diff(want, judged(t, stage, all)); diff != "" {
				t.Error(diff)
			}
			var started []string
			for _, child := range host.Children()[len(first):] {
				started = append(started, child.Spec.ID)
			}
			slices.Sort(started)
			if diff := cmp.Diff(test.starts, started); diff != "" {
				t.Errorf("children of later batches (-want +got):\n%s", diff)
			}
		})
	}
}
