package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"pilothouse/actors"
	"pilothouse/lanes"
	"pilothouse/store"
	"pilothouse/supervisor"
)

// Problem is an error on the wire (RFC 9457). As a Go error it reads as the error
// that the daemon met, and unwraps to it where the type of that is known here.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is one plain sentence that names the way out.
	Detail string      `json:"detail"`
	Data   ProblemData `json:"data,omitzero"`
}

// ProblemData is what the error carries besides its words. Which fields are set
// depends on the type.
type ProblemData struct {
	Message      string      `json:"message,omitempty"`
	Reason       string      `json:"reason,omitempty"`
	Step         string      `json:"step,omitempty"`
	Gate         actors.Gate `json:"gate,omitempty"`
	Role         actors.Role `json:"role,omitempty"`
	RunID        string      `json:"runId,omitempty"`
	RoundID      string      `json:"roundId,omitempty"`
	Call         string      `json:"call,omitempty"`
	Lane         string      `json:"lane,omitempty"`
	Conversation string      `json:"conversation,omitempty"`
	Host         string      `json:"host,omitempty"`
	PID          int         `json:"pid,omitempty"`
	SessionID    string      `json:"sessionId,omitempty"`
	Path         string      `json:"path,omitempty"`
	Words        string      `json:"words,omitempty"`
	Delivered    time.Time   `json:"delivered,omitzero"`
}

// typePrefix starts the type of every problem of ours.
const typePrefix = "urn:pilothouse:"

func (p *Problem) Error() string { return p.Detail }

// Unwrap is the error that the daemon met, nil when its type is not known here.
func (p *Problem) Unwrap() error {
	for _, k := range kinds {
		if p.Type == typePrefix+k.name {
			return k.restore(p.Data)
		}
	}
	return nil
}

// problemOf puts an error on the wire.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	p := &Problem{Type: "about:blank", Title: "Internal error", Status: http.StatusInternalServerError, Detail: err.Error()}
	for _, k := range kinds {
		if data, ok := k.data(err); ok {
			p.Type, p.Title, p.Status, p.Data = typePrefix+k.name, k.title, k.status, data
			break
		}
	}
	return p
}

// kind is a type of problem: a Go error type and back.
type kind struct {
	name, title string
	status      int
	data        func(error) (ProblemData, bool)
	restore     func(ProblemData) error
}

func kindOf[E error](name, title string, status int, data func(E) ProblemData, restore func(ProblemData) E) kind {
	return kind{
		name: name, title: title, status: status,
		data: func(err error) (ProblemData, bool) {
			if e, ok := errors.AsType[E](err); ok {
				return data(e), true
			}
			return ProblemData{}, false
		},
		restore: func(d ProblemData) error { return restore(d) },
	}
}

