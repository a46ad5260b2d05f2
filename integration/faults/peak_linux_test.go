package faults_test

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// peakMemory waits for the end of the program and returns, in bytes, the largest
// resident memory that it was seen to have. What the kernel reports afterwards
// includes that of the test itself, which started it.
func (j *job) peakMemory() int64 {
	var peak int64
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", j.Cmd.Process.Pid))
		_, line, found := strings.Cut(string(status), "VmHWM:")
		if err != nil || !found { // a zombie has no memory
			return peak
		}
		var kib int64
		if _, err := fmt.Sscan(line, &kib); err == nil {
			peak = max(peak, kib<<10)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
