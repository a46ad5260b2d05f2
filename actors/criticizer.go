package actors

import (
	"strconv"
	"time"

	"pilothouse/agents"
)

// CriticizerLane is the id of the only lane of a criticizer round.
const CriticizerLane = "criticizer"

// PlanCriticism makes the one lane of a criticizer round. Its child's name
// carries the time, for a run may have many such rounds (spec: subagents 4.1).
func PlanCriticism(req ReviewRequest, now time.Time) ([]Lane, error) {
	prompt, err := agents.Prompt(string(Criticizer))
	if err != nil {
		return nil, err
	}
	name := req.NamePrefix + "-criticizer-" + strconv.FormatInt(now.UnixMilli(), 36)
	return []Lane{{Batch: 1, Spec: req.spec(CriticizerLane, name, prompt, req.brief(Criticizer, CriticizerLane))}}, nil
}
