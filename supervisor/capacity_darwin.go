package supervisor

import "golang.org/x/sys/unix"

// availableMemory is half of the memory of the machine: the system does not say what it
// could give.
func availableMemory() (size uint64, known bool) {
	all, err := unix.SysctlUint64("hw.memsize")
	return all / 2, err == nil
}
