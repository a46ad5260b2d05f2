package supervisor

import (
	"context"
	"encoding/json"
)

// planModeEntry is what a session keeps of its plan mode in its own history.
const planModeEntry = "pilothouse-plan-mode"

type planModeKept struct {
	Active  bool   `json:"active"`
	Session string `json:"session"` // that was in plan mode, "" when it was not told
}

// restorePlanMode reminds a session of its plan mode, which may be older than this
// process. A copy of a session begins in the plan mode of the point that it was copied at,
// so that what was only to be planned is not carried out unawares; from then on it has its
// own. One that Pi has ended in plan mode is told that it is not in it any more (seed: the
// state lasts for the current process).
func (s *System) restorePlanMode(_ context.Context, session Session, e SessionStartEvent) (Reply, error) {
	mode, err := s.planModes.get(session.ID)
	if err != nil {
		return Reply{}, err
	}
	var kept planModeKept
	if entry := e.last(planModeEntry); entry != nil && json.Unmarshal(entry.Data, &kept) != nil {
		kept = planModeKept{}
	}
	copied := kept.Active && kept.Session != "" && kept.Session != session.ID
	if copied && mode.Generation == 0 {
		if _, mode, err = s.planModes.change(session.ID, planMode.enter); err != nil {
			return Reply{}, err
		}
	}
	switch {
	case mode.Active:
		return Reply{Actions: []Action{
			planStatus(mode), notice(LevelInfo, "Plan mode is still on in this session. /plan off leaves it."),
		}}, nil
	case kept.Active && mode.Generation == 0:
		return notify(LevelInfo, "Plan mode was on in this session and ended with the Pi that had it. /plan enters it again."), nil
	}
	return Reply{}, nil
}