// kinds are the errors that a caller decides on. The first that an error matches is
// its kind.
var kinds = []kind{
	kindOf("input", "Wrong input", http.StatusBadRequest,
		func(e *supervisor.InputError) ProblemData { return ProblemData{Message: e.Message} },
		func(d ProblemData) *supervisor.InputError { return &supervisor.InputError{Message: d.Message} }),
	kindOf("gate", "A question is to be answered first", http.StatusForbidden,
		func(e *actors.GateError) ProblemData { return ProblemData{Gate: e.Gate, Role: e.Role} },
		func(d ProblemData) *actors.GateError { return &actors.GateError{Gate: d.Gate, Role: d.Role} }),
	kindOf("state", "Not allowed in this state", http.StatusConflict,
		func(e *store.StateError) ProblemData { return ProblemData{Step: e.Step, Reason: e.Reason} },
		func(d ProblemData) *store.StateError { return &store.StateError{Step: d.Step, Reason: d.Reason} }),
	kindOf("owned", "The run belongs to another", http.StatusLocked,
		func(e *store.OwnedError) ProblemData {
			return ProblemData{RunID: e.RunID, Host: e.Host, PID: e.PID, SessionID: e.SessionID, Reason: string(e.Reason)}
		},
		func(d ProblemData) *store.OwnedError {
			return &store.OwnedError{RunID: d.RunID, Host: d.Host, PID: d.PID, SessionID: d.SessionID, Reason: store.OwnedReason(d.Reason)}
		}),
	kindOf("owner-lost", "The run was taken over", http.StatusConflict,
		func(e *store.LostOwnerError) ProblemData { return ProblemData{RunID: e.RunID, Reason: e.Reason} },
		func(d ProblemData) *store.LostOwnerError {
			return &store.LostOwnerError{RunID: d.RunID, Reason: d.Reason}
		}),
	kindOf("cancelled", "Cancelled", http.StatusConflict,
		func(e *supervisor.CancelledError) ProblemData { return ProblemData{Reason: e.Reason} },
		func(d ProblemData) *supervisor.CancelledError { return &supervisor.CancelledError{Reason: d.Reason} }),
	kindOf("run-lost", "The run's supervisor is gone", http.StatusInternalServerError,
		func(e *supervisor.LostRunError) ProblemData { return ProblemData{RunID: e.RunID, Reason: e.Reason} },
		func(d ProblemData) *supervisor.LostRunError {
			return &supervisor.LostRunError{RunID: d.RunID, Reason: d.Reason}
		}),
	kindOf("closed", "Shutting down", http.StatusServiceUnavailable,
		func(*supervisor.ClosedError) ProblemData { return ProblemData{} },
		func(ProblemData) *supervisor.ClosedError { return &supervisor.ClosedError{} }),
	kindOf("no-lane", "No such lane is at work", http.StatusNotFound,
		func(e *supervisor.NoLaneError) ProblemData {
			return ProblemData{RunID: e.RunID, RoundID: e.RoundID, Lane: e.LaneID}
		},
		func(d ProblemData) *supervisor.NoLaneError {
			return &supervisor.NoLaneError{RunID: d.RunID, RoundID: d.RoundID, LaneID: d.Lane}
		}),
	kindOf("conversation-over", "The conversation is over", http.StatusNotFound,
		func(e *supervisor.NoConversationError) ProblemData {
			return ProblemData{Conversation: e.ID, Reason: e.Reason}
		},
		func(d ProblemData) *supervisor.NoConversationError {
			return &supervisor.NoConversationError{ID: d.Conversation, Reason: d.Reason}
		}),
	kindOf("conversation-busy", "The dialog was answered before", http.StatusConflict,
		func(e *supervisor.ConversationBusyError) ProblemData { return ProblemData{Conversation: e.ID} },
		func(d ProblemData) *supervisor.ConversationBusyError {
			return &supervisor.ConversationBusyError{ID: d.Conversation}
		}),
	kindOf("corrupt", "A state file is corrupt", http.StatusInternalServerError,
		func(e *store.CorruptError) ProblemData { return ProblemData{Path: e.Path, Reason: e.Reason} },
		func(d ProblemData) *store.CorruptError { return &store.CorruptError{Path: d.Path, Reason: d.Reason} }),
	kindOf("repository", "Git refuses the repository", http.StatusInternalServerError,
		func(e *store.RepositoryError) ProblemData { return ProblemData{Path: e.Dir, Message: e.Message} },
		func(d ProblemData) *store.RepositoryError {
			return &store.RepositoryError{Dir: d.Path, Message: d.Message}
		}),
	kindOf("command", "Pi cannot be started", http.StatusInternalServerError,
		func(e *lanes.CommandError) ProblemData { return ProblemData{Words: e.Words, Reason: e.Reason} },
		func(d ProblemData) *lanes.CommandError { return &lanes.CommandError{Words: d.Words, Reason: d.Reason} }),
	kindOf("call-lost", "The daemon ended in the middle of the call", http.StatusInternalServerError,
		func(e *LostCallError) ProblemData {
			return ProblemData{Call: e.Call, RunID: e.RunID, RoundID: e.RoundID}
		},
		func(d ProblemData) *LostCallError {
			return &LostCallError{Call: d.Call, RunID: d.RunID, RoundID: d.RoundID}
		}),
	kindOf("delivered", "Delivered already", http.StatusGone,
		func(e *DeliveredError) ProblemData { return ProblemData{Call: e.Call, Delivered: e.At} },
		func(d ProblemData) *DeliveredError { return &DeliveredError{Call: d.Call, At: d.Delivered} }),
}

// LostCallError ends a call whose daemon died while it worked on it. What had been
// stored by then is safe, and a round can be resumed.
type LostCallError struct {
	Call           string
	RunID, RoundID string // "" when no round had started
}

func (e *LostCallError) Error() string {
	if e.RoundID == "" {
		return "the pilothouse daemon ended before it answered; see what was done with `pilothouse show` before you repeat the command"
	}
	return fmt.Sprintf("the pilothouse daemon ended before round %s did; what was stored is safe, `pilothouse show %s` lists it", e.RoundID, e.RunID)
}

// DeliveredError tells a second asker that somebody else has acknowledged the result.
type DeliveredError struct {
	Call string
	At   time.Time
}

func (e *DeliveredError) Error() string {
	return fmt.Sprintf("the result of call %s was delivered at %s; `pilothouse show` still has the answers", e.Call, e.At.UTC().Format(time.RFC3339))
}

// inputErrorf is a mistake in a request, as the supervisor would tell of it.
func inputErrorf(format string, args ...any) error {
	return &supervisor.InputError{Message: fmt.Sprintf(format, args...)}
}

// refusal is a problem of HTTP itself, without a Go error behind it.
func refusal(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}
