//go:build !linux

package faults_test

// peakMemory is not known here.
func (*job) peakMemory() int64 { return 0 }
