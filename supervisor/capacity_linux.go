package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// availableMemory is what the kernel can give without swapping, no more than what the
// cgroup of this process may have in all.
func availableMemory() (size uint64, known bool) {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	_, rest, _ := bytes.Cut(info, []byte("\nMemAvailable:"))
	fields := bytes.Fields(rest[:max(0, bytes.IndexByte(rest, '\n'))])
	if len(fields) == 0 {
		return 0, false
	}
	kib, err := strconv.ParseUint(string(fields[0]), 10, 54)
	if err != nil {
		return 0, false
	}
	size = kib << 10
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return size, true
	}
	_, path, found := bytes.Cut(own, []byte("0::")) // version 2; an older one has no such line
	if !found {
		return size, true
	}
	for dir := string(bytes.TrimSpace(path)); ; dir = filepath.Dir(dir) {
		if limit, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", dir, "memory.max")); err == nil {
			if most, err := strconv.ParseUint(string(bytes.TrimSpace(limit)), 10, 64); err == nil { // else "max"
				size = min(size, most)
			}
		}
		if dir == "/" || dir == "." {
			return size, true
		}
	}
}
