package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"pilothouse/supervisor"
)

// ErrNoDaemon tells that no daemon listens on a socket.
var ErrNoDaemon = errors.New("no pilothouse daemon is running")

// ProtocolError tells that client and daemon are of versions that do not understand
// each other.
type ProtocolError struct {
	Socket        string
	Version       string // of the daemon
	Protocol, Own int
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("the daemon on %s is pilothouse %s and speaks protocol %d, this one speaks %d; restart it with `pilothouse serve --stop` and `pilothouse serve --detach`, or use --local",
		e.Socket, e.Version, e.Protocol, e.Own)
}

// SilentError tells that something listens on a socket and does not answer.
type SilentError struct {
	Socket string
	Err    error
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("the daemon on %s does not answer (%v); use --local to work without it", e.Socket, e.Err)
}

// Unwrap is what the connection met.
func (e *SilentError) Unwrap() error { return e.Err }

// answerPatience is how long a daemon may take to answer a question that needs no work.
const answerPatience = 5 * time.Second

// Client speaks to a daemon. It has the methods of a [supervisor.System].
type Client struct {
	socket string
	http   *http.Client
}

// Connect finds the daemon that listens on a socket and makes sure that it is this
// user's and understands us. Errors: ErrNoDaemon, *DirectoryError, *PeerError,
// *ProtocolError, *SilentError.
func Connect(ctx context.Context, socket string) (*Client, error) {
	err := checkDirectory(filepath.Dir(socket))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoDaemon
	}
	if err != nil {
		return nil, err
	}
	c := newClient(socket)
	health, err := c.health(ctx)
	if err == nil && health.Protocol != Protocol {
		err = &ProtocolError{Socket: socket, Version: health.Version, Protocol: health.Protocol, Own: Protocol}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func newClient(socket string) *Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			if err != nil {
				return nil, err
			}
			if _, err := checkPeer(conn); err != nil {
				return nil, errors.Join(err, conn.Close())
			}
			return conn, nil
		},
		DisableCompression: true,
	}
	return &Client{socket, &http.Client{Transport: transport}}
}

// Close gives the connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Ask asks whatever listens on a socket who it is, of whatever version. Errors:
// ErrNoDaemon, *PeerError, *SilentError.
func Ask(ctx context.Context, socket string) (Health, error) {
	c := newClient(socket)
	defer c.Close()
	return c.health(ctx)
}

func (c *Client) health(ctx context.Context) (Health, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	var health Health
	err := c.get(ctx, "/v1/health", &health)
	var refused *PeerError
	switch {
	case err == nil:
		return health, nil
	case absent(err):
		return health, ErrNoDaemon
	case errors.As(err, &refused):
		return health, refused
	case context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return health, context.Cause(ctx)
	}
	return health, &SilentError{c.socket, err}
}

// absent tells that nothing listens: there is no socket, or nobody behind it.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// RecentRuns lists the newest runs of a workspace as [supervisor.System.RecentRuns]
// does.
func (c *Client) RecentRuns(ctx context.Context, session supervisor.Session, limit int) ([]supervisor.RunInfo, int, error) {
	var listed Runs
	err := c.get(ctx, fmt.Sprintf("/v1/runs?workdir=%s&limit=%d", url.QueryEscape(sessionOf(session).Workdir), limit), &listed)
	return listed.Runs, listed.More, err
}

// Show describes one run as [supervisor.System.Show] does.
func (c *Client) Show(ctx context.Context, session supervisor.Session, runID string) (supervisor.RunDetail, error) {
	if runID == "" {
		runID = activeRun
	}
	var detail supervisor.RunDetail
	err := c.get(ctx, "/v1/runs/"+url.PathEscape(runID)+"?workdir="+url.QueryEscape(sessionOf(session).Workdir), &detail)
	return detail, err
}

// Stop ends the daemon on a socket in the orderly way and returns when it is gone, or
// with ctx. It works with a daemon of any version. Errors: ErrNoDaemon.
func Stop(ctx context.Context, socket string) error {
	c := newClient(socket)
	defer c.Close()
	if _, err := c.health(ctx); err != nil {
		return err
	}
	if err := c.do(ctx, http.MethodPost, "/v1/stop", nil, new(json.RawMessage)); err != nil {
		return fmt.Errorf("ask the daemon to end: %w", err)
	}
	lock := flock.New(lockPath(socket), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockPatience/40); err != nil {
		return fmt.Errorf("wait for the end of the daemon: %w", err)
	}
	return lock.Close()
}

// get asks a question. Errors are those of the daemon where they have a Go type.
func (c *Client) get(ctx context.Context, path string, answer any) error {
	return c.do(ctx, http.MethodGet, path, nil, answer)
}

func (c *Client) do(ctx context.Context, method, path string, body, answer any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("read the daemon's answer: %w", err)
	}
	return nil
}

// send makes a request and returns the response if it is none of a problem.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		data, err := encode(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		content = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://pilothouse"+path, content)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	inject(ctx, request.Header)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	problem := &Problem{}
	if err := json.NewDecoder(response.Body).Decode(problem); err != nil || problem.Detail == "" {
		return nil, fmt.Errorf("the daemon answered with HTTP status %s", response.Status)
	}
	return nil, problem
}
