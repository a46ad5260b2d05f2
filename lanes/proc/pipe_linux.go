package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// setCapacity changes what a pipe holds, and returns what it holds then. The kernel
// may refuse: a user has only so much memory for pipes.
func setCapacity(pipe *os.File, bytes int) int {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return pipeCapacity
	}
	capacity := pipeCapacity
	_ = raw.Control(func(fd uintptr) {
		if got, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, bytes); err == nil {
			capacity = got
		} else if got, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0); err == nil {
			capacity = got
		}
	})
	return capacity
}
