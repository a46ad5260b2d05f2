package supervisor

import "context"

// planGuidance is appended to the system prompt while plan mode is on (spec: plan mode).
const planGuidance = `# Plan mode

The user has turned plan mode on: find out and plan, and change nothing.

- Read, search and run commands that only look. Every call that could write, install, publish or start other work is blocked, whatever the tool; do not look for a way around a block.
- The tools stay listed as always. That a tool is listed does not mean that it may be used now.
- Keep no todo list for the planning itself.
- Ask the user only what looking cannot answer: intentions, priorities, limits.
- When the plan is complete, call exit_plan_mode with the whole plan as Markdown that begins with a # heading, as the only and last tool call of the turn. The user reviews it. Until it is approved, plan mode stays on.`

// guidePlanning tells the agent of plan mode.
func (s *System) guidePlanning(_ context.Context, session Session, _ BeforeAgentStartEvent) (Reply, error) {
	mode, err := s.planModes.get(session.ID)
	if err != nil || !mode.Active {
		return Reply{}, err
	}
	return Reply{SystemPrompt: planGuidance}, nil
}
