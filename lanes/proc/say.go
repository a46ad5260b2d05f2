package proc

import "errors"

// maxUnread bounds, in bytes, what waits for a child that does not read.
const maxUnread = 32 << 20

var (
	// ErrHungUp refuses input after its end: the stdin is closed, or the child is gone.
	ErrHungUp = errors.New("the child takes no more input")
	// ErrUnread refuses input for a child that has not read what it was given before.
	ErrUnread = errors.New("the child does not read its input")
)

// input is what waits for a child to read it.
type input struct {
	waiting [][]byte
	unread  int // bytes that wait
	ended   bool
	writing bool // a goroutine writes
}

// Feed gives the child its task and closes its stdin. It returns at once; a
// child that does not read, or is gone already, is no error. Only the first call
// counts. The caller does not change task afterwards.
func (c *Child) Feed(task []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.input.ended {
		return
	}
	c.input.ended = true
	c.put(task)
}

// Say writes to the child's stdin and leaves it open. It returns at once; what is said
// is written in order. The caller does not change data afterwards. Errors: ErrHungUp,
// ErrUnread.
func (c *Child) Say(data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over || c.input.ended:
		return ErrHungUp
	case c.input.unread+len(data) > maxUnread:
		return ErrUnread
	}
	c.put(data)
	return nil
}

// HangUp closes the child's stdin once all that was said is written. It returns at once
// and may be called again.
func (c *Child) HangUp() { c.Feed(nil) }

// put queues data. The caller holds the lock, and the child is not over.
func (c *Child) put(data []byte) {
	if len(data) > 0 {
		c.input.waiting = append(c.input.waiting, data)
		c.input.unread += len(data)
	}
	if !c.input.writing {
		c.input.writing = true
		c.tasks.Go(c.write)
	}
}

// write writes what waits. It ends at the latest when finish closes the pipe: the child
// reads no more then, which is no error of whoever said something.
func (c *Child) write() {
	for {
		data, last := c.nextInput()
		if data == nil {
			if last {
				_ = c.pipes.stdin.Close()
			}
			return
		}
		_, _ = c.pipes.stdin.Write(data)
	}
}

// nextInput takes what is to be written next; nil when nothing waits, with whether
// nothing will.
func (c *Child) nextInput() (data []byte, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.input.waiting) == 0 {
		c.input.writing = false
		return nil, c.input.ended
	}
	data, c.input.waiting = c.input.waiting[0], c.input.waiting[1:]
	c.input.unread -= len(data)
	return data, false
}
