//go:build !race

package compaction_test

const generated = "100"
