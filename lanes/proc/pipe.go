package proc

import (
	"os"
	"sync"
	"sync/atomic"
)

const (
	// pipeCapacity is what a pipe holds by default: 16 pages of 4 KiB on Linux, and
	// 64 KiB on macOS.
	pipeCapacity = 64 << 10
	// widePipe is what the stdout of a child holds if it may, so that a child that
	// prints much wakes us less often. Twice as much brings nothing more.
	widePipe = 512 << 10
	// maxWide is how many pipes are wide at a time. On Linux all pipes of a user
	// together may have 64 MiB by default, and beyond that every new one, whoever
	// makes it, is narrower than usual (pipe(7)). The three pipes of each of 300
	// children take 56 MiB, and these another 7.
	maxWide = 16
)

// widePipes counts the wide pipes of a Spawner.
type widePipes struct{ n atomic.Int32 }

// widen makes a pipe wide, if it may, and returns what it holds and a function that
// has to be called when it is closed.
func (w *widePipes) widen(pipe *os.File) (capacity int, closed func()) {
	if w.n.Add(1) > maxWide {
		w.n.Add(-1)
		return pipeCapacity, func() {}
	}
	return setCapacity(pipe, widePipe), sync.OnceFunc(func() { w.n.Add(-1) })
}
