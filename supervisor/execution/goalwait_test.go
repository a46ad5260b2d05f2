package execution_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pilothouse/supervisor/execution"
)

func rest(text string) execution.Rest {
	return execution.Rest{Text: text, StopReason: "stop", Interactive: true, Snapshot: "s"}
}

func TestWhatIsNoRestIsNeitherJudgedNorCounted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*execution.Rest){
		"nobody to see it":     func(r *execution.Rest) { r.Interactive = false },
		"an error unseen":      func(r *execution.Rest) { r.Interactive, r.StopReason = false, "error" },
		"something comes":      func(r *execution.Rest) { r.Busy = true },
		"complete":             func(r *execution.Rest) { r.Complete = true },
		"tool calls":           func(r *execution.Rest) { r.StopReason = "toolUse" },
		"cut off":              func(r *execution.Rest) { r.StopReason = "length" },
		"an unknown reason":    func(r *execution.Rest) { r.StopReason = "other" },
		"no message at all":    func(r *execution.Rest) { r.StopReason = "" },
		"complete and aborted": func(r *execution.Rest) { r.Complete, r.Aborted = true, true },
	} {
		g := execution.GoalWait{Snapshot: "s", NoProgress: 2, Waiting: 5}
		before := g
		r := rest("waiting for it")
		change(&r)
		if v := g.Rested(r, "w"); v != execution.VerdictNone || g != before {
			t.Errorf("%s: %s, %+v", name, v, g)
		}
		if v := g.Rested(rest("on"), "w"); !r.Complete && v != execution.VerdictPause {
			t.Errorf("%s: the rest that follows is %s", name, v)
		}
	}
}

func TestAFailedOrInterruptedAgentIsPausedOnceUntilItsUserGoesOn(t *testing.T) {
	t.Parallel()
	failed, aborted, both := rest(""), rest(""), rest("")
	failed.StopReason, aborted.Aborted, both.StopReason = "error", true, "aborted"
	for want, r := range map[string]execution.Rest{"agent failed": failed, "agent interrupted": aborted} {
		g := execution.GoalWait{WakeID: "old"}
		r.Busy = true // does not matter
		if v := g.Rested(r, "w"); v != execution.VerdictPause || g.Paused != want || g.WakeID != "" {
			t.Errorf("%s: %s, %+v", want, v, g)
		}
		for range 2 {
			g.Began()
			if v := g.Rested(r, "w"); v != execution.VerdictNone {
				t.Errorf("%s: told again: %s", want, v)
			}
		}
		if !g.Resume() || g.Resume() {
			t.Error("a pause ends once")
		}
		g.Began()
		if v := g.Rested(rest("on"), "w"); v != execution.VerdictWake || g.WakeID != "w" {
			t.Errorf("%s: after the pause %s, %+v", want, v, g)
		}
	}
	var g execution.GoalWait
	if g.Rested(both, "w"); g.Paused != "agent interrupted" {
		t.Errorf("got %q", g.Paused)
	}
}

func TestAnAgentIsWokenUpOncePerRestAndPausedAfterThreeWithoutProgressOrSixOfWaiting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text   string
		wakes  int
		reason string
	}{
		"no progress": {"nothing new", execution.MaxNoProgress - 1, "no progress in 3 rounds"},
		"waiting":     {"still WAITING FOR the build", execution.MaxWaiting - 1, "still waiting after 6 rounds"},
	} {
		g := execution.GoalWait{Snapshot: "s"}
		for i := range c.wakes {
			g.Began()
			id := fmt.Sprint("w", i)
			if v := g.Rested(rest(c.text), id); v != execution.VerdictWake || g.WakeID != id {
				t.Fatalf("%s: rest %d: %s, %+v", name, i, v, g)
			}
			if v := g.Rested(rest(c.text), "again"); v != execution.VerdictNone || g.WakeID != id {
				t.Errorf("%s: judged twice: %s", name, v)
			}
		}
		g.Began()
		if v := g.Rested(rest(c.text), "last"); v != execution.VerdictPause || g.Paused != c.reason || g.WakeID != "" {
			t.Errorf("%s: %s, %+v", name, v, g)
		}
		g.Resume()
		g.Began()
		if v := g.Rested(rest(c.text), "on"); v != execution.VerdictWake {
			t.Errorf("%s: paused again at once: %s %+v", name, v, g)
		}
	}
}

