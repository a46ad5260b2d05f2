package lanes

import (
	"context"
	"slices"
	"strings"
)

// SessionHost is a place where children run that are talked to for as long as they
// live.
type SessionHost interface {
	// StartSession returns once the child exists. From then on it does not depend on ctx.
	StartSession(ctx context.Context, spec Spec, traceparent string) (SessionChild, error)
	// Places are asked before a child is started.
	Places
}

// SessionChild is one pi in RPC mode.
type SessionChild interface {
	Child
	// Say writes a line to stdin. It never blocks.
	Say(line []byte) error
	// HangUp closes stdin once all is written, which asks pi to leave (Pi fact §10).
	HangUp()
}

// StartSession implements [SessionHost]. It gives a child the same guarantees as that
// of a lane. An error of the program or the machine is a *proc.StartError.
func (h *PiHost) StartSession(ctx context.Context, spec Spec, traceparent string) (SessionChild, error) {
	environ := withoutRepository(h.Environ)
	if h.Extension == "" {
		environ = setEnv(environ, refinerVariable, "1")
	}
	child, err := h.start(ctx, spec, environ, traceparent, h.sessionArgs)
	if err != nil {
		return nil, err
	}
	return child, nil
}

// sessionArgs is the argv of a session. It works for the user in the user's own
// workspace, so the context files there count, and nothing there that would run code of
// its own: extensions, of which pi-plans would be one, and what they bring along.
func (h *PiHost) sessionArgs(spec Spec, prompt string, untrusting bool) []string {
	args := []string{
		"--mode", "rpc", "--no-session",
		"--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes",
		"--tools", strings.Join(spec.Tools, ","),
	}
	if h.Extension != "" {
		args = append(args, "--extension", h.Extension)
	}
	if untrusting {
		args = append(args, "--no-approve")
	}
	if spec.Model != "" {
		args = append(args, "--model", spec.Model)
	}
	return append(args, "--append-system-prompt", prompt)
}

// gitKept are the variables of git that say who commits, how to reach others, and where
// the user's configuration is. All others may lead git away from the workspace that a
// child works in: a hook or an alias of git that starts pilothouse sets some of them.
var gitKept = []string{
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	"GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
}

func withoutRepository(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(gitKept, name)
	})
}
