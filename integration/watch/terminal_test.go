package watch_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pilothouse/integration/piharness"
	"pilothouse/supervisor"
)

// terminal is a shell in a terminal of tmux.
type terminal struct {
	*scene
	socket string
}

func (s *scene) terminal(width, height int) *terminal {
	s.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		s.t.Skip("tmux is not installed, and it is the terminal of these tests")
	}
	term := &terminal{s, filepath.Join(s.Home, "tmux")}
	term.tmux("new-session", "-d", "-s", "t", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "env PS1='$ ' sh")
	s.t.Cleanup(func() { term.tmux("kill-server") })
	term.shows("$")
	return term
}

func (t *terminal) tmux(args ...string) string {
	t.t.Helper()
	return t.must("tmux", append([]string{"-u", "-S", t.socket, "-f", os.DevNull}, args...)...)
}

// keys presses keys by the names that tmux has for them.
func (t *terminal) keys(names ...string) {
	t.t.Helper()
	t.tmux(append([]string{"send-keys", "-t", "t"}, names...)...)
}

// run types a command.
func (t *terminal) run(command string) {
	t.t.Helper()
	t.tmux("send-keys", "-t", "t", "-l", command)
	t.keys("Enter")
}

// screen is what is on the screen, with its escape sequences if styled.
func (t *terminal) screen(styled bool) string {
	t.t.Helper()
	if styled {
		return t.tmux("capture-pane", "-p", "-e", "-t", "t")
	}
	return t.tmux("capture-pane", "-p", "-t", "t")
}

// shows waits until all the words are on the screen.
func (t *terminal) shows(words ...string) string {
	t.t.Helper()
	var screen string
	await(t.t, "a screen with "+strings.Join(words, ", "), func() (string, bool) {
		screen = t.screen(false)
		for _, word := range words {
			if !strings.Contains(screen, word) {
				return screen, false
			}
		}
		return screen, true
	})
	return screen
}

// prompt waits until the shell asks for the next command: the terminal is given back
// before the program that had it is gone.
func (t *terminal) prompt() {
	t.t.Helper()
	await(t.t, "a prompt", func() (string, bool) {
		screen := t.screen(false)
		return screen, strings.HasSuffix(strings.TrimRight(screen, " \n"), "\n$")
	})
}

// watch starts `pilothouse watch` with words before and after it.
func (t *terminal) watch(before string) {
	t.t.Helper()
	t.run(strings.TrimSpace(before + " " + piharness.Binary(t.t) + " watch"))
}

func TestATerminalShowsLanesAndFollowsATranscript(t *testing.T) {
	t.Parallel()
	colour := regexp.MustCompile(`\x1b\[[0-9;]*\b(3[0-8]|4[0-8]|9[0-7])[0-9;]*m`)
	for name, c := range map[string]struct {
		width, height int
		before        string
		coloured      bool
	}{
		"small, without colour": {80, 24, "NO_COLOR=1", false},
		"large":                 {200, 60, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.serve()
			round := s.refine()
			term := s.terminal(c.width, c.height)
			term.watch(c.before)
			term.shows("3 running", "0 queued", "bake-more-bread", "reviewer plan-reviewer-", "0/3 ended",
				"correctness", "ordering", "verification", "tool: read", "1.2k", "$0.25", "Read ␛[31mme␛[0m <img src=x", "計画", "▸ read", "following")
			if got := colour.MatchString(term.screen(true)); got != c.coloured {
				t.Errorf("colours on the screen: %v, want %v", got, c.coloured)
			}
			s.open("more")
			term.shows("◂ read", "const Minutes = 45", "Forty loaves fit.", "responding")
			term.keys("j")
			term.shows("›    ", "ordering · stub-1")
			s.open("done")
			term.shows("0 running", "3 done", "3/3 ended", "complete", "$2.25")
			if status := round.wait(); status != 0 {
				t.Errorf("the round ended with %d:\n%s", status, round.Stderr.String())
			}
			term.keys("q")
			term.shows("$ ")
		})
	}
}

func TestATerminalCancelsALaneAndThenTheRound(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	round := s.refine()
	term := s.terminal(100, 30)
	term.watch("")
	term.shows("3 running")
	term.keys("j", "c")
	term.shows("Cancel ordering? y = this lane, a = all of the round, any other key = no")
	term.keys("x")
	term.shows("nothing was cancelled", "3 running")
	term.keys("c", "y")
	term.shows("2 running", "1/3 ended", "cancelled")
	term.keys("k", "c", "a")
	term.shows("0 running", "3/3 ended")
	round.wait()
	var result supervisor.RoundResult
	if err := json.Unmarshal([]byte(round.Stdout.String()), &result); err != nil || len(result.Lanes) != 3 {
		t.Fatalf("the round printed %q (%v)", round.Stdout.String(), err)
	}
	for _, lane := range result.Lanes {
		if lane.Status != "cancelled" || lane.Error == nil || !strings.Contains(lane.Error.Message, "cancelled in pilothouse watch") {
			t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
		}
	}
}

func TestTheTerminalIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*terminal){
		"q":          func(t *terminal) { t.keys("q") },
		"ctrl-c":     func(t *terminal) { t.keys("C-c") },
		"a signal":   func(t *terminal) { t.signal(syscall.SIGTERM) },
		"mid-filter": func(t *terminal) { t.keys("/", "x", "C-c") },
		"no daemon":  func(t *terminal) { t.keys("q") },
		"suspended": func(t *terminal) {
			t.keys("C-z")
			t.prompt()
			t.run("fg")
			t.shows("3 running")
			t.keys("q")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			daemon := s.serve()
			s.refine()
			term := s.terminal(80, 24)
			term.run("echo what was here; stty -g >before")
			before := term.shows("\nwhat was here\n$")
			term.watch("")
			term.shows("3 running")
			if name == "no daemon" {
				daemon.end(syscall.SIGKILL)
				term.shows("the daemon has gone")
			}
			leave(term)
			await(t, "the screen from before", func() (string, bool) {
				screen := term.screen(false)
				return screen, strings.HasPrefix(screen, strings.TrimRight(before, "\n "))
			})
			term.prompt()
			if modes := term.tmux("display-message", "-p", "-t", "t", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"); modes != "0 1 0\n" {
				t.Errorf("alternate screen, cursor and mouse are %q", modes)
			}
			term.run("echo status $?; stty -g >after; echo looked")
			term.shows("\nstatus 0\nlooked\n")
			read := func(name string) string {
				data, err := os.ReadFile(filepath.Join(s.Dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return string(data)
			}
			if one, other := read("before"), read("after"); one != other || one == "" {
				t.Errorf("the modes of the terminal were %q and are %q", one, other)
			}
		})
	}
}

// signal sends a signal to the pilothouse of the terminal.
func (t *terminal) signal(sig syscall.Signal) {
	t.t.Helper()
	shell := strings.TrimSpace(t.tmux("display-message", "-p", "-t", "t", "#{pane_pid}"))
	for _, pid := range strings.Fields(t.must("ps", "-o", "pid=", "--ppid", shell)) {
		number, err := strconv.Atoi(pid)
		if err != nil {
			t.t.Fatal(err)
		}
		if err := syscall.Kill(number, sig); err != nil {
			t.t.Fatal(err)
		}
	}
}

func TestATerminalOutlivesItsDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve()
	round := s.refine()
	term := s.terminal(80, 24)
	term.watch("")
	term.shows("3 running")
	daemon.end(syscall.SIGKILL)
	term.shows("the daemon has gone; it is looked for, `pilothouse serve --detach` starts it", "correctness")
	round.wait()
	s.serve()
	term.shows("0 running", "lost", "3/3 ended")
	s.refine()
	term.shows("3 running", "3 failed")
}

func TestATerminalIsResized(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	term := s.terminal(80, 24)
	term.watch("")
	term.shows("3 running", "── correctness")
	term.tmux("resize-window", "-t", "t", "-x", "200", "-y", "60")
	term.shows("│ correctness · stub-1", "daemon ", "Read ␛[31mme")
	term.tmux("resize-window", "-t", "t", "-x", "39", "-y", "10")
	term.shows("40×10 is needed")
	term.tmux("resize-window", "-t", "t", "-x", "60", "-y", "15")
	term.shows("3 running", "── correctness", "? help")
}

func TestWatchSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"watch", "--web"}, 1, "no pilothouse daemon is running on " + s.Socket() + "; start one with `pilothouse serve --detach`"},
		{[]string{"watch", "--json"}, 1, "start one with `pilothouse serve --detach`"},
		{[]string{"watch"}, 2, "watch needs a terminal to draw on; use `pilothouse watch --web`"},
		{[]string{"watch", "--local", "--web"}, 2, "leave out --local"},
		{[]string{"watch", "--addr", "127.0.0.1:1"}, 2, "--addr only goes with --web"},
		{[]string{"watch", "--web", "--json"}, 2, "exclude each other"},
	} {
		j := s.start(c.args...)
		if status := j.wait(); status != c.status || !strings.Contains(j.Stderr.String(), c.says) || j.Stdout.String() != "" {
			t.Errorf("%v ended with %d and said %q and %q", c.args, status, j.Stderr.String(), j.Stdout.String())
		}
	}
	s.serve()
	for _, c := range [][2]string{
		{"0.0.0.0:0", "could be reached from elsewhere"}, {"192.0.2.1:0", "could be reached from elsewhere"},
		{"example.org:0", "could be reached from elsewhere"}, {":0", "could be reached from elsewhere"}, {"8080", "is no address"},
	} {
		j := s.start("watch", "--web", "--addr", c[0])
		if status := j.wait(); status != 2 || !strings.Contains(j.Stderr.String(), c[1]) || !strings.Contains(j.Stderr.String(), "127.0.0.1:0") {
			t.Errorf("--addr %s ended with %d and said %q", c[0], status, j.Stderr.String())
		}
	}
	term := s.terminal(80, 24)
	term.watch("TERM=dumb")
	term.shows("watch needs a terminal to draw on")
}

func TestWatchPrintsTheStateAsJSON(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.serve()
	s.refine()
	j := s.start("watch", "--json")
	var v struct {
		Totals struct{ Running int }
		Runs   []struct {
			Rounds []struct {
				Lanes []struct{ LaneID, Phase string }
			}
		}
	}
	if status := j.wait(); status != 0 {
		t.Fatalf("ended with %d: %s", status, j.Stderr.String())
	}
	if err := json.Unmarshal([]byte(j.Stdout.String()), &v); err != nil {
		t.Fatalf("printed %q: %v", j.Stdout.String(), err)
	}
	if v.Totals.Running != 3 || v.Runs[0].Rounds[0].Lanes[0].LaneID != "correctness" || v.Runs[0].Rounds[0].Lanes[0].Phase != "tool: read" {
		t.Errorf("printed %+v", v)
	}
}
