package supervisor

import "context"

// InputEvent is what somebody or something typed. StreamingBehavior is "" while the
// agent is at rest.
type InputEvent struct {
	Text              string `json:"text"`
	Source            string `json:"source"` // interactive, rpc or extension
	StreamingBehavior string `json:"streamingBehavior"`
}

// external tells whether the input comes from outside of the session.
func (e InputEvent) external() bool { return e.Source == "interactive" || e.Source == "rpc" }

func (s *System) input(ctx context.Context, session Session, e InputEvent) (Reply, error) {
	return contribute(ctx, session, e, s.queueInterview, s.executionInput)
}
