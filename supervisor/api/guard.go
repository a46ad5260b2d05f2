package api

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"pilothouse/supervisor"
)

// guarded accepts connections of this user only, and no more than a number at a time.
type guarded struct {
	net.Listener
	leaves chan struct{} // one for each connection that may be open
	logger *slog.Logger

	closeOnce sync.Once
	closed    chan struct{}
}

func guard(l net.Listener, connections int, logger *slog.Logger) net.Listener {
	return &guarded{Listener: l, leaves: make(chan struct{}, connections), logger: logger, closed: make(chan struct{})}
}

// Accept implements net.Listener. Beyond the bound, clients wait to be accepted.
func (g *guarded) Accept() (net.Conn, error) {
	select {
	case g.leaves <- struct{}{}:
	case <-g.closed:
		return nil, net.ErrClosed
	}
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			<-g.leaves
			return nil, err
		}
		pid, err := checkPeer(conn)
		if err != nil {
			g.logger.Warn("connection refused", "error", err)
			_ = conn.Close() // it was not used
			continue
		}
		return &leased{Conn: conn, peer: pid, giveBack: func() { <-g.leaves }}, nil
	}
}

// Close implements net.Listener.
func (g *guarded) Close() error {
	g.closeOnce.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// leased is a connection that gives its leave back when it is closed.
type leased struct {
	net.Conn
	peer     int // process at the other end, 0 when it cannot be seen from here
	once     sync.Once
	giveBack func()
}

// Close implements net.Conn.
func (l *leased) Close() error {
	l.once.Do(l.giveBack)
	return l.Conn.Close()
}

// PeerError tells that the other end of a connection is not this user.
type PeerError struct{ UID uint32 }

func (e *PeerError) Error() string {
	return fmt.Sprintf("the other end of the socket is user %d, not this user; name another place with PILOTHOUSE_SOCKET or use --local", e.UID)
}

// checkPeer asks the kernel who is at the other end of a unix connection, and returns the
// id of the process that opened it, 0 when that cannot be seen from here.
func checkPeer(conn net.Conn) (pid int, err error) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("%T is not a connection to a unix socket", conn)
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("find the other end of the socket: %w", err)
	}
	var uid uint32
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, pid, failed = peerOf(int(fd)) }); err != nil {
		failed = err
	}
	if failed != nil {
		return 0, fmt.Errorf("find the other end of the socket: %w", failed)
	}
	if int(uid) != os.Getuid() {
		return 0, &PeerError{uid}
	}
	return pid, nil
}

// peerKey is the key of a request's context for the process that asks.
type peerKey struct{}

// withPeer keeps the process at the other end of a connection for its requests.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if l, ok := conn.(*leased); ok {
		return context.WithValue(ctx, peerKey{}, l.peer)
	}
	return ctx
}

// asking is the session of a request, with the process that asks in its name.
func asking(ctx context.Context, session Session) supervisor.Session {
	s := session.session()
	s.PID, _ = ctx.Value(peerKey{}).(int)
	return s
}
