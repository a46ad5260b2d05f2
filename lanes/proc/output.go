package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// output is the read end of a pipe that ends within a bound after its child,
// even when a process that nobody could end still holds the other end. What was
// in the pipe by then is still delivered.
type output struct {
	file   *os.File
	after  int    // bytes that may still be read after the deadline: what the pipe holds
	closed func() // has to know when file is closed

	mu   sync.Mutex
	held bool // the deadline cut the stream off
}

func newOutput(file *os.File) *output {
	return &output{file: file, after: pipeCapacity, closed: func() {}}
}

// newWideOutput is an output whose pipe holds more, as long as there are not many.
func newWideOutput(file *os.File, wide *widePipes) *output {
	capacity, closed := wide.widen(file)
	return &output{file: file, after: capacity, closed: closed}
}

// Read returns io.EOF once and for all when the stream has ended.
func (o *output) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = o.readReady(p)
	}
	if err == nil {
		return n, nil
	}
	o.close()
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

func (o *output) close() {
	_ = o.file.Close()
	o.closed()
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
