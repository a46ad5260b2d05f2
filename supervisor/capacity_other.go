//go:build !linux && !darwin

package supervisor

// availableMemory is not known here.
func availableMemory() (size uint64, known bool) { return 0, false }