func TestProgressResetsBothCounters(t *testing.T) {
	t.Parallel()
	g := execution.GoalWait{Snapshot: "before", NoProgress: 2, Waiting: 5}
	if v := g.Rested(rest("waiting for it"), "w"); v != execution.VerdictWake || g.NoProgress != 0 || g.Waiting != 0 || g.Snapshot != "s" {
		t.Errorf("%s %+v", v, g)
	}
}

func TestARestoredExecutionKeepsItsCountersUnlessSomethingWasReached(t *testing.T) {
	t.Parallel()
	g := execution.GoalWait{Snapshot: "s", NoProgress: 2, Waiting: 1, WakeID: "old", Judged: true, Paused: "p"}
	g.Restored("s")
	if diff := cmp.Diff(execution.GoalWait{Snapshot: "s", NoProgress: 2, Waiting: 1, Paused: "p"}, g); diff != "" {
		t.Error(diff)
	}
	g.Restored("t")
	if diff := cmp.Diff(execution.GoalWait{Snapshot: "t", Paused: "p"}, g); diff != "" {
		t.Error(diff)
	}
}

// Whatever happens: never more than one wake between two beginnings of the agent, none
// while paused, never more than the limits in a row without progress, the current wake
// is the last one sent, and the record survives a restart.
func TestWhateverHappensAnAgentIsNotWokenUpForEver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var g execution.GoalWait
		snapshot, wakes, idleWakes, n := "", 0, 0, 0
		paused := false
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) { g.Began(); wakes = 0 },
			"rest": func(t *rapid.T) {
				n++
				r := execution.Rest{
					Text:       rapid.SampledFrom([]string{"on", "waiting for x", ""}).Draw(t, "text"),
					StopReason: rapid.SampledFrom([]string{"stop", "stop", "stop", "error", "toolUse", "aborted"}).Draw(t, "reason"),
					Aborted:    rapid.IntRange(0, 9).Draw(t, "aborted") == 0, Interactive: rapid.IntRange(0, 9).Draw(t, "ui") > 0,
					Busy: rapid.IntRange(0, 4).Draw(t, "busy") == 0, Complete: rapid.IntRange(0, 9).Draw(t, "complete") == 0, Snapshot: snapshot,
				}
				progress := r.Snapshot != g.Snapshot
				switch g.Rested(r, fmt.Sprint(n)) {
				case execution.VerdictWake:
					if wakes++; progress {
						idleWakes = 0
					} else {
						idleWakes++
					}
					if paused || wakes > 1 || r.Busy || r.Complete || !r.Interactive || r.StopReason != "stop" || g.WakeID != fmt.Sprint(n) {
						t.Fatalf("woken up %d times: %+v after %+v", wakes, g, r)
					}
					if idleWakes > execution.MaxNoProgress+execution.MaxWaiting {
						t.Fatalf("woken up %d times without progress", idleWakes)
					}
				case execution.VerdictPause:
					if paused || g.Paused == "" {
						t.Fatalf("paused twice or without a reason: %+v", g)
					}
					paused = true
				default:
					if (g.Paused != "") != paused {
						t.Fatalf("paused silently: %+v", g)
					}
				}
			},
			"reach": func(*rapid.T) { snapshot += "x" },
			"resume": func(t *rapid.T) {
				if g.Resume() != paused {
					t.Fatalf("resume of %+v", g)
				}
				paused, idleWakes = false, 0
			},
			"restart": func(t *rapid.T) {
				data, err := json.Marshal(g)
				if err != nil {
					t.Fatal(err)
				}
				var back execution.GoalWait
				g.Judged = false // a restart comes with a new beginning
				if err := json.Unmarshal(data, &back); err != nil || back != g {
					t.Fatalf("%s became %+v, %v", data, back, err)
				}
				if g = back; g.Snapshot != snapshot {
					idleWakes = 0
				}
				g.Restored(snapshot)
				wakes = 0
			},
		})
	})
}
