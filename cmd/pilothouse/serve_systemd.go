package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstPassedFD is the first descriptor that a service manager passes on.
const firstPassedFD = 3

// activated returns the socket that a service manager has opened for this process, nil
// when there is none (systemd: sd_listen_fds).
func activated() (net.Listener, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("take over the socket: %w", err)
		}
	}
	if count != "1" {
		return nil, fmt.Errorf("the service manager passes %s sockets where one is needed; see deploy/systemd/pilothouse.socket", count)
	}
	unix.CloseOnExec(firstPassedFD)
	file := os.NewFile(firstPassedFD, "socket")
	listener, err := net.FileListener(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("take over the socket: %w", err)
	}
	return listener, nil
}

// notify tells a service manager how the daemon does, if there is one (systemd:
// sd_notify).
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return fmt.Errorf("tell the service manager %s: %w", state, err)
	}
	_, err = conn.Write([]byte(state))
	if err := errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("tell the service manager %s: %w", state, err)
	}
	return nil
}
