package main

import "runtime"

// ballast is memory that is never touched, so the machine has none of it.
const ballast = 16 << 20

// stayResponsive sets Go up for a process that has to answer within milliseconds while
// it works on many files and children. The returned function ends it.
//
// A request is noticed by a processor of Go's that has nothing else to do, and one in a
// system call counts as busy: with as many again as the machine has there is always one.
// And the collector begins when the heap has doubled, which a small heap does several
// times a second, each time with a processor of its own; the ballast counts as heap.
func stayResponsive() (end func()) {
	runtime.GOMAXPROCS(2 * runtime.GOMAXPROCS(0))
	heap := make([]byte, ballast)
	return func() { runtime.KeepAlive(heap) }
}
