// Package api lets many Pi sessions and command lines share one pilothouse: HTTP
// with JSON over a unix socket, each endpoint one message to an actor.
//
// A [Server] stands before a [supervisor.System]; a [Client] has the same methods
// as the System, so that a caller need not know which of the two it works with. What
// travels between them is described by the embedded OpenAPI document, which
// GET /v1/openapi.json serves.
//
// # Calls
//
// A call (refine, analyze_refs, plans) belongs to the daemon once it is accepted: a
// client that goes away ends nothing. Its result waits until one asker acknowledges
// it, over restarts of the daemon too, and is nobody's after that; its answers are
// in the run's directory in any case. The id of a call is the client's choice, and
// a call that is posted again under its id is joined, never started a second time.
//
// # Sessions
//
// A Pi session tells of what happens in it through hooks, and has commands and tools
// that may ask its user answered through conversations: a reply with a dialog is to be
// shown and answered, any other is the end. Hooks, commands and tools are those of
// [supervisor.System]; a conversation does not outlive the daemon, plan mode does.
//
// # Who may connect
//
// The user whose daemon it is, and nobody else: the socket lies in a directory that
// only this user can write to, and both sides check the user id of the other.
package api
