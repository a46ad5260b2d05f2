package execution

import (
	"fmt"
	"time"
)

// Usage counts the tokens of an execution.
type Usage struct{ In, Out int }

// StatusLine is the line that shows an execution at the bottom of a session (spec:
// execution 5.3).
func (s *State) StatusLine(spent time.Duration, usage Usage, wait GoalWait) string {
	done, total := s.Count()
	line := fmt.Sprintf("⌛ plans %d/%d: spent %s · %s in-toks · %s out-toks", done, total, clock(spent), tokens(usage.In), tokens(usage.Out))
	switch {
	case wait.Paused != "":
		return line + " · paused: " + wait.Paused
	case wait.Waiting > 0:
		return fmt.Sprintf("%s · waiting %d/%d", line, wait.Waiting, MaxWaiting)
	case wait.NoProgress > 0:
		return fmt.Sprintf("%s · no progress %d/%d", line, wait.NoProgress, MaxNoProgress)
	}
	return line
}

func clock(d time.Duration) string {
	seconds := int(max(0, d) / time.Second)
	return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

func tokens(n int) string {
	if n < 1000 {
		return fmt.Sprint(max(0, n))
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}

// IdleLine is the line for a run that is not being executed, by its status and whether
// it has a plan; "" shows nothing.
func IdleLine(runID, status string, planned bool) string {
	switch status {
	case "done":
		return "🎯 plans: " + runID + " (done)"
	case "abandoned":
		return "🚫 plans: " + runID
	case "stopped":
		return "⛔ plans: " + runID
	case "accepted":
		return "⌛ plans: " + runID
	case "planning":
		if planned {
			return "📝 plans: " + runID
		}
		return "💬 plans: " + runID
	}
	return ""
}
