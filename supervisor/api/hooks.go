package api

import (
	"encoding/json"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
)

// HookRequest tells of something that happens in a Pi session. Keys that mean nothing
// here are passed over, in the event too: a daemon that refused them would stand in the
// way of every tool of a session with a newer extension.
type HookRequest struct {
	Session Session         `json:"session"`
	Event   json.RawMessage `json:"event,omitempty"`
}

// postHook answers a hook of a Pi session with what the session has to do.
func (s *Server) postHook(w http.ResponseWriter, r *http.Request) error {
	most := int64(maxBody)
	if r.PathValue("hook") == "session_before_compact" {
		most = maxSessionBody
	}
	data, err := boundedBody(w, r, most)
	if err != nil {
		return err
	}
	var req HookRequest
	if err := json.Unmarshal(data, &req); err != nil {
		return inputErrorf("the request is not a hook: %v", err)
	}
	if err := req.Session.check(); err != nil {
		return err
	}
	if err := awaitWithoutHurry(w); err != nil {
		return err
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	reply, err := s.system.Hook(ctx, asking(ctx, req.Session), r.PathValue("hook"), req.Event)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, reply)
}
