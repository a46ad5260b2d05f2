package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeCapacity is what a pipe holds by default: 16 pages of 4 KiB on Linux, and 64 KiB on macOS.
const pipeCapacity = 64 << 10

// output is the read end of a pipe that ends within a bound after its child,
// even when a process that nobody could end still holds the other end. What was
// in the pipe by then is still delivered.
type output struct {
	file  *os.File
	after int // bytes that may still be read after the deadline

	mu   sync.Mutex
	held bool // the deadline cut the stream off
}

func newOutput(file *os.File) *output { return &output{file: file, after: pipeCapacity} }

// Read returns io.EOF once and for all when the stream has ended.
func (o *output) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = o.readReady(p)
	}
	if err == nil {
		return n, nil
	}
	_ = o.file.Close()
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// readReady takes what is in the pipe without waiting for more.
func (o *output) readReady(p []byte) (int, error) {
	raw, err := o.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	if len(p) > o.after {
		p = p[:o.after]
	}
	n := -1
	if len(p) > 0 {
		err = raw.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), p) })
	}
	if err == nil && n == 0 {
		return 0, io.EOF
	}
	if err != nil || n < 0 {
		o.mu.Lock()
		o.held = true
		o.mu.Unlock()
		return 0, io.EOF
	}
	o.after -= n
	return n, nil
}

// endWithin lets Read wait for at most d more.
func (o *output) endWithin(d time.Duration) { _ = o.file.SetReadDeadline(time.Now().Add(d)) }

// wasHeld reports whether the stream was cut off while somebody still held it.
func (o *output) wasHeld() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held
}
