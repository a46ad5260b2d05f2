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
			client := s.Start(refineArgs()...)
			s.responding(3)
			daemon.Signal(syscall.SIGKILL)
			daemon.Wait()
			if back {
				daemon = s.serve() // over the socket that the killed one left
			}
			e := client.Wait()
			if e.Code != 1 || e.Stdout != "" {
				t.Errorf("ended with %d and printed %q", e.Code, e.Stdout)
			}
			contains(t, e.Stderr, "the pilothouse daemon ended before round", "what was stored is safe")
			again := resumption(t, e.Stderr)
			open()
			s.Must(0, again...)
			contains(t, s.Must(0, "show").Stdout, "complete")
			if !back {
				s.NoSurvivors() // the children ended with their daemon
				return
			}
			if calls := strings.Count(daemon.Stderr.String(), "call accepted"); calls != 1 {
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
	client := s.Start(refineArgs("--json")...)
	s.responding(3)
	daemon.Signal(syscall.SIGTERM)
	if e := daemon.Wait(); e.Code != 0 {
		t.Errorf("the daemon ended with %d:\n%s", e.Code, e.Stderr)
	}
	e := client.Wait()
	if e.Code != 1 {
		t.Errorf("the client ended with %d", e.Code)
	}
	var result supervisor.RoundResult
	if err := json.Unmarshal([]byte(e.Stdout), &result); err != nil || len(result.Lanes) != 3 {
		t.Fatalf("the client got %q (%v)", e.Stdout, err)
	}
	for _, lane := range result.Lanes {
		if lane.Status != "cancelled" || !strings.Contains(lane.Error.Message, "the pilothouse daemon was stopped") {
			t.Errorf("lane %s is %s: %+v", lane.LaneID, lane.Status, lane.Error)
		}
	}
	resumption(t, e.Stderr)
	s.NoSurvivors()
	owners, err := filepath.Glob(filepath.Join(s.Dir, ".git", "pi_plans", "runs", "*", "owner.json"))
	if err != nil || len(owners) != 0 {
		t.Errorf("owners %v (%v)", owners, err)
	}
	if _, err := os.Lstat(s.Socket()); !os.IsNotExist(err) {
		t.Errorf("the socket is still there (%v)", err)
	}
}

func TestADrainingDaemonLetsRoundsEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve("--drain", "1h")
	open := s.gated()
	client := s.Start(refineArgs()...)
	s.responding(3)
	daemon.Signal(syscall.SIGTERM)
	daemon.Says("daemon ends")
	for stopping := false; !stopping; {
		var health api.Health
		s.ask("GET", "/v1/health", &health)
		stopping = health.Stopping
	}
	contains(t, s.Must(1, refineArgs()...).Stderr, "pilothouse is shutting down")
	open()
	if e := client.Wait(); e.Code != 0 {
		t.Errorf("the client ended with %d:\n%s", e.Code, e.Stderr)
	}
	if e := daemon.Wait(); e.Code != 0 {
		t.Errorf("the daemon ended with %d:\n%s", e.Code, e.Stderr)
	}
}

func TestASecondSignalEndsADaemonTheHardWay(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve("--drain", "1h")
	s.gated()
	client := s.Start(refineArgs()...)
	s.responding(3)
	daemon.Signal(syscall.SIGTERM)
	daemon.Says("daemon ends")
	daemon.Signal(syscall.SIGTERM)
	if e := daemon.Wait(); e.Signal != syscall.SIGTERM {
		t.Errorf("the daemon ended with %d, signal %v", e.Code, e.Signal)
	}
	e := client.Wait()
	resumption(t, e.Stderr)
	s.NoSurvivors()
}

