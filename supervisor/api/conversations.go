package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"pilothouse/supervisor"
)

// ConversationRequest starts a command or a tool that may ask the user. As in
// [HookRequest], keys that mean nothing here are passed over.
type ConversationRequest struct {
	Session Session           `json:"session"`
	UI      supervisor.Screen `json:"ui"`
	Kind    string            `json:"kind"` // command or tool
	Name    string            `json:"name"`
	// Args is what follows the name of a command, or the parameters of a tool.
	Args json.RawMessage `json:"args,omitempty"`
}

// AnswerRequest answers the open dialog of a conversation. Session is the id of the
// session that answers; one that is given must be that of the conversation.
type AnswerRequest struct {
	Session string            `json:"session,omitempty"`
	Answer  supervisor.Answer `json:"answer"`
}

// postConversation starts a conversation and waits for its first reply.
func (s *Server) postConversation(w http.ResponseWriter, r *http.Request) error {
	data, err := body(w, r)
	if err != nil {
		return err
	}
	var req ConversationRequest
	if err := json.Unmarshal(data, &req); err != nil {
		return inputErrorf("the request is not a conversation: %v", err)
	}
	if err := req.Session.check(); err != nil {
		return err
	}
	if err := awaitWithoutHurry(w); err != nil {
		return err
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	reply, err := s.system.Converse(ctx, asking(ctx, req.Session), req.UI, req.Kind, req.Name, req.Args)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, reply)
}

// postAnswer answers a dialog and waits for the next reply.
func (s *Server) postAnswer(w http.ResponseWriter, r *http.Request) error {
	data, err := body(w, r)
	if err != nil {
		return err
	}
	var req AnswerRequest
	if err := decodeStrict(data, &req); err != nil {
		return inputErrorf("the request is not an answer: %v", err)
	}
	if err := awaitWithoutHurry(w); err != nil {
		return err
	}
	reply, err := s.system.Answer(r.Context(), req.Session, r.PathValue("conversation"), req.Answer)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, reply)
}

// deleteConversation ends a conversation that its user has aborted.
func (s *Server) deleteConversation(w http.ResponseWriter, r *http.Request) error {
	if err := s.system.EndConversation(r.Context(), r.PathValue("conversation")); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// awaitWithoutHurry lets a request whose body was read wait for its answer: the bound of
// the body would end it as if the client had gone.
func awaitWithoutHurry(w http.ResponseWriter) error {
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("wait for the answer: %w", err)
	}
	return nil
}
