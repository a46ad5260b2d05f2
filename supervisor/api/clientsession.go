package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"pilothouse/supervisor"
)

// Hook tells of something that happens in a Pi session as [supervisor.System.Hook] does.
func (c *Client) Hook(ctx context.Context, session supervisor.Session, name string, event json.RawMessage) (supervisor.Reply, error) {
	var reply supervisor.Reply
	err := c.do(ctx, http.MethodPost, "/v1/hooks/"+url.PathEscape(name), HookRequest{sessionOf(session), event}, &reply)
	return reply, err
}

// Converse starts a command or a tool that may ask the user as
// [supervisor.System.Converse] does.
func (c *Client) Converse(ctx context.Context, session supervisor.Session, screen supervisor.Screen, kind, name string, args json.RawMessage) (supervisor.Reply, error) {
	var reply supervisor.Reply
	err := c.do(ctx, http.MethodPost, "/v1/conversations", ConversationRequest{sessionOf(session), screen, kind, name, args}, &reply)
	return reply, err
}

// Answer answers the open dialog of a conversation as [supervisor.System.Answer] does.
func (c *Client) Answer(ctx context.Context, sessionID, conversation string, answer supervisor.Answer) (supervisor.Reply, error) {
	var reply supervisor.Reply
	err := c.do(ctx, http.MethodPost, "/v1/conversations/"+url.PathEscape(conversation)+"/answer", AnswerRequest{sessionID, answer}, &reply)
	return reply, err
}

// EndConversation ends a conversation as [supervisor.System.EndConversation] does.
func (c *Client) EndConversation(ctx context.Context, conversation string) error {
	return c.do(ctx, http.MethodDelete, "/v1/conversations/"+url.PathEscape(conversation), nil, new(struct{}))
}