func TestThereIsOneDaemon(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.serve()
	for _, args := range [][]string{{"serve"}, {"serve", "--detach"}} {
		e := s.Must(1, args...)
		contains(t, e.Stderr, fmt.Sprintf("process %d", first.Cmd.Process.Pid), s.Socket(), "serve --stop")
		if lines := strings.Count(strings.TrimSpace(e.Stderr), "\npilothouse: "); lines != 0 {
			t.Errorf("%v said more than one sentence:\n%s", args, e.Stderr)
		}
	}
	// Another socket is another daemon.
	other := filepath.Join(s.Home, "other.sock")
	if err := os.Chmod(s.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	second := s.serve("--socket", other)
	s.Env = append(s.Env, "PILOTHOUSE_SOCKET="+other)
	s.Must(0, "plans", "init")
	contains(t, second.Stderr.String(), "call accepted")
	if strings.Contains(first.Stderr.String(), "call accepted") {
		t.Error("the command went to the first daemon")
	}
	s.Must(0, "serve", "--stop")
	if e := second.Wait(); e.Code != 0 {
		t.Errorf("the second daemon ended with %d", e.Code)
	}
	if first.Cmd.ProcessState != nil {
		t.Error("the first daemon ended too")
	}
}

func TestADetachedDaemonIsReadyWhenTheCommandReturns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.Must(0, "serve", "--detach", "--json")
	var info struct {
		Socket, Log string
		PID         int
		Running     bool
	}
	if err := json.Unmarshal([]byte(e.Stdout), &info); err != nil {
		t.Fatal(err)
	}
	health, err := api.Ask(t.Context(), info.Socket)
	if err != nil || health.PID != info.PID || !info.Running || info.Socket != s.Socket() {
		t.Fatalf("%+v; health %+v (%v)", info, health, err)
	}
	if session, err := unix.Getsid(info.PID); err != nil || session != info.PID {
		t.Errorf("the daemon %d is in session %d (%v)", info.PID, session, err)
	}
	const secret = "hunter2-correct-horse"
	s.Env = append(s.Env, "API_KEY="+secret)
	s.Must(0, refineArgs()...)
	if info, err := os.Stat(info.Log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log: %v (%v)", info, err)
	}
	for line := range strings.Lines(s.Read(info.Log)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has the line %q", line)
		}
	}
	err = filepath.WalkDir(filepath.Join(s.Home, ".local"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(s.Read(path), secret) {
			t.Errorf("%s tells the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	contains(t, s.Must(0, "serve", "--stop").Stdout, "has ended")
	if _, err := api.Ask(t.Context(), info.Socket); err == nil {
		t.Error("it answers after --stop")
	}
	contains(t, s.Must(0, "serve", "--stop").Stdout, "No daemon listens")
	s.NoSurvivors()
}

func TestADetachedDaemonThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Write(filepath.Join(s.Home, "file"), "")
	s.Env = append(s.Env, "XDG_STATE_HOME="+filepath.Join(s.Home, "file"))
	e := s.Must(1, "serve", "--detach", "--log-file", filepath.Join(s.Home, "log"))
	contains(t, e.Stderr, filepath.Join(s.Home, "file"))
	s.Must(2, "serve", "--drain", "-1s")
	s.Must(2, "serve", "--detach", "--stop")
	s.Must(2, "serve", "now")
}

func TestAnIdleDaemonEnds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	daemon := s.serve("--idle-exit", "100ms")
	if e := daemon.Wait(); e.Code != 0 {
		t.Errorf("ended with %d", e.Code)
	}
	contains(t, daemon.Stderr.String(), "nothing was asked")
}

func TestAServiceManagerMayOpenTheSocket(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.Mkdir(filepath.Dir(s.Socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Socket(), Net: "unix"})
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
	client := s.Start(refineArgs()...)
	daemon := s.Prepare("serve")
	daemon.Cmd.Path = "/bin/sh"
	daemon.Cmd.Args = []string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve`, piharness.Binary(t)}
	daemon.Cmd.ExtraFiles = []*os.File{passed}
	said := s.manager(daemon)
	daemon.Begin()
	if state := <-said; state != "READY=1" {
		t.Errorf("it said %q; stderr:\n%s", state, daemon.Stderr.String())
	}
	if e := client.Wait(); e.Code != 0 {
		t.Errorf("the client ended with %d: %s", e.Code, e.Stderr)
	}
	contains(t, daemon.Stderr.String(), "call accepted")
	daemon.Signal(syscall.SIGTERM)
	if e := daemon.Wait(); e.Code != 0 {
		t.Errorf("the daemon ended with %d: %s", e.Code, e.Stderr)
	}
	if state := <-said; state != "STOPPING=1" {
		t.Errorf("it said %q", state)
	}
	if _, err := os.Lstat(s.Socket()); err != nil {
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
