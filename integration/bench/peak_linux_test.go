package bench_test

import (
	"bytes"
	"fmt"
	"os"
)

// peakMemory is the largest resident size of this process so far, in KiB. The
// maximum that wait4 tells is of no use: it begins with that of the parent.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the peak memory: %w", err)
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmHWM:"))
	var kib int64
	if _, err := fmt.Sscanf(string(rest), "%d kB", &kib); err != nil {
		return 0, fmt.Errorf("read VmHWM: %w", err)
	}
	return kib, nil
}
