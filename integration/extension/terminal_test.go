package extension_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"pilothouse/integration/piharness"
	"pilothouse/integration/scriptedmodel"
)

// terminal is a Pi at a terminal, as a person has it.
type terminal struct {
	t       *testing.T
	cmd     *exec.Cmd
	screen  *os.File
	output  lockedBuffer
	reading sync.WaitGroup
	cursor  int // in the text, what says has not passed
}

const (
	tab    = "\t"
	escape = "\x1b"
	altL   = "\x1bl"
	enter  = "\r"
)

// terminal starts Pi at a terminal of 120 columns and 40 rows.
func (s *scene) terminal() *terminal {
	s.t.Helper()
	pi := piharness.NewPi(s.t)
	p := &terminal{t: s.t, cmd: exec.Command(pi[0], append(pi[1:len(pi):len(pi)], "--no-session")...)}
	p.cmd.Dir, p.cmd.Env = s.dir, append(s.env[:len(s.env):len(s.env)], "TERM=xterm-256color")
	screen, err := pty.StartWithSize(p.cmd, &pty.Winsize{Cols: 120, Rows: 40})
	if err != nil {
		s.t.Fatal(err)
	}
	p.screen = screen
	p.reading.Go(func() {
		buffer := make([]byte, 32<<10)
		for {
			n, err := screen.Read(buffer)
			_, _ = p.output.Write(buffer[:n]) // a buffer in memory takes all
			if err != nil {
				return
			}
		}
	})
	s.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()         // killed
		_ = p.screen.Close()     // it was only looked at
		p.reading.Wait()
	})
	p.says("plain") // the name of the model, in the last line
	return p
}

// control is what a terminal does not show.
var control = regexp.MustCompile(`\x1b\[[0-9;:?<=>]*[ -/]*[@-~]|\x1b[\]_P^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Za-z]|\x1b[=>78]`)

// says waits until the terminal has shown words since the last that it was waited for.
func (p *terminal) says(words string) {
	p.t.Helper()
	if !p.shows(words, patience) {
		p.t.Fatalf("the terminal never says %q after:\n%s", words, p.shown())
	}
}

// shows tells whether the terminal shows words before the time is over.
func (p *terminal) shows(words string, within time.Duration) bool {
	deadline := time.After(within)
	for {
		if at := strings.Index(p.shown(), words); at >= 0 {
			p.cursor += at + len(words)
			return true
		}
		select {
		case <-deadline:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// shown is what the terminal has shown since the last words that it was waited for.
func (p *terminal) shown() string {
	text := control.ReplaceAllString(p.output.String(), "")
	return text[min(p.cursor, len(text)):]
}

func (p *terminal) types(keys string) {
	p.t.Helper()
	if _, err := p.screen.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// reviewed asks for a review by three reviewers, and returns when the overlay shows it.
// Pi keeps the text in its editor when enter comes while it still starts, so enter is
// pressed until it is taken.
func (p *terminal) reviewed() {
	p.t.Helper()
	p.types("Review it. " + scriptedmodel.Script(refine(map[string]any{"reviewers": 3}), scriptedmodel.Step{Text: "The session goes on."}))
	deadline := time.Now().Add(patience)
	for p.types(enter); !p.shows(overlayTitle, time.Second); p.types(enter) {
		if time.Now().After(deadline) {
			p.t.Fatalf("there is no overlay:\n%s", p.shown())
		}
	}
}

// overlayTitle is how the overlay of a review begins.
const overlayTitle = "╭─ Reviewer (sim/plain) ─"

func TestClosingTheOverlayLeavesTheLanesAtWork(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm("reviewer")
	finish := s.gated()
	p := s.terminal()
	p.reviewed()
	p.says("▸ correctness")
	p.says("I look at the oven.") // what a lane says, while it says it
	p.types(tab)
	p.says("▸ ordering")
	p.types(escape)
	p.says("correctness: responding") // in the row of the tool, which the overlay had covered
	p.types(altL)
	p.says(overlayTitle)
	finish()
	p.says("3/3 done")
	p.says("The session goes on.")
	if lanes := s.ask("/v1/lanes").at("lanes").list(); len(lanes) != 0 {
		t.Errorf("lanes are left: %v", lanes)
	}
}

func TestALaneIsCancelledFromTheOverlayAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm("reviewer")
	finish := s.gated()
	p := s.terminal()
	p.reviewed()
	p.says("▸ correctness")
	s.responding(3)
	p.types("x")
	p.says("Cancel correctness?")
	p.types("y")
	p.says("the user cancelled the lane")
	s.responding(2)
	finish()
	p.says("3/3 done")
	p.says("The session goes on.")
}

func TestEscapeAfterTheOverlayAbortsTheRound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.confirm("reviewer")
	s.gated()
	p := s.terminal()
	p.reviewed()
	p.says("▸ correctness")
	s.responding(3)
	p.types(escape)
	p.says("correctness: ")
	p.types(escape)
	p.says("cancelled: the Pi session was aborted")
}
