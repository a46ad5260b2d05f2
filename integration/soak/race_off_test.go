//go:build !race

package soak_test

const (
	raceEnabled = false
	heldBytes   = 4 << 20 // that each lane has streamed when it is measured
)
