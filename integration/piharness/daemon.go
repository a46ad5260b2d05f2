package piharness

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
)

// Install installs the extension for the user of the scene. The daemon that sessions
// start is stopped at the end of the test.
func (p *Place) Install() {
	p.t.Helper()
	p.t.Cleanup(func() { p.Must(0, "serve", "--stop") })
	p.Must(0, "install")
}

// Socket is where the daemon of the user listens.
func (p *Place) Socket() string { return filepath.Join(p.Runtime, "pilothouse", "api.sock") }

// Ask reads the daemon's answer to a question.
func (p *Place) Ask(path string) Value {
	p.t.Helper()
	answer, err := p.TryAsk(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// TryAsk is Ask of a daemon that may not be there.
func (p *Place) TryAsk(path string) (Value, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.Socket())
		},
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://daemon"+path, nil)
	if err != nil {
		return Value{}, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Value{}, err
	}
	defer response.Body.Close()
	var answer json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return Value{}, err
	}
	return Parse(answer), nil
}

// KillDaemon ends the daemon as a crash would.
func (p *Place) KillDaemon() {
	p.t.Helper()
	pid := int(p.Ask("/v1/health").At("pid").Number())
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	p.Eventually("the killed daemon is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}
