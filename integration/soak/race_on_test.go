//go:build race

package soak_test

const (
	raceEnabled = true
	heldBytes   = 1 << 20 // that each lane has streamed when it is measured
)
