package supervisor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"pilothouse/supervisor/guard"
)

// gate is what stands before the tools of a session: plan mode, the write guard of a
// run that is being planned, or nothing.
type gate struct {
	planMode bool
	planning bool // the run that the session means is being planned
	bound    bool // that run is the session's own
	policy   guard.Policy
}

func (g gate) open() bool { return !g.planMode && !g.planning }

// gate finds out what stands before the tools of a session. An error means that it is
// not known; the session must not go on as if nothing did.
func (s *System) gate(ctx context.Context, session Session) (gate, error) {
	mode, err := s.planModes.get(session.ID)
	if err != nil {
		return gate{}, err
	}
	m, err := s.meant(ctx, session)
	if err != nil {
		return gate{}, err
	}
	g := gate{planMode: mode.Active, planning: m.planning(), bound: m.bound}
	if g.open() {
		return g, nil
	}
	g.policy = s.policyFor(session, m)
	if !g.planning {
		g.policy.Planning = nil // in plan mode nothing is written, unless a run has a plan to be written
	}
	if !g.planMode {
		g.policy.Downloads = g.policy.Planning
		g.policy.WaysOut = waysOut(m, strings.Join(g.policy.Planning, ", "))
	}
	return g, nil
}

// waysOut is what a session is told that may not write because a run is being planned, its
// own or that of the workspace.
func waysOut(m meantRun, planning string) string {
	if m.bound {
		return fmt.Sprintf("While run %s is planned, the workspace is read-only outside planning artifacts (%s); "+
			"inspect with other commands, put the change into the plan, and have it approved with execute_plan, or ask the user for /plans-abandon.",
			m.run.RunID, planning)
	}
	return fmt.Sprintf("Run %s is planned in this workspace, by another session: until it is approved or given up there, files are read-only here "+
		"outside planning artifacts (%s), unless this session has a run of its own. Ask the user how to go on: "+
		"/resume-plans takes the run up here when nobody works on it, /plans-abandon gives it up.", m.run.RunID, planning)
}

// policyFor is the policy for a session and the run that it means. What is wrong with the
// project's additions, the guard command tells.
func (s *System) policyFor(session Session, m meantRun) guard.Policy {
	if m.root == nil {
		policy, _ := policyOf(session.Workdir, nil, nil)
		return policy
	}
	key := session.Workdir
	if m.run != nil {
		key += "\x00" + m.run.ArtifactDir
	}
	settings := []string{filepath.Join(m.root.Dir, "config.json"), guardFilePath(*m.root)}
	policy, _ := s.policies.get(key, settings, func() (guard.Policy, error) {
		policy, _ := policyOf(session.Workdir, m.root, m.run)
		return policy, nil
	})
	return policy
}

// tool judges the call of a tool.
func (g gate) tool(call guard.ToolCall) guard.Verdict {
	if g.planMode {
		return g.policy.Tool(call)
	}
	return g.policy.Writes(call, g.bound)
}

// denialEntry is the record of a blocked call in the session itself (faults G97).
const denialEntry = "pilothouse-denial"

// denial is the data of such an entry.
type denial struct {
	Subject string `json:"subject"` // what was blocked: tool or user_bash
	Tool    string `json:"tool,omitempty"`
	Call    string `json:"toolCallId,omitempty"`
	Reason  string `json:"reason"`
}

// verdict counts a judgement and turns it into a reply. A block is put on record in the
// session, which keeps its words; the log has none of them.
func (s *System) verdict(session Session, v guard.Verdict, d denial) Reply {
	s.metrics.judged(d.Subject, v.Decision)
	if v.Allowed() {
		return Reply{}
	}
	d.Reason = v.Reason
	s.logger.Info("call blocked", "session", session.ID, "subject", d.Subject)
	return Reply{Block: &Block{Reason: v.Reason}, Actions: []Action{entry(denialEntry, d)}}
}
