package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminal is the master of the pseudo-terminal that controls a child's session.
// Only this process holds it: when it closes, for whatever reason, the kernel
// sends HUP to the child's foreground group.
type terminal struct{ master, slave *os.File }

func openTerminal() (*terminal, error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer func() { _ = blocking.Close() }()
	// The package leaves the master blocking; closing it beneath a reader would
	// then neither end the read nor hang up the line.
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		if err = unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		_ = slave.Close()
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	return &terminal{master: os.NewFile(uintptr(fd), "terminal"), slave: slave}, nil
}

// drain throws away what the tree writes to its terminal, which would block it
// otherwise, until the master is closed or nobody has the terminal open.
func (t *terminal) drain() { _, _ = io.Copy(io.Discard, t.master) }

// launched is a child from its start to its reaping.
type launched struct {
	process *os.Process
	pidfd   *os.File // nil on kernels without
}

// reap releases the number of a child that has exited.
func (l *launched) reap() (*os.ProcessState, error) { return l.process.Wait() }

// launch starts the program. It must run on the Spawner's thread: the kernel
// sends the parent-death signal when the thread that forked ends, not the process.
func launch(file string, argv []string, attr *os.ProcAttr, tty *terminal, own group) (*launched, error) {
	pidfd := -1
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd}
	if tty != nil {
		attr.Sys.Setctty, attr.Sys.Ctty = true, len(attr.Files)
		attr.Files = append(attr.Files[:len(attr.Files):len(attr.Files)], tty.slave)
	}
	if own.path != "" {
		fd, err := unix.Open(own.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open cgroup: %w", err)
		}
		defer func() { _ = unix.Close(fd) }()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
	}
	process, err := os.StartProcess(file, argv, attr)
	if err != nil {
		return nil, err
	}
	l := &launched{process: process}
	if pidfd >= 0 {
		_ = unix.SetNonblock(pidfd, true) // so that the poller waits, not a thread a child
		l.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	return l, nil
}

// cgroupRefused reports whether a start may have failed because the kernel does
// not let this process put a child into its group (no delegation, a threaded
// group, a system call filter). Some of these errors can come from the program
// file as well; the second try tells.
func cgroupRefused(err error) bool {
	for _, errno := range []syscall.Errno{
		unix.EACCES, unix.EPERM, unix.ENOSYS, unix.EOPNOTSUPP, unix.EBUSY, unix.EINVAL, unix.ENODEV,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// awaitExit returns when the child has exited. It is not reaped then, so its
// number is still its own.
func (l *launched) awaitExit() {
	if l.pidfd == nil {
		waitid(unix.P_PID, l.process.Pid, 0)
		return
	}
	defer l.pidfd.Close()
	raw, err := l.pidfd.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool { return waitid(unix.P_PIDFD, int(fd), unix.WNOHANG) })
	}
	if err != nil { // the poller does not take it
		waitid(unix.P_PID, l.process.Pid, 0)
	}
}

// waitid reports whether the process has exited, or is no child of ours any more.
func waitid(kind, id, options int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(kind, id, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}
