package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// told is what the doctor tells of the daemon, with the status that is wanted.
func (s *scene) told(status int, args ...string) string {
	s.t.Helper()
	var report struct {
		Daemon struct {
			Remarks []struct{ About, Text string }
		}
		Wrong int
	}
	e := s.Must(status, append([]string{"doctor", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(e.Stdout), &report); err != nil {
		s.t.Fatalf("%v in %s", err, e.Stdout)
	}
	if (report.Wrong > 0) != (status == 1) {
		s.t.Errorf("%d things are wrong, the status is %d", report.Wrong, status)
	}
	var lines []string
	for _, r := range report.Daemon.Remarks {
		lines = append(lines, r.About+": "+r.Text)
	}
	return strings.Join(lines, "\n")
}

func TestTheDoctorFollowsADaemonThroughItsLife(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	contains(t, s.told(0), "daemon: none runs")
	daemon := s.serve("--metrics-addr", "0")
	contains(t, s.told(0), fmt.Sprintf("daemon: process %d listens on %s", daemon.Cmd.Process.Pid, s.Socket()))

	_, address, _ := strings.Cut(daemon.Stderr.String(), "url=http://")
	address, _, _ = strings.Cut(address, "/metrics")
	contains(t, s.told(0, "--metrics-addr", address), "metrics: "+address+" serves those of pilothouse")

	open := s.gated()
	client := s.Start(refineArgs()...)
	s.responding(3)
	call := s.only()
	client.Signal(syscall.SIGKILL)
	client.Wait()
	open()
	s.finished(call.ID)
	contains(t, s.told(0), "results: 1 of calls were never fetched")
	daemon.Signal(syscall.SIGKILL)
	daemon.Wait()
	contains(t, s.told(0), "daemon: none runs; a killed one has left "+s.Socket(), "results: 1 of calls were never fetched")

	if err := os.Chmod(filepath.Dir(s.Socket()), 0o777); err != nil {
		t.Fatal(err)
	}
	contains(t, s.told(1), "other users can write to it")
	contains(t, s.Must(1, "doctor").Stdout, "daemon    ! "+filepath.Dir(s.Socket()), "One thing is wrong.")
}

func TestTheLogOfADetachedDaemonIsBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	state := filepath.Join(s.Home, ".local", "state", "pilothouse")
	log := filepath.Join(state, "daemon.log")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	line := `{"msg":"of an earlier daemon"}` + "\n"
	s.Write(log, strings.Repeat(line, 11<<20/len(line)))
	s.Must(0, "serve", "--detach")
	s.Must(0, refineArgs()...)
	s.Must(0, "serve", "--stop")
	now, old := s.Read(log), s.Read(log+".1")
	if len(old) != 10<<20 || !strings.HasSuffix(old, line) {
		t.Errorf("the old log has %d bytes", len(old))
	}
	contains(t, now, `"msg":"daemon listens"`, `"msg":"call ended"`, `"msg":"daemon ended"`)
	if strings.Contains(now, "earlier") {
		t.Errorf("the log goes on with %.200s", now)
	}
	for _, path := range []string{log, log + ".1"} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v (%v)", path, info.Mode(), err)
		}
	}
	entries, err := filepath.Glob(log + "*")
	if want := []string{log, log + ".1"}; err != nil || !slices.Equal(entries, want) {
		t.Errorf("logs are %v, %v", entries, err)
	}
}

// A daemon that begins a full log anew and then fails still tells why.
func TestADetachedDaemonWithAFullLogThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	log, file := filepath.Join(s.Home, "daemon.log"), filepath.Join(s.Home, "file")
	s.Write(log, strings.Repeat("x", 10<<20))
	s.Write(file, "")
	s.Env = append(s.Env, "XDG_STATE_HOME="+file)
	e := s.Must(1, "serve", "--detach", "--log-file", log, "--metrics-addr", "0")
	contains(t, e.Stderr, file)
	contains(t, s.Read(log), "metrics are served")
}
