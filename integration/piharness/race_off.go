//go:build !race

package piharness

const raceEnabled = false
