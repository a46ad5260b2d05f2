package api

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
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
		if err := checkPeer(conn); err != nil {
			g.logger.Warn("connection refused", "error", err)
			_ = conn.Close() // it was not used
			continue
		}
		return &leased{Conn: conn, giveBack: func() { <-g.leaves }}, nil
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

// checkPeer asks the kernel who is at the other end of a unix connection.
func checkPeer(conn net.Conn) error {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("%T is not a connection to a unix socket", conn)
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return fmt.Errorf("find the other end of the socket: %w", err)
	}
	var uid uint32
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = peerUID(int(fd)) }); err != nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("find the other end of the socket: %w", failed)
	}
	if int(uid) != os.Getuid() {
		return &PeerError{uid}
	}
	return nil
}
