//go:build race

package compaction_test

// The race detector makes generated sessions ten times as slow, and there is little
// for it to see: the package starts no goroutines.
const generated = "6"
