//go:build race

package piharness

const raceEnabled = true
