package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// maxSocketPath is how long the path of a unix socket may be on every platform.
const maxSocketPath = 103

// lockPatience is how long a starting daemon waits for a lock that nobody answers
// behind: that of a daemon at its very end, or of a client that waits for that end.
const lockPatience = 2 * time.Second

// DefaultSocket is where the daemon of this user listens: in $XDG_RUNTIME_DIR, or
// where that is not a directory in one of the user's own below the temporary directory.
func DefaultSocket() string {
	const folder, name = "pilothouse", "api.sock"
	runtime := os.Getenv("XDG_RUNTIME_DIR")
	if info, err := os.Stat(runtime); filepath.IsAbs(runtime) && err == nil && info.IsDir() {
		return filepath.Join(runtime, folder, name)
	}
	return filepath.Join(os.TempDir(), folder+"-"+strconv.Itoa(os.Getuid()), name)
}

// DirectoryError refuses a directory for the socket: somebody else could put a socket
// of his own there.
type DirectoryError struct{ Path, Reason string }

func (e *DirectoryError) Error() string {
	return fmt.Sprintf("%s must not hold the socket of the daemon: %s; remove it or name another place with PILOTHOUSE_SOCKET", e.Path, e.Reason)
}

// checkDirectory accepts a directory that only this user can write to.
func checkDirectory(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the directory of the socket: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return &DirectoryError{dir, "it is a symbolic link"}
	case !info.IsDir():
		return &DirectoryError{dir, "it is not a directory"}
	case !ok || int(stat.Uid) != os.Getuid():
		return &DirectoryError{dir, "it belongs to another user"}
	case info.Mode().Perm()&0o022 != 0:
		return &DirectoryError{dir, fmt.Sprintf("other users can write to it (mode %#o)", info.Mode().Perm())}
	}
	return nil
}

// InUseError tells that a daemon runs already.
type InUseError struct {
	Socket string
	PID    int // 0 when it does not tell
}

func (e *InUseError) Error() string {
	who := "a pilothouse daemon"
	if e.PID != 0 {
		who += fmt.Sprintf(" (process %d)", e.PID)
	}
	return fmt.Sprintf("%s listens on %s already; `pilothouse serve --stop` ends it", who, e.Socket)
}

// Socket is the socket of the one daemon of a user, and the lock that makes it the one.
type Socket struct {
	net.Listener
	lock *flock.Flock
}

// Listen opens the socket at path for this user alone. A socket that a killed daemon
// left behind is replaced; that it is one is proved by holding the lock beside it and
// by nobody answering. Errors: *InUseError, *DirectoryError.
func Listen(ctx context.Context, path string) (*Socket, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path %s is too long for a socket (%d bytes, at most %d); name a shorter one with --socket", path, len(path), maxSocketPath)
	}
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the directory of the socket: %w", err)
	}
	if err := checkDirectory(dir); err != nil {
		return nil, err
	}
	lock, err := lockSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	listener, err := listenLocked(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Socket{listener, lock}, nil
}

// Adopt takes over a listener that a service manager has opened, once no other daemon
// holds its lock.
func Adopt(ctx context.Context, listener net.Listener) (*Socket, error) {
	path := listener.Addr().String()
	if err := checkDirectory(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lock, err := lockSocket(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Socket{listener, lock}, nil
}

// Release lets the next daemon begin. It comes last: until then this one still holds
// runs and children.
func (s *Socket) Release() error { return s.lock.Close() }

// lockPath is the file whose lock the daemon of a socket holds. It is never removed.
func lockPath(socket string) string { return socket + ".lock" }

func lockSocket(ctx context.Context, path string) (*flock.Flock, error) {
	lock := flock.New(lockPath(path), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		held, err := lock.TryLock()
		switch {
		case err != nil:
			return nil, fmt.Errorf("lock the socket: %w", err)
		case held:
			return lock, nil
		}
		if health, err := Ask(ctx, path); err == nil {
			return nil, errors.Join(&InUseError{path, health.PID}, lock.Close())
		}
		select {
		case <-time.After(lockPatience / 40):
		case <-ctx.Done():
			return nil, errors.Join(&InUseError{path, 0}, lock.Close())
		}
	}
}

func listenLocked(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("look at the socket: %w", err)
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is there and no socket; remove it or name another place with --socket", path)
	default:
		if conn, err := net.Dial("unix", path); err == nil {
			return nil, errors.Join(&InUseError{path, 0}, conn.Close())
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of an earlier daemon: %w", err)
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the socket: %w", err)
	}
	// The directory keeps others out; this is for those who pass the directory on.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the socket: %w", err), listener.Close())
	}
	return listener, nil
}
