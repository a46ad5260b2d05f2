package store

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// spelledAsListed tells whether a path without links is what the system itself calls
// the directory, as git does: on a file system that folds case it need not be.
func spelledAsListed(path string) bool {
	descriptor, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(descriptor) }() // nothing was written
	called, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(descriptor))
	return err == nil && called == path
}
