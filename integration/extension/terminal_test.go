package extension_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// terminal is a Pi at a terminal of tmux, as a person has it.
type terminal struct {
	*scene
	socket string // of tmux
}

// terminal starts Pi at a terminal, and returns when it answers what is typed.
func (s *scene) terminal() *terminal {
	s.t.Helper()
	p := s.terminalStarting()
	p.types("Good morning. " + scriptedmodel.Script(says("The oven is warm.")))
	// While it starts, Pi leaves what was entered in its editor.
	s.Eventually("Pi answers", func() bool {
		p.keys("Enter")
		return s.Model.Stats().Requests > 0
	})
	p.shows("The oven is warm.")
	return p
}

// terminalStarting starts Pi at a terminal of 120 columns and 40 rows.
func (s *scene) terminalStarting() *terminal {
	s.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		s.t.Skip("tmux is not installed, and it is the terminal of these tests")
	}
	p := &terminal{s, filepath.Join(s.Runtime, "tmux")}
	pi := piharness.NewPi(s.t)
	p.tmux(append([]string{"new-session", "-d", "-s", "t", "-x", "120", "-y", "40"}, append(pi, "--no-session")...)...)
	pid, err := strconv.Atoi(strings.TrimSpace(p.tmux("display-message", "-p", "-t", "t", "#{pane_pid}")))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { p.end(pid) })
	return p
}

// end ends Pi and returns when it has gone: until then it would start a daemon anew.
func (p *terminal) end(pid int) {
	p.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		p.t.Errorf("end Pi: %v", err)
	}
	p.Eventually("the terminal has closed", func() bool {
		_, err := p.try("has-session", "-t", "t")
		return err != nil
	})
}

func (p *terminal) tmux(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatalf("tmux %.100q: %v\n%s", args, err, out)
	}
	return out
}

func (p *terminal) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), piharness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", p.socket, "-f", os.DevNull}, args...)...)
	cmd.Dir, cmd.Env = p.Dir, append(p.Env[:len(p.Env):len(p.Env)], "TERM=xterm-256color")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// types enters text as it is, keys presses keys by the names that tmux has for them.
func (p *terminal) types(text string) {
	p.t.Helper()
	p.tmux("send-keys", "-t", "t", "-l", "--", text)
}

func (p *terminal) keys(names ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys", "-t", "t"}, names...)...)
}

// says is an answer. Its first word has marks that the screen does not show, so that the
// answer there is told from its script in the user's message.
func says(text string) scriptedmodel.Step {
	first, rest, _ := strings.Cut(text, " ")
	return scriptedmodel.Step{Text: "**" + first + "** " + rest}
}

// asks types a message whose answers are scripted, and enters it, once the agent is at rest.
func (p *terminal) asks(text string, steps ...scriptedmodel.Step) {
	p.t.Helper()
	p.hides(" Working ")
	p.types(text + " " + scriptedmodel.Script(steps...))
	p.keys("Enter")
}

// screen is what a person sees.
func (p *terminal) screen() string {
	p.t.Helper()
	return p.tmux("capture-pane", "-p", "-t", "t")
}

// shows waits until all the words are on the screen together, and returns the screen.
func (p *terminal) shows(words ...string) string {
	p.t.Helper()
	return p.becomes("shows "+strings.Join(words, ", "), func(screen string) bool {
		for _, word := range words {
			if !strings.Contains(screen, word) {
				return false
			}
		}
		return true
	})
}

// hides waits until words are not on the screen any more.
func (p *terminal) hides(words string) {
	p.t.Helper()
	p.becomes("does not show "+words, func(screen string) bool { return !strings.Contains(screen, words) })
}

func (p *terminal) becomes(what string, as func(screen string) bool) string {
	p.t.Helper()
	deadline := time.After(piharness.Patience)
	for {
		screen := p.screen()
		if as(screen) {
			return screen
		}
		select {
		case <-deadline:
			p.t.Fatalf("the terminal never %s:\n%s", what, screen)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// terminalReviewing is a terminal whose overlay shows a review by three reviewers, until
// the returned function lets them finish.
func (s *scene) terminalReviewing() (p *terminal, finish func()) {
	s.t.Helper()
	s.confirm("reviewer")
	finish = s.gated()
	p = s.terminal()
	p.asks("Review it.", refine(map[string]any{"reviewers": 3}), says("The session goes on."))
	p.shows(overlayTitle, "▸ correctness")
	return p, finish
}

// overlayTitle is how the overlay of a review begins.
const overlayTitle = "╭─ Reviewer (sim/plain) ─"

func TestClosingTheOverlayLeavesTheLanesAtWork(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p, finish := s.terminalReviewing()
	p.shows("I look at the oven.") // what a lane says, while it says it
	p.keys("Tab")
	p.shows("▸ ordering")
	p.keys("Escape")
	p.hides(overlayTitle)
	p.shows("correctness: responding", "● verification responding", "alt+l shows the lanes") // the row of the tool, and the widget
	p.keys("M-l")
	p.shows(overlayTitle)
	p.hides("alt+l shows the lanes")
	finish()
	p.shows("Reviewer (sim/plain) — 3/3 done", "The session goes on.")
	p.hides(overlayTitle)
	if lanes := s.Ask("/v1/lanes").At("lanes").List(); len(lanes) != 0 {
		t.Errorf("lanes are left: %v", lanes)
	}
}

func TestTheWidgetGoesWithItsRound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p, finish := s.terminalReviewing()
	p.keys("Escape")
	p.shows("Reviewer (sim/plain) · 0/3 done · 3 running · 0:", "alt+l shows the lanes")
	finish()
	p.shows("The session goes on.")
	p.hides("alt+l shows the lanes")
	p.keys("M-l")
	p.shows("No round is at work in this session.")
}

func TestALaneIsCancelledFromTheOverlayAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p, finish := s.terminalReviewing()
	s.responding(3)
	p.keys("x")
	p.shows("Cancel correctness?")
	p.keys("y")
	p.shows("the user cancelled the lane")
	s.responding(2)
	finish()
	p.shows("3/3 done", "The session goes on.")
}

func TestEscapeAfterTheOverlayAbortsTheRound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p, _ := s.terminalReviewing()
	s.responding(3)
	p.keys("Escape")
	p.hides(overlayTitle)
	p.keys("Escape")
	p.shows("cancelled: the Pi session was aborted")
}
