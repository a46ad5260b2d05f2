package piharness

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"
)

// Install installs the extension for the user of the scene. The daemon that sessions
// start is stopped at the end of the test.
func (s *Scene) Install() {
	s.t.Helper()
	s.t.Cleanup(func() { s.Must(0, "serve", "--stop") })
	s.Must(0, "install")
}

// Ask reads the daemon's answer to a question.
func (s *Scene) Ask(path string) Value {
	s.t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.runtime, "pilothouse", "api.sock"))
		},
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://daemon"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	return Parse(answer)
}

// KillDaemon ends the daemon as a crash would.
func (s *Scene) KillDaemon() {
	s.t.Helper()
	pid := int(s.Ask("/v1/health").At("pid").Number())
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	deadline, poll := time.After(Patience), time.NewTicker(5*time.Millisecond)
	defer poll.Stop()
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		select {
		case <-deadline:
			s.t.Fatal("the killed daemon is still there")
		case <-poll.C:
		}
	}
}
