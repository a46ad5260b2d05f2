package compaction_test

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the largest resident size of a process that has ended, in bytes. Linux
// begins counting with that of the parent, so the parent has to be small.
func peakMemory(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return float64(usage.Maxrss)
	}
	return float64(usage.Maxrss) * 1024
}
