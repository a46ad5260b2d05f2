package supervisor

import (
	"runtime"

	"pilothouse/lanes"
)

// What one child takes of a machine: a pi at work with its tools, and how many of them
// one core serves, since they mostly wait for their model.
const (
	childMemory     = 200 << 20
	childrenPerCore = 8
)

// capacity is how many children this machine has room for at this moment, a batch in
// any case.
func capacity() int {
	memory, known := availableMemory()
	return roomFor(memory, known, runtime.GOMAXPROCS(0))
}

func roomFor(memory uint64, known bool, cores int) int {
	room := uint64(cores) * childrenPerCore //nolint:gosec // a number of cores is positive
	if known {
		room = min(room, memory/childMemory)
	}
	return max(lanes.BatchSize, int(room)) //nolint:gosec // bounded by the cores
}
