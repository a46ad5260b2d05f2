package execution

import (
	"fmt"
	"strings"
)

// How often an agent is woken up without having reached anything, before it waits for
// its user (spec: execution 5.4).
const (
	MaxNoProgress = 3
	MaxWaiting    = 6
)

// GoalWait decides, each time the agent has come to rest before all checks have passed,
// whether it is woken up to go on. It is kept with the run, so a restart of any process
// forgets none of it. The zero value is that of an execution that has just begun.
type GoalWait struct {
	// Snapshot is [State.Snapshot] when the agent last came to rest.
	Snapshot string `json:"snapshot"`
	// NoProgress and Waiting count the wakes since something was reached: those after
	// which nothing was, and those after which the agent said that it waits.
	NoProgress int `json:"noProgress"`
	Waiting    int `json:"waiting"`
	// Paused says why the agent is not woken up any more, "" while it is.
	Paused string `json:"paused,omitempty"`
	// WakeID marks the last wake. Earlier ones are of no use to the agent.
	WakeID string `json:"wakeId,omitempty"`
	// Judged tells that the agent has not worked since its last rest was judged.
	Judged bool `json:"-"`
}

// Rest is what is known when an agent has come to rest.
type Rest struct {
	// Text and StopReason are those of the agent's last message; Aborted tells that
	// its user interrupted it.
	Text, StopReason string
	Aborted          bool
	// Interactive tells that somebody can see and stop what happens: the session has
	// a user interface.
	Interactive bool
	// Busy tells that something is about to move the agent anyway: it works again,
	// messages wait for it, or its session is being compacted.
	Busy bool
	// Complete and Snapshot are those of the state.
	Complete bool
	Snapshot string
}

// Verdict is what follows from a rest.
type Verdict string

// The verdicts.
const (
	VerdictNone  Verdict = "none"
	VerdictWake  Verdict = "wake"  // send the agent its remaining checks, with the new WakeID
	VerdictPause Verdict = "pause" // Paused says why; tell the user, once
)

// Began notes that the agent has begun to work: its next rest is judged.
func (g *GoalWait) Began() { g.Judged = false }

// Rested judges a rest, once for each time that the agent has worked. WakeID becomes
// the id of the wake that may follow.
func (g *GoalWait) Rested(r Rest, wakeID string) Verdict {
	if !r.Interactive || g.Judged || g.Paused != "" || r.Complete {
		return VerdictNone
	}
	switch {
	case r.StopReason == "error":
		g.Judged = true
		return g.Pause("agent failed")
	case r.Aborted || r.StopReason == "aborted":
		g.Judged = true
		return g.Pause("agent interrupted")
	case r.StopReason != "stop" || r.Busy:
		return VerdictNone
	}
	g.Judged = true
	switch {
	case r.Snapshot != g.Snapshot:
		g.NoProgress, g.Waiting = 0, 0
	case strings.Contains(strings.ToLower(r.Text), "waiting for"):
		g.Waiting++
	default:
		g.NoProgress++
	}
	g.Snapshot = r.Snapshot
	switch {
	case g.NoProgress >= MaxNoProgress:
		return g.Pause(fmt.Sprintf("no progress in %d rounds", g.NoProgress))
	case g.Waiting >= MaxWaiting:
		return g.Pause(fmt.Sprintf("still waiting after %d rounds", g.Waiting))
	}
	g.WakeID = wakeID
	return VerdictWake
}

// Pause ends the wakes until Resume.
func (g *GoalWait) Pause(reason string) Verdict {
	g.Paused, g.WakeID = reason, ""
	return VerdictPause
}

// Resume ends a pause, as its user wants, and tells whether there was one.
func (g *GoalWait) Resume() bool {
	was := g.Paused != ""
	if was {
		g.Paused, g.NoProgress, g.Waiting = "", 0, 0
	}
	return was
}

// Restored takes an execution up again in another session or process. What was reached
// since the last rest is progress; a wake that was sent is void.
func (g *GoalWait) Restored(snapshot string) {
	if g.Snapshot != snapshot {
		g.Snapshot, g.NoProgress, g.Waiting = snapshot, 0, 0
	}
	g.Judged, g.WakeID = false, ""
}
