package daemon_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pilothouse/integration/piharness"
	"pilothouse/supervisor"
	"pilothouse/supervisor/api"
)

// resumption finds the command that a message tells to go on with.
func resumption(t *testing.T, message string) []string {
	t.Helper()
	found := regexp.MustCompile("continue with `pilothouse (refine plan.md --resume-round [^` ]+)`").FindStringSubmatch(message)
	if found == nil {
		t.Fatalf("%q does not say how to go on", message)
	}
	return append(strings.Fields(found[1]), "--model", "inherit", "--progress", "none")
}

func TestAKilledDaemonLosesNoRound(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"and comes back": true, "and stays away": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			daemon := s.serve()
			open := s.gated()
			client := s.start(refineArgs()...)
			s.responding(3)
			daemon.signal(syscall.SIGKILL)
			daemon.wait()
			if back {
				daemon = s.serve() // over the socket that the killed one left
			}
			e := client.wait()
			if e.code != 1 || e.stdout != "" {
				t.Errorf("ended with %d and printed %q", e.code, e.stdout)
			}
			contains(t, e.stderr, "the pilothouse daemon ended before round", "what was stored is safe")
			again := resumption(t, e.stderr)
			open()
			s.must(0, again...)
			contains(t, s.must(0, "show").stdout, "complete")
			if !back {
				s.noSurvivors() // the children ended with their daemon
				return
			}
			if calls := strings.Count(daemon.stderr.String(), "call accepted"); calls != 1 {
				t.Errorf("the second daemon began %d calls, want the one to resume", calls)
			}
		})
	}
}

func TestADaemonThatIsToldToEndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve()
	s.gated()
	client := s.start(refineArgs("--json")...)
	s.responding(3)
	daemon.signal(syscall.SIGTERM)
	if e := daemon.wait(); e.code != 0 {
		t.Errorf("the daemon ended with %d:\n%s", e.code, e.stderr)
	}
	e := client.wait()
	if e.code != 1 {
		t.Errorf("the client ended with %d", e.code)
	}
	var result supervisor.RoundResult
	if err := json.Unmarshal([]byte(e.stdout), &result); err != nil || len(result.Lanes) != 3 {
		t.Fatalf("the client got %q (%v)", e.stdout, err)
	}
	for _, lane := range result.Lanes {
		if lane.Status != "cancelled" || !strings.Contains(lane.Error.Message, "the pilothouse daemon was stopped") {
			t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
		}
	}
	resumption(t, e.stderr)
	s.noSurvivors()
	owners, err := filepath.Glob(filepath.Join(s.dir, ".git", "pi_plans", "runs", "*", "owner.json"))
	if err != nil || len(owners) != 0 {
		t.Errorf("owners %v (%v)", owners, err)
	}
	if _, err := os.Lstat(s.socket()); !os.IsNotExist(err) {
		t.Errorf("the socket is still there (%v)", err)
	}
}

func TestADrainingDaemonLetsRoundsEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve("--drain", "1h")
	open := s.gated()
	client := s.start(refineArgs()...)
	s.responding(3)
	daemon.signal(syscall.SIGTERM)
	daemon.says("daemon ends")
	for stopping := false; !stopping; {
		var health api.Health
		s.ask("GET", "/v1/health", &health)
		stopping = health.Stopping
	}
	contains(t, s.must(1, refineArgs()...).stderr, "pilothouse is shutting down")
	open()
	if e := client.wait(); e.code != 0 {
		t.Errorf("the client ended with %d:\n%s", e.code, e.stderr)
	}
	if e := daemon.wait(); e.code != 0 {
		t.Errorf("the daemon ended with %d:\n%s", e.code, e.stderr)
	}
}

func TestASecondSignalEndsADaemonTheHardWay(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve("--drain", "1h")
	s.gated()
	client := s.start(refineArgs()...)
	s.responding(3)
	daemon.signal(syscall.SIGTERM)
	daemon.says("daemon ends")
	daemon.signal(syscall.SIGTERM)
	if e := daemon.wait(); e.signal != syscall.SIGTERM {
		t.Errorf("the daemon ended with %d, signal %v", e.code, e.signal)
	}
	e := client.wait()
	resumption(t, e.stderr)
	s.noSurvivors()
}

func TestThereIsOneDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.serve()
	for _, args := range [][]string{{"serve"}, {"serve", "--detach"}} {
		e := s.must(1, args...)
		contains(t, e.stderr, fmt.Sprintf("process %d", first.cmd.Process.Pid), s.socket(), "serve --stop")
		if lines := strings.Count(strings.TrimSpace(e.stderr), "\npilothouse: "); lines != 0 {
			t.Errorf("%v said more than one sentence:\n%s", args, e.stderr)
		}
	}
	// Another socket is another daemon.
	other := filepath.Join(s.home, "other.sock")
	if err := os.Chmod(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
	second := s.serve("--socket", other)
	s.env = append(s.env, "PILOTHOUSE_SOCKET="+other)
	s.must(0, "plans", "init")
	contains(t, second.stderr.String(), "call accepted")
	if strings.Contains(first.stderr.String(), "call accepted") {
		t.Error("the command went to the first daemon")
	}
	s.must(0, "serve", "--stop")
	if e := second.wait(); e.code != 0 {
		t.Errorf("the second daemon ended with %d", e.code)
	}
	if first.cmd.ProcessState != nil {
		t.Error("the first daemon ended too")
	}
}

func TestADetachedDaemonIsReadyWhenTheCommandReturns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.must(0, "serve", "--detach", "--json")
	var info struct {
		Socket, Log string
		PID         int
		Running     bool
	}
	if err := json.Unmarshal([]byte(e.stdout), &info); err != nil {
		t.Fatal(err)
	}
	health, err := api.Ask(t.Context(), info.Socket)
	if err != nil || health.PID != info.PID || !info.Running || info.Socket != s.socket() {
		t.Fatalf("%+v; health %+v (%v)", info, health, err)
	}
	if session, err := unix.Getsid(info.PID); err != nil || session != info.PID {
		t.Errorf("the daemon %d is in session %d (%v)", info.PID, session, err)
	}
	const secret = "hunter2-correct-horse"
	s.env = append(s.env, "API_KEY="+secret)
	s.must(0, refineArgs()...)
	if info, err := os.Stat(info.Log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log: %v (%v)", info, err)
	}
	for line := range strings.Lines(s.read(info.Log)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has the line %q", line)
		}
	}
	err = filepath.WalkDir(filepath.Join(s.home, ".local"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(s.read(path), secret) {
			t.Errorf("%s tells the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	contains(t, s.must(0, "serve", "--stop").stdout, "has ended")
	if _, err := api.Ask(t.Context(), info.Socket); err == nil {
		t.Error("it answers after --stop")
	}
	contains(t, s.must(0, "serve", "--stop").stdout, "No daemon listens")
	s.noSurvivors()
}

func TestADetachedDaemonThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write(filepath.Join(s.home, "file"), "")
	s.env = append(s.env, "XDG_STATE_HOME="+filepath.Join(s.home, "file"))
	e := s.must(1, "serve", "--detach", "--log-file", filepath.Join(s.home, "log"))
	contains(t, e.stderr, filepath.Join(s.home, "file"))
	s.must(2, "serve", "--drain", "-1s")
	s.must(2, "serve", "--detach", "--stop")
	s.must(2, "serve", "now")
}

func TestAnIdleDaemonEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve("--idle-exit", "100ms")
	if e := daemon.wait(); e.code != 0 {
		t.Errorf("ended with %d", e.code)
	}
	contains(t, daemon.stderr.String(), "nothing was asked")
}

func TestAServiceManagerMayOpenTheSocket(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.Mkdir(filepath.Dir(s.socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	passed, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	// The first command connects before there is a daemon, and waits for it.
	client := s.start(refineArgs()...)
	daemon := s.prepare("serve")
	daemon.cmd.Path = "/bin/sh"
	daemon.cmd.Args = []string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, piharness.Binary(t)}
	daemon.cmd.ExtraFiles = []*os.File{passed}
	said := s.manager(daemon)
	daemon.begin()
	if state := <-said; state != "READY=1" {
		t.Errorf("it said %q; stderr:\n%s", state, daemon.stderr.String())
	}
	if e := client.wait(); e.code != 0 {
		t.Errorf("the client ended with %d: %s", e.code, e.stderr)
	}
	contains(t, daemon.stderr.String(), "call accepted")
	daemon.signal(syscall.SIGTERM)
	if e := daemon.wait(); e.code != 0 {
		t.Errorf("the daemon ended with %d: %s", e.code, e.stderr)
	}
	if state := <-said; state != "STOPPING=1" {
		t.Errorf("it said %q", state)
	}
	if _, err := os.Lstat(s.socket()); err != nil {
		t.Errorf("it removed the manager's socket: %v", err)
	}
}

func TestTheUnitsOfSystemdAreValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	for _, unit := range []string{"pilothouse.socket", "pilothouse.service"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), "%h/.local/bin/pilothouse", piharness.Binary(t), 1)
		if err := os.WriteFile(filepath.Join(dir, unit), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(analyze, "verify", "--user", filepath.Join(dir, "pilothouse.socket"), filepath.Join(dir, "pilothouse.service"))
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
