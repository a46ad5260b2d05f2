package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"pilothouse/store"
)

// resumePlans is /resume-plans: it lets the user choose a run and hands its brief to
// the agent as one message (spec: checkpoint 2.6). Whatever ends it earlier changes
// nothing. One at a time: two choosers would fight for the same runs.
func resumePlans(ctx context.Context, s *System, session Session, ui UI, _ json.RawMessage) (Reply, error) {
	if !ui.Has() {
		return notify(LevelError, "/resume-plans is interactive: it needs a terminal session, or `pilothouse resume`."), nil
	}
	if !ui.Idle() {
		return agentBusy(), nil
	}
	if _, open := s.resuming.LoadOrStore(session.ID, true); open {
		return notify(LevelWarning, "Another /resume-plans is open; finish it first."), nil
	}
	defer s.resuming.Delete(session.ID)
	root, err := store.Find(ctx, session.Workdir)
	if errors.Is(err, store.ErrNoState) {
		return notify(LevelInfo, "No resumable run: this directory is in no repository."), nil
	}
	if err != nil {
		return Reply{}, err
	}
	chosen, end, err := s.chooseRun(ctx, session, ui)
	if chosen == nil || err != nil {
		return end, err
	}
	for _, question := range []string{chosen.MoveQuestion(root.Worktree), chosen.LegacyQuestion()} {
		if question == "" {
			continue
		}
		yes, err := ui.Confirm(ctx, "Resume "+chosen.RunID, question)
		if err != nil {
			return Reply{}, err
		}
		switch {
		case !yes:
			return notify(LevelInfo, "Cancelled; nothing was changed."), nil
		case !ui.Idle():
			return agentBusy(), nil
		}
	}
	resumed, err := s.Resume(ctx, ResumeRequest{Session: session, RunID: chosen.RunID, Move: true, Legacy: true})
	if err != nil {
		if ctx.Err() != nil {
			return Reply{}, err
		}
		return notify(LevelError, fmt.Sprintf("Run %s was not resumed: %v", chosen.RunID, err)), nil
	}
	actions := []Action{entry(runStartEntry, runStart{resumed.RunID})}
	r, cp, release, err := s.executionOf(ctx, session)
	if err != nil {
		return Reply{}, err
	}
	if r != nil { // the session has its snapshot at once, so that its next start does not lose the execution
		actions = append(actions, r.drain(cp)...)
		release()
	}
	return Reply{Actions: append(actions,
		notice(LevelInfo, "Resumed run "+resumed.RunID+"."),
		Action{Kind: ActionUser, Text: resumed.Brief},
	)}, nil
}

// agentBusy ends the command before it has changed anything. The agent may have begun to
// work while a dialog was open.
func agentBusy() Reply {
	return notify(LevelWarning, "The agent is busy; use /resume-plans when it has come to rest. Nothing was changed.")
}

// chooseRun is the run that the user means, nil with the reply that ends the command.
func (s *System) chooseRun(ctx context.Context, session Session, ui UI) (*Candidate, Reply, error) {
	candidates, err := s.Candidates(ctx, session)
	if err != nil {
		return nil, Reply{}, err
	}
	if len(candidates) == 0 {
		return nil, notify(LevelInfo, "No resumable run in this workspace."), nil
	}
	chosen, found := DefaultCandidate(candidates)
	if !found {
		labels := make([]string, len(candidates))
		for i, candidate := range candidates {
			labels[i] = candidate.Label()
		}
		index, ok, err := ui.Select(ctx, "Which run should go on?", labels)
		switch {
		case err != nil || !ok:
			return nil, notify(LevelInfo, "Cancelled; nothing was changed."), err
		case !ui.Idle():
			return nil, agentBusy(), nil
		}
		chosen = candidates[index]
	}
	if chosen.Corrupt != "" {
		return nil, notify(LevelError, fmt.Sprintf("Run %s cannot be resumed: %s", chosen.RunID, chosen.Corrupt)), nil
	}
	return &chosen, Reply{}, nil
}

// notify is a reply that only tells the user something.
func notify(level, text string) Reply { return Reply{Actions: []Action{notice(level, text)}} }
