package supervisor

import (
	"context"
	"fmt"
	"strings"

	"pilothouse/supervisor/compaction"
)

// prePlanState is the compaction between the start of a run and its first question
// (spec: compaction 6.6). Pi ends the turn for it; whatever becomes of it, the turn goes
// on once. A daemon that has not asked for it, because it was started in between, still
// lets the turn go on.
type prePlanState struct{ asked, resumed bool }

// pending tells whether the turn waits for the compaction.
func (p *prePlanState) pending() bool { return p.asked && !p.resumed }

func (p *prePlanState) ask() Reply {
	if p.asked || p.resumed {
		return Reply{}
	}
	p.asked = true
	return Reply{Actions: []Action{{Kind: ActionCompact, Instructions: compaction.PrePlanHint}}}
}

func (p *prePlanState) over(m prePlanOver) Reply {
	if p.resumed {
		return Reply{}
	}
	p.resumed = true
	return prePlanResume(m.failure)
}

// prePlanResume lets the planning turn go on.
func prePlanResume(failure string) Reply {
	var reply Reply
	if failure != "" {
		reply.Actions = append(reply.Actions, notice(LevelInfo, fmt.Sprintf("The compaction before planning was skipped: %s.", reasonOf(failure))))
	}
	reply.Actions = append(reply.Actions, hiddenResume("pi-plans-preplan-resume", "Continue planning."))
	return reply
}

// prePlanThen begins the word that comes back with the report on the compaction; the id
// of the run follows.
const prePlanThen = "pre-plan "

// prePlanCompaction asks for a compaction when a session has started a run, so that the
// plan begins with an empty desk. While a plan is carried out there is none.
func (s *System) prePlanCompaction(ctx context.Context, session Session, e ToolResultEvent) (Reply, error) {
	if e.ToolName != "plans" || e.Input["action"] != "start-run" {
		return Reply{}, nil
	}
	m, err := s.meant(ctx, session)
	if err != nil || !m.bound || !m.planning() {
		return Reply{}, err
	}
	r, _, release, err := s.executionOf(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if r != nil {
		release()
		return Reply{}, nil
	}
	if !s.compactionConfig(ctx, *m.root).PrePlanCompact {
		return Reply{}, nil
	}
	reply, err := s.askCompactor(ctx, session, m.dir, prePlan{})
	for i := range reply.Actions {
		reply.Actions[i].Then = prePlanThen + m.dir.ID
	}
	return reply, err
}

// prePlanEnded takes the report on that compaction, if this is one. Where the run cannot
// be asked the turn goes on all the same: there is one report, and nobody else would.
func (s *System) prePlanEnded(ctx context.Context, session Session, then, failure string) (reply Reply, ours bool) {
	runID, ours := strings.CutPrefix(then, prePlanThen)
	if !ours {
		return Reply{}, false
	}
	root, found, err := s.rootOf(ctx, session)
	if err != nil || !found {
		return prePlanResume(failure), true
	}
	run, err := root.Run(runID)
	if err != nil {
		return prePlanResume(failure), true
	}
	reply, err = s.askCompactor(ctx, session, run, prePlanOver{failure})
	if err != nil {
		s.logger.Warn("end of the compaction before planning not noted", "run", runID, "error", err)
		return prePlanResume(failure), true
	}
	return reply, true
}
