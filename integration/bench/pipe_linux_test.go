package bench_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// widen makes a pipe as wide as that of a child's stdout is (lanes/proc).
func widen(b *testing.B, pipe *os.File) {
	b.Helper()
	raw, err := pipe.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { _, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 512<<10) }); err != nil {
		b.Fatal(err)
	}
	if err != nil {
		b.Logf("the pipe is no wider than usual: %v", err)
	}
}
