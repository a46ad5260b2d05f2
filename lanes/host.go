package lanes

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"pilothouse/lanes/proc"
)

// Host is a place where children run. A lane asks for one and does not care
// where it is. Start returns once the child exists; it has no task yet. From
// then on the child does not depend on ctx.
type Host interface {
	Start(ctx context.Context, spec Spec, traceparent string) (Child, error)
	// Places are asked before a child is started.
	Places
	// Contended tells the host that a child lost the fight for one of pi's lock
	// files, so that it keeps further starts apart.
	Contended()
}

// Child is one pi process that a [Host] started.
type Child interface {
	// Feed gives the child its task and closes its stdin. It never blocks.
	Feed(task []byte)
	// Stdout is the event stream; it must be read to its end, while the child
	// is being ended too: pi waits for its last write (Pi fact §7).
	Stdout() io.Reader
	// Terminate starts the kill ladder and returns at once. Idempotent.
	Terminate()
	// Done is closed when the child and its descendants are gone, Wait returns then.
	Done() <-chan struct{}
	Wait() proc.Exit
}

// PiHost starts pi children on this machine.
type PiHost struct {
	Spawner *proc.Spawner
	Command Command
	// Environ is the environment of the session that asked. It is kept in
	// memory only and never logged: it holds credentials.
	Environ []string
	// Scratch is the directory for system prompt files, 0700.
	Scratch string
	// Places are those of the run that the host works for.
	Places
	// Turns bound how many children are being started at once.
	Turns *Turns
	// Pace keeps starts apart after a fight for pi's lock files.
	Pace *Pace
	// Extension is the file of the one extension that sessions have, "" for none. Lanes
	// never have any.
	Extension string
	// Metrics counts the children; nil counts nothing.
	Metrics *Metrics
}

// Contended implements [Host].
func (h *PiHost) Contended() { h.Pace.Contended() }

// Variables of a child's environment.
const (
	// refinerVariable tells pi-plans inside a child that it is a read-only lane,
	// so that it stays inert (spec: subagents 4.3).
	refinerVariable     = "PI_PLANS_REFINER"
	traceparentVariable = "TRACEPARENT" // W3C trace context
)

// Start implements [Host]. An error of the program or the machine is a
// *proc.StartError.
func (h *PiHost) Start(ctx context.Context, spec Spec, traceparent string) (Child, error) {
	child, err := h.start(ctx, spec, setEnv(h.Environ, refinerVariable, "1"), traceparent, piArgs)
	if err != nil {
		return nil, err
	}
	return child, nil
}

// start starts pi with the arguments that args gives for a prompt file.
func (h *PiHost) start(ctx context.Context, spec Spec, environ []string, traceparent string, args func(spec Spec, prompt string, untrusting bool) []string) (*piChild, error) {
	if err := h.Pace.wait(ctx); err != nil {
		return nil, err
	}
	defer h.Turns.Take(ctx, Beginning)()
	prompt, err := h.writePrompt(spec.SystemPrompt)
	if err != nil {
		return nil, err
	}
	if traceparent != "" {
		environ = setEnv(environ, traceparentVariable, traceparent)
	}
	child, err := h.Spawner.Start(ctx, proc.Spec{
		Path:  h.Command.Path,
		Args:  append(append([]string{}, h.Command.Args...), args(spec, prompt, h.Command.Untrusting)...),
		Dir:   spec.Dir,
		Env:   environ,
		Label: spec.Name,
	})
	if err != nil {
		_ = os.RemoveAll(filepath.Dir(prompt))
		return nil, err
	}
	h.Metrics.childStarted()
	return &piChild{Child: child, prompt: prompt, turns: h.Turns, metrics: h.Metrics}, nil
}

// setEnv returns a copy of environ in which name has this value only: of two
// values of one name a child may see either.
func setEnv(environ []string, name, value string) []string {
	set := make([]string, 0, len(environ)+2)
	for _, variable := range environ {
		if !strings.HasPrefix(variable, name+"=") {
			set = append(set, variable)
		}
	}
	return append(set, name+"="+value)
}

// piArgs is the argv of a lane. The isolation flags keep a workspace (or a
// downloaded reference, which nobody has vetted) from changing the lane through
// extensions, skills, templates or context files of its own (Pi fact §2).
func piArgs(spec Spec, prompt string, untrusting bool) []string {
	args := []string{
		"--mode", "json", "-p", "--no-session",
		"--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files",
		"--tools", strings.Join(spec.Tools, ","),
	}
	if untrusting {
		args = append(args, "--no-approve")
	}
	if spec.Model != "" {
		args = append(args, "--model", spec.Model)
	}
	return append(args, "--append-system-prompt", prompt)
}

// writePrompt stores the system prompt in a private file of a private
// directory: argv is visible to every user of the machine, and pi would take
// the path of a missing file as the prompt itself (Pi fact §2).
func (h *PiHost) writePrompt(text string) (string, error) {
	dir, err := os.MkdirTemp(h.Scratch, "lane-")
	if err != nil {
		return "", fmt.Errorf("write system prompt: %w", err)
	}
	path := filepath.Join(dir, "system-prompt.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("write system prompt: %w", err)
	}
	return path, nil
}

// piChild removes its prompt file once it is gone.
type piChild struct {
	*proc.Child
	prompt  string
	turns   *Turns
	metrics *Metrics
	ended   sync.Once
}

func (c *piChild) Wait() proc.Exit {
	exit := c.Child.Wait()
	c.ended.Do(func() {
		end := c.turns.Take(context.Background(), UnderWay)
		_ = os.RemoveAll(filepath.Dir(c.prompt))
		end()
		c.metrics.childEnded(exit)
	})
	return exit
}
