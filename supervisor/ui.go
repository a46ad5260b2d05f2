package supervisor

import (
	"context"
	"fmt"
)

// UI is whoever sits before a session. Where nobody does, Select, Confirm, Input and
// Edit come back at once as if they had been dismissed. All end with ctx.
type UI interface {
	// Has tells whether somebody can be asked.
	Has() bool
	// Mode is Pi's: tui, rpc, json or print.
	Mode() string
	// Editor tells whether Edit shows an editor of several lines.
	Editor() bool
	// Idle tells whether the agent was at rest when the user was last heard of: at the
	// beginning of the conversation, or with the last answer that told it.
	Idle() bool
	// Size of the screen, 0 when it is not known.
	Size() (rows, cols int)
	// Models are the selectors, provider/model, of the models that can be had, as far as
	// the session told.
	Models() []string
	// Select offers options. Not ok: dismissed.
	Select(ctx context.Context, title string, options []string) (index int, ok bool, err error)
	Confirm(ctx context.Context, title, message string) (bool, error)
	// Input asks for one line. Not ok: dismissed.
	Input(ctx context.Context, title, placeholder string) (text string, ok bool, err error)
	// Edit opens text in an editor. Not ok: dismissed.
	Edit(ctx context.Context, title, text string) (edited string, ok bool, err error)
	// Perform does actions now and not with the reply, and returns when they are done.
	// A *PerformError says which one failed, as the session put it.
	Perform(ctx context.Context, actions ...Action) error
}

// PerformError tells that a session could not do what it was asked to.
type PerformError struct{ Reason string }

func (e *PerformError) Error() string { return "the session could not do it: " + e.Reason }

// Screen is what a session says of its user interface.
type Screen struct {
	Has    bool   `json:"has"`
	Mode   string `json:"mode"`
	Editor bool   `json:"editor"`
	Rows   int    `json:"rows"`
	Cols   int    `json:"cols"`
	Idle   bool   `json:"idle"`
	// Models are selectors, provider/model, of those that can be had. Only a command that
	// offers them needs them.
	Models []string `json:"models,omitempty"`
}

// DialogKind says how a [Dialog] is shown and which field of the [Answer] counts.
type DialogKind string

// The kinds of dialogs.
const (
	DialogSelect  DialogKind = "select"  // Options; answered by Index
	DialogConfirm DialogKind = "confirm" // Message; answered by Index: 0 yes, 1 no
	DialogInput   DialogKind = "input"   // Placeholder; answered by Text
	DialogEditor  DialogKind = "editor"  // Text; answered by Text
	// DialogPerform shows nothing: the actions of the reply are done and what became of
	// them is reported, Failed "" for success.
	DialogPerform DialogKind = "perform"
)

// Dialog asks the user.
type Dialog struct {
	Conversation string     `json:"conversation"`
	Step         int        `json:"step"` // of the conversation, from 1
	Kind         DialogKind `json:"kind"`
	Title        string     `json:"title,omitempty"`
	Message      string     `json:"message,omitempty"`
	Options      []string   `json:"options,omitempty"`
	Text         string     `json:"text,omitempty"` // to start from
	Placeholder  string     `json:"placeholder,omitempty"`
}

// Answer to a [Dialog]. What counts must be there: an empty answer chooses nothing.
type Answer struct {
	// Step of the dialog that is answered; 0 means the one that is open.
	Step      int     `json:"step,omitempty"`
	Cancelled bool    `json:"cancelled,omitempty"` // dismissed
	Index     *int    `json:"index,omitempty"`
	Text      *string `json:"text,omitempty"`
	Failed    string  `json:"failed,omitempty"` // why the actions of a perform were not done
	// Idle tells whether the agent is at rest now; nil when the session does not tell.
	Idle *bool `json:"idle,omitempty"`
}

// check says what an answer lacks.
func (a Answer) check(d Dialog) error {
	switch {
	case a.Step != 0 && a.Step != d.Step:
		return &ConversationBusyError{d.Conversation}
	case a.Cancelled || d.Kind == DialogPerform:
		return nil
	}
	choices := len(d.Options)
	switch d.Kind {
	case DialogConfirm:
		choices = 2
	case DialogInput, DialogEditor:
		if a.Text == nil {
			return inputErrorf("the answer has neither text nor cancelled")
		}
		return nil
	}
	if a.Index == nil {
		return inputErrorf("the answer has neither index nor cancelled")
	}
	if *a.Index < 0 || *a.Index >= choices {
		return inputErrorf("the answer has the index %d; the dialog has %d choices, from 0", *a.Index, choices)
	}
	return nil
}

// panel is the UI of a conversation: the screen at its other end.
type panel struct {
	*conversation
	screen Screen
}

func (p panel) Has() bool              { return p.screen.Has }
func (p panel) Mode() string           { return p.screen.Mode }
func (p panel) Editor() bool           { return p.screen.Has && p.screen.Editor }
func (p panel) Idle() bool             { return p.idle }
func (p panel) Size() (rows, cols int) { return p.screen.Rows, p.screen.Cols }
func (p panel) Models() []string       { return p.screen.Models }

func (p panel) Select(ctx context.Context, title string, options []string) (int, bool, error) {
	a, err := p.show(ctx, Dialog{Kind: DialogSelect, Title: title, Options: options})
	if err != nil || a.Cancelled {
		return 0, false, err
	}
	return *a.Index, true, nil
}

func (p panel) Confirm(ctx context.Context, title, message string) (bool, error) {
	a, err := p.show(ctx, Dialog{Kind: DialogConfirm, Title: title, Message: message})
	return err == nil && !a.Cancelled && *a.Index == 0, err
}

func (p panel) Input(ctx context.Context, title, placeholder string) (string, bool, error) {
	a, err := p.show(ctx, Dialog{Kind: DialogInput, Title: title, Placeholder: placeholder})
	return lines(a, err)
}

func (p panel) Edit(ctx context.Context, title, prefill string) (string, bool, error) {
	a, err := p.show(ctx, Dialog{Kind: DialogEditor, Title: title, Text: prefill})
	return lines(a, err)
}

func lines(a Answer, err error) (string, bool, error) {
	if err != nil || a.Cancelled {
		return "", false, err
	}
	return *a.Text, true, nil
}

// show asks with a dialog, if there is somebody to ask.
func (p panel) show(ctx context.Context, d Dialog) (Answer, error) {
	if !p.screen.Has {
		return Answer{Cancelled: true}, nil
	}
	return p.ask(ctx, Reply{Dialog: &d})
}

func (p panel) Perform(ctx context.Context, actions ...Action) error {
	a, err := p.ask(ctx, Reply{Actions: actions, Dialog: &Dialog{Kind: DialogPerform}})
	switch {
	case err != nil:
		return fmt.Errorf("wait for the session: %w", err)
	case a.Failed != "":
		return &PerformError{a.Failed}
	case a.Cancelled:
		return &PerformError{"it was cancelled"}
	}
	return nil
}
